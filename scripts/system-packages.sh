#!/bin/sh
# What the build and the tests need from the system: installed when root, else named in one line.
set -eu

missing=
need() { # command, Debian package
	command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need_header() { # file below /usr/include, Debian package
	[ -e "/usr/include/$1" ] || missing="$missing $2"
}
need python3 python3
need cc gcc
need clang clang
need clang-format clang-format
need tshark tshark
need chromium chromium
need flent flent
need qemu-system-x86_64 qemu-system-x86
need iperf3 iperf3
need ip iproute2
need sysctl procps
need make make
need pkg-config pkg-config
need_header bpf/bpf_helpers.h libbpf-dev
need_header libelf.h libelf-dev
need_header zlib.h zlib1g-dev
need_header linux/bpf.h linux-libc-dev
python3 -c 'import venv, ensurepip' 2>/dev/null || missing="$missing python3-venv"

if ! command -v cargo >/dev/null 2>&1; then
	echo "fullpipe: cargo is missing; install Rust 1.86 or later (rustup.rs), then run this again" >&2
	exit 1
fi
[ -z "$missing" ] && exit 0
if [ "$(id -u)" -ne 0 ]; then
	echo "fullpipe: missing system packages; as root: apt-get install$missing" >&2
	exit 1
fi
echo "fullpipe: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
