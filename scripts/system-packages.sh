#!/bin/sh
# What the build and the tests need from the system: installed when root, else named in one line.
# A program is asked for what it must do, not for its name: Debian's flent, for one, is there without
# the library that draws its plots.
set -eu
PATH=$PATH:/usr/sbin:/sbin # which Debian leaves out of an ordinary user's
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

works() { # command...: does it what it should?
	"$@" >"$work/output" 2>&1 </dev/null
}
lacking= # Debian's packages
unless() { # Debian's packages, command
	packages=$1
	shift
	works "$@" && return
	lacking="$lacking $packages"
	tail -n 3 "$work/output" >>"$work/said"
}

python_makes_environments() { python3 -c 'import venv, ensurepip'; }
cc_links() {
	echo 'int main(void) { return 0; }' >"$work/cc.c"
	cc -fsanitize=undefined "$work/cc.c" -o "$work/cc" && "$work/cc"
}
has_header() { echo "#include <$1>" | cc -E -o "$work/header" -; }
# The agent is static: it runs where no library is.
links_statically() { # library, a function of it
	echo "char $2(void); int main(void) { return $2(); }" >"$work/static.c"
	cc -w -fno-builtin -static "$work/static.c" -l"$1" -lz -o "$work/static"
}
clang_compiles_for_ebpf() {
	echo 'int answer(void) { return 42; }' | clang -target bpf -mcpu=v3 -O2 -x c -c - -o "$work/bpf.o"
}
clang_format_formats() { [ "$(echo 'int  a ;' | clang-format)" = 'int a;' ]; }
# The header of a capture without packets.
tshark_reads() {
	printf '\324\303\262\241\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0' >"$work/empty.pcap"
	tshark -r "$work/empty.pcap"
}
chromium_opens_pages() {
	chromium --headless --no-sandbox --disable-gpu --no-first-run \
		--user-data-dir="$work/chromium" --dump-dom about:blank | grep -q '<html'
}
flent_draws() {
	gzip >"$work/a.flent.gz" <<-END
		{"version": 4, "x_values": [0, 0.5, 1], "results": {"Ping (ms) ICMP": [1, 2, 3]},
		 "raw_values": {"Ping (ms) ICMP": [{"t": 0, "val": 1}]},
		 "metadata": {"NAME": "ping", "TIME": "2020-01-01T00:00:00.000000Z", "LENGTH": 1,
		              "TOTAL_LENGTH": 1, "STEP_SIZE": 0.5, "HOST": "a", "HOSTS": ["a"],
		              "LOCAL_HOST": "a", "TITLE": "", "TEST_PARAMETERS": {}, "SERIES_META": {}}}
	END
	MPLBACKEND=Agg QT_QPA_PLATFORM=offscreen flent -i "$work/a.flent.gz" -p ping -o "$work/a.png"
	[ -s "$work/a.png" ]
}
patch_applies() {
	echo a >"$work/patched"
	printf -- '--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n' | patch "$work/patched"
}
qemu_has_the_machine() {
	echo quit | qemu-system-x86_64 -machine pc-i440fx-7.1 -nodefaults -display none \
		-accel tcg,thread=single -icount shift=0,sleep=off -S -monitor stdio
}

look() {
	lacking=
	: >"$work/said"
	unless "python3 python3-venv" python_makes_environments
	unless "gcc libc6-dev" cc_links
	unless make make --version
	unless pkg-config pkg-config --version
	unless clang clang_compiles_for_ebpf
	unless clang-format clang_format_formats
	unless libbpf-dev has_header bpf/bpf_helpers.h
	unless linux-libc-dev has_header linux/bpf.h
	unless zlib1g-dev links_statically z zlibVersion
	unless libelf-dev links_statically elf elf_version
	unless tshark tshark_reads
	unless chromium chromium_opens_pages
	unless chromium-driver chromedriver --version
	unless "flent python3-matplotlib" flent_draws
	unless qemu-system-x86 qemu_has_the_machine
	unless patch patch_applies
	unless iperf3 iperf3 --version
	unless iproute2 ip -Version
	unless procps sysctl kernel.ostype
}

look
# Rust does not come from Debian 12, whose own is too old.
rust=
for command in "cargo --version" "cargo clippy --version" "cargo fmt --version"; do
	# shellcheck disable=SC2086 # a command and its arguments
	works $command || rust="Rust 1.86 or later with clippy and rustfmt from https://rustup.rs"
done
if [ -n "$lacking" ] && [ "$(id -u)" -ne 0 ]; then
	echo "fullpipe: missing; as root: apt-get install -y --no-install-recommends$lacking${rust:+; and $rust}" >&2
	exit 1
fi
if [ -n "$rust" ]; then
	echo "fullpipe: missing; $rust" >&2
	exit 1
fi
[ -n "$lacking" ] || exit 0

echo "fullpipe: installing$lacking"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $lacking >/dev/null
look
if [ -n "$lacking" ]; then
	echo "fullpipe: installed, and still not doing what is needed:$lacking" >&2
	cat "$work/said" >&2
	exit 1
fi
