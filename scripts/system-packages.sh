#!/bin/sh
# Installs the Debian packages that are missing if run by root; otherwise names them in one line.
#   scripts/system-packages.sh demo     what the module and the simulator need
#   scripts/system-packages.sh build    that and what the engines vm and live need
#   scripts/system-packages.sh test     that and what the tests need
# Each program is tried out: Debian's flent, for one, can be installed without the library that draws
# its plots.
set -eu
PATH=$PATH:/usr/sbin:/sbin # Debian leaves them out of an ordinary user's PATH
case ${1:-} in
demo | build | test) ;;
*)
	echo "usage: scripts/system-packages.sh demo|build|test" >&2
	exit 2
	;;
esac
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

works() { # command...
	"$@" >"$work/output" 2>&1 </dev/null
}
missing= # Debian packages
unless() { # Debian packages, command...
	packages=$1
	shift
	works "$@" && return
	missing="$missing $packages"
	tail -n 3 "$work/output" >>"$work/errors"
}

rust_version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rust_is_new_enough() {
	cargo --version
	found=$(rustc --version | cut -d ' ' -f 2)
	printf '%s\n' "$rust_version" "$found" | sort --version-sort --check
}
python_makes_environments() { python3 -c 'import venv, ensurepip'; }
cc_links() {
	echo 'int main(void) { return 0; }' >"$work/cc.c"
	cc -fsanitize=undefined "$work/cc.c" -o "$work/cc" && "$work/cc"
}
has_header() { echo "#include <$1>" | cc -E -o "$work/header" -; }
# The agent is linked statically: the virtual machine has no libraries.
links_statically() { # library, one of its functions
	echo "char $2(void); int main(void) { return $2(); }" >"$work/static.c"
	cc -w -fno-builtin -static "$work/static.c" -l"$1" -lz -o "$work/static"
}
clang_compiles_for_ebpf() {
	echo 'int answer(void) { return 42; }' | clang -target bpf -mcpu=v3 -O2 -x c -c - -o "$work/bpf.o"
}
qemu_has_the_machine() {
	echo quit | qemu-system-x86_64 -machine pc-i440fx-7.1 -nodefaults -display none \
		-accel tcg,thread=single -icount shift=0,sleep=off -S -monitor stdio
}

clang_format_formats() { [ "$(echo 'int  a ;' | clang-format)" = 'int a;' ]; }
# The file is the header of a capture without packets.
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

look_for_demo() {
	unless make make --version
	unless "cargo-web rustc-web" rust_is_new_enough
	unless "python3 python3-venv" python_makes_environments
	unless "gcc libc6-dev" cc_links
}
look_for_build() {
	look_for_demo
	unless pkg-config pkg-config --version
	unless clang clang_compiles_for_ebpf
	unless libbpf-dev has_header bpf/bpf_helpers.h
	unless linux-libc-dev has_header linux/bpf.h
	unless zlib1g-dev links_statically z zlibVersion
	unless libelf-dev links_statically elf elf_version
	unless qemu-system-x86 qemu_has_the_machine
	unless iproute2 tc -Version
}
look_for_test() {
	look_for_build
	unless rust-web-clippy cargo clippy --version
	unless rustfmt-web cargo fmt --version
	unless clang-format clang_format_formats
	unless tshark tshark_reads
	unless chromium chromium_opens_pages
	unless chromium-driver chromedriver --version
	unless "flent python3-matplotlib" flent_draws
	unless patch patch_applies
	unless iperf3 iperf3 --version
	unless procps sysctl kernel.ostype
	unless gdb gdb --version
}
look() {
	missing=
	: >"$work/errors"
	"look_for_$1"
}

look "$1"
[ -n "$missing" ] || exit 0
case $missing in
*-web*) rust=" (any Rust from $rust_version on will do, with clippy and rustfmt for the tests: https://rustup.rs)" ;;
*) rust= ;;
esac
if [ "$(id -u)" -ne 0 ]; then
	echo "fullpipe: missing packages; as root: apt-get install -y --no-install-recommends$missing$rust" >&2
	exit 1
fi

echo "fullpipe: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing >"$work/apt" 2>&1 || {
	tail -n 10 "$work/apt" >&2
	exit 1
}
look "$1"
if [ -n "$missing" ]; then
	echo "fullpipe: installed, but these still do not work:$missing$rust" >&2
	cat "$work/errors" >&2
	exit 1
fi
