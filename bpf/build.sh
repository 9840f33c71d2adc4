#!/bin/sh
# Compiles every algorithm of cc/registry.h into OUTDIR as ALGORITHM.bpf.o, and kernel-cubic.o and
# sockets.o. Needs clang and libbpf's headers.
set -eu
[ $# -eq 1 ] || {
	echo "usage: bpf/build.sh OUTDIR" >&2
	exit 2
}
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"

# linux/types.h includes asm/types.h, which Debian keeps in a folder for each architecture.
machine=$(${CC:-cc} -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
for algorithm in $(sed -n 's/^\tALGORITHM(\([a-z0-9_]*\),.*/\1/p' ../cc/registry.h); do
	object=$algorithm.bpf.o
	${CLANG:-clang} -g -O2 -target bpf -mcpu=v3 -Wall -Werror \
		-I"/usr/include/$machine" -DFP_ALGORITHM="$algorithm" \
		-DFP_SOURCE="\"../cc/$algorithm.h\"" -c algorithm.bpf.c -o "$out/$object.$$"
	mv "$out/$object.$$" "$out/$object"
done

for source in kernel_cubic.c sockets.bpf.c; do
	object=$(echo "${source%%.*}" | tr _ -).o
	${CLANG:-clang} -g -O2 -target bpf -mcpu=v3 -Wall -Werror \
		-I"/usr/include/$machine" -c "$source" -o "$out/$object.$$"
	mv "$out/$object.$$" "$out/$object"
done
