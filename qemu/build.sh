#!/bin/sh
# Compiles what is preloaded into QEMU into OUTDIR. Needs a C compiler.
set -eu
[ $# -eq 1 ] || {
	echo "usage: qemu/build.sh OUTDIR" >&2
	exit 2
}
${CC:-cc} -O2 -Wall -Wextra -Werror -shared -fPIC -o "$1/turnstile.so.$$" "$(dirname "$0")/turnstile.c"
mv "$1/turnstile.so.$$" "$1/turnstile.so"
