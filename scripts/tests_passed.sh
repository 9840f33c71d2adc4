#!/bin/sh
# Prints what the tests cost and what they skipped, and writes the commit that they passed on to
# build/tests-passed:  COMMIT TIER clean|dirty
#   scripts/tests_passed.sh TIER
# `make test` and `make test-all` call it when all has passed.
set -eu
cd "$(dirname "$0")/.."
awk -F '\t' '
	{ cost[$1] += $2; total += $2 }
	END {
		for (name in cost) printf "%8.1f  %s\n", cost[name], name | "sort -rn"
		close("sort -rn")
		printf "%8.1f  CPU s in all\n", total
	}
' build/test-steps
rm build/test-steps
cat build/test-summary
commit=$(git rev-parse HEAD 2>/dev/null) || exit 0
state=clean
[ -z "$(git status --porcelain)" ] || state=dirty
printf '%s %s %s\n' "$commit" "$1" "$state" >build/tests-passed
