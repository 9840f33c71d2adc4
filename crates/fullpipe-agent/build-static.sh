#!/bin/sh
# Builds the agent as one static, stripped binary: build-static.sh OUTDIR
# TARGET is another triple than this machine's for a cross build; STRIP is then that triple's strip.
set -eu
out=$1
target=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
folder=${CARGO_TARGET_DIR:-target}
# The agent spends its time in system calls. LTO and a single codegen unit would more than double the
# build time without making it faster.
RUSTFLAGS="-C target-feature=+crt-static" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
	cargo build --release --locked --quiet --target "$target" -p fullpipe-agent
"${STRIP:-strip}" -o "$out/fullpipe-agent.new" "$folder/$target/release/fullpipe-agent"
mv "$out/fullpipe-agent.new" "$out/fullpipe-agent"
