#!/bin/sh
# Checks of the C code itself: strict warnings, the undefined behaviour sanitizer under random
# calls, and that every algorithm compiles for the eBPF target.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

strict="-std=c11 -Wall -Wextra -Werror -Wconversion"
# shellcheck disable=SC2086 # a list of words
${CC:-cc} $strict -O1 -fsanitize=undefined -fno-sanitize-recover=all \
	cc/native.c tests/cc/fuzz.c -o "$work/fuzz"
"$work/fuzz"
# shellcheck disable=SC2086 # as above
${CC:-cc} $strict -O1 -fsanitize=undefined -fno-sanitize-recover=all tests/cc/fixed.c \
	-lm -o "$work/fixed"
"$work/fixed"

# What a first algorithm needs is in cc.h: these do without cc_more.h.
sed -e 's/@V/5/' -e 's/@/mine/g' python/fullpipe/authoring/smallest.h.in >"$work/mine.h"
mkdir "$work/first"
cp cc/*.h "$work/first"
rm "$work/first/cc_more.h"
for file in "$work/mine.h" examples/cc/aimd.h examples/cc/copa.h examples/cc/vegas.h; do
	# shellcheck disable=SC2086 # as above
	${CC:-cc} $strict -Wno-unused-parameter -I"$work/first" -fsyntax-only -x c "$file"
	echo "$(basename "$file"): compiles without cc_more.h"
done

for algorithm in $(grep -v '^ \*' cc/registry.h | sed -n 's/.*ALGORITHM(\([a-z0-9_]*\), ".*/\1/p'); do
	cat >"$work/wrap.c" <<END
#include "$PWD/cc/registry.h"
void ack(struct ${algorithm} *s, const struct ${algorithm}_params *p, const struct cc_conn *c,
	 const struct cc_ack *a, struct cc_ctl *ctl)
{
	${algorithm}_on_ack(s, p, c, a, ctl);
}
void event(struct ${algorithm} *s, const struct ${algorithm}_params *p, const struct cc_conn *c,
	   const struct cc_event *e, struct cc_ctl *ctl)
{
	${algorithm}_on_event(s, p, c, e, ctl);
}
END
	clang -O2 -g -target bpf -mcpu=v3 -Wall -Werror -c "$work/wrap.c" -o "$work/wrap.o"
	echo "$algorithm: compiles for eBPF"
done
