#!/bin/sh
# Prints what pip installs for this copy of action.yml: the release that Cargo.toml names. A commit
# between two releases has none, so its user names a wheel.
set -eu
manifest="$(dirname "$0")/../Cargo.toml"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$manifest" | head -n 1)
case $version in
*[!0-9.]* | "")
	echo "fullpipe's action is of version ${version:-(none)}, which is no release: pin the action to a" \
		"release's commit, or give the input 'wheel'" >&2
	exit 2
	;;
esac
echo "fullpipe==$version"
