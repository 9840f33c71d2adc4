#!/bin/sh
# Runs a command that builds a wheel or a source distribution while the package holds what both ship
# beside what is compiled: the catalogue, the scorecard, the sources of the algorithms, the commit.
# Where the address of the repository is known (GITHUB_REPOSITORY), README.md has whole links meanwhile:
# it is the page of the package index.
#   scripts/with_sources.sh maturin build --release --out dist
set -eu
[ $# -gt 0 ] || {
	echo "usage: scripts/with_sources.sh COMMAND [ARGUMENT...]" >&2
	exit 2
}
cd "$(dirname "$0")/.."
# An unpacked source distribution has them in place, and the commit that it was made from.
[ -e .git ] || exec "$@"
assets=python/fullpipe/assets
sources="experiments flent_tests scorecard cc bpf module examples"
readme=
remove() { for name in $sources commit; do rm -rf "${assets:?}/$name"; done; }
restore() {
	remove
	[ -z "$readme" ] || mv "$readme" README.md
}
trap restore EXIT
mkdir -p "$assets"
remove
# shellcheck disable=SC2086 # a list of words
cp -r $sources "$assets"
# Recordings name it: two builds of a version differ in it.
if commit=$(git rev-parse --verify --quiet HEAD); then
	git diff --quiet HEAD -- || commit="$commit+changes"
	echo "$commit" >"$assets/commit"
	if [ -n "${GITHUB_REPOSITORY:-}" ]; then
		readme=$(mktemp)
		cp -p README.md "$readme"
		base=${GITHUB_SERVER_URL:-https://github.com}/$GITHUB_REPOSITORY
		sed -E -e "s#(!\\[[^]]*\\]\\()([^):]+\\))#\\1$base/raw/${commit%+*}/\\2#g" \
			-e "s#(\\]\\()([^):]+\\))#\\1$base/blob/${commit%+*}/\\2#g" "$readme" >README.md
	fi
fi
"$@"
