#!/bin/sh
# Packages the crates that are published, fullpipe-cc and fullpipe-quic-cc, and proves that the files
# are enough: both are unpacked outside of the checkout, and a program that depends on them, with every
# stack, is built without a network and runs.
#   scripts/crates.sh DIR
# DIR gets the .crate files. Needs the crates of QUIC stacks, as `make test-quic` does.
set -eu
[ $# = 1 ] || {
	echo "usage: scripts/crates.sh DIR" >&2
	exit 2
}
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What is in the checkout is packaged, committed or not. fullpipe-quic-cc gets no Cargo.lock, which
# could not name a fullpipe-cc that is not published yet.
package() {
	(cd "crates/$1" && shift && cargo package --quiet --allow-dirty --no-verify --target-dir "$work/target" "$@")
}
package fullpipe-cc
package fullpipe-quic-cc --exclude-lockfile
for file in "$work"/target/package/*.crate; do
	tar -xzf "$file" -C "$work"
	mv "$file" "$out"
done

mkdir "$work/program"
cd "$work/program"
cat >Cargo.toml <<END
[package]
name = "program"
version = "0.0.0"
edition = "2021"

[dependencies]
fullpipe-quic-cc = { path = "$(echo "$work"/fullpipe-quic-cc-*)", features = ["quinn", "noq", "s2n"] }

[patch.crates-io]
fullpipe-cc = { path = "$(echo "$work"/fullpipe-cc-*)" }
END
mkdir src
cat >src/main.rs <<END
fn main() {
    let names = fullpipe_quic_cc::Settings::names();
    assert!(names.contains(&"bbr3"));
    println!("packages work: {}", names.join(", "));
}
END
# Versions of the dependencies are those of the checkout's tests, which may have compiled them.
cp "$root/crates/fullpipe-quic-cc/Cargo.lock" .
cargo run --quiet --offline --target-dir "$root/target/quic-cc"
