#!/bin/sh
# Proves that the source distribution rebuilds fullpipe: unpacks it outside of the checkout, builds the
# wheel there, installs that alone, and runs the demo and the tests of the wheel.
#   scripts/check_sdist.sh dist/fullpipe-X.Y.Z.tar.gz [DIR]
# DIR, by default a temporary folder that is removed, gets the sources.
set -eu
[ $# = 1 ] || [ $# = 2 ] || {
	echo "usage: scripts/check_sdist.sh SDIST [DIR]" >&2
	exit 2
}
sdist=$(realpath "$1")
if [ $# = 2 ]; then
	mkdir -p "$2"
	work=$(realpath "$2")
else
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi
tar -xzf "$sdist" -C "$work" --strip-components=1
cd "$work"
make wheel
python3 -m venv build/alone
build/alone/bin/pip install --quiet --disable-pip-version-check dist/*.whl
cp scenarios/demo.toml build
(cd build && alone/bin/fullpipe --version && alone/bin/fullpipe run demo.toml --out demo)
make .venv/.fullpipe-tools
cp "$sdist" dist # one of the tests is of it
.venv/bin/python -m pytest tests/python/test_wheel.py
