#!/bin/sh
# Runs a command that builds a wheel or a source distribution while the package holds what both ship
# beside what is compiled: the catalogue, the scorecard, and the sources of the algorithms.
#   scripts/with_sources.sh maturin build --release --out dist
set -eu
[ $# -gt 0 ] || {
	echo "usage: scripts/with_sources.sh COMMAND [ARGUMENT...]" >&2
	exit 2
}
cd "$(dirname "$0")/.."
assets=python/fullpipe/assets
sources="experiments flent_tests scorecard cc bpf module examples"
remove() { for folder in $sources; do rm -rf "${assets:?}/$folder"; done; }
trap remove EXIT
mkdir -p "$assets"
remove
# shellcheck disable=SC2086 # a list of words
cp -r $sources "$assets"
"$@"
