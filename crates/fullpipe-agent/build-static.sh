#!/bin/sh
# Builds the agent as one static, stripped binary: build-static.sh OUTDIR
set -eu
out=$1
target=x86_64-unknown-linux-gnu
folder=${CARGO_TARGET_DIR:-target}
# What it does is in the kernel's calls: optimisation across crates, and of a crate as one unit, takes
# longer than the rest of its build and nothing is faster for it.
RUSTFLAGS="-C target-feature=+crt-static" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
	cargo build --release --locked --quiet --target "$target" -p fullpipe-agent
strip -o "$out/fullpipe-agent.new" "$folder/$target/release/fullpipe-agent"
mv "$out/fullpipe-agent.new" "$out/fullpipe-agent"
