#!/bin/sh
# Builds the agent as one static, stripped binary: build-static.sh OUTDIR
# TARGET is another triple than this machine's for a cross build; STRIP is then that triple's strip.
set -eu
out=$1
folder=${CARGO_TARGET_DIR:-target}${TARGET:+/$TARGET}
# The flag is the program's alone, and the features are those of the Python module, so that both share
# all compiled crates (tests/python/test_shared_crates.py).
cargo rustc --release --locked --quiet ${TARGET:+--target "$TARGET"} -p fullpipe-agent --bin fullpipe-agent \
	--features fullpipe-cc/external -- -C target-feature=+crt-static
"${STRIP:-strip}" -o "$out/fullpipe-agent.new" "$folder/release/fullpipe-agent"
mv "$out/fullpipe-agent.new" "$out/fullpipe-agent"
