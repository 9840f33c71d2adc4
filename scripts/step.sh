#!/bin/sh
# Runs a command and adds its CPU seconds (user and system, children included) to build/test-steps:
#   scripts/step.sh NAME COMMAND [ARGUMENT...]
# `make test` prints them at its end, so that growth is seen. Exit status: the command's.
set -u
name=$1
shift
status=0
"$@" || status=$?
cd "$(dirname "$0")/.." && mkdir -p build
# The second line is of the children, as 0m1.250s 0m0.340s (POSIX).
times >"build/.times.$$"
awk -v name="$name" '
	function seconds(text) { split(text, part, /[ms]/); return 60 * part[1] + part[2] }
	NR == 2 { printf "%s\t%.1f\n", name, seconds($1) + seconds($2) }
' "build/.times.$$" >>build/test-steps
rm -f "build/.times.$$"
exit "$status"
