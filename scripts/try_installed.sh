#!/bin/sh
# Runs the installed `fullpipe` once through each library that it depends on: a run with figures and a
# page, a comparison, a sweep with query, chart and effects, Flent's files. Checks that each ends well,
# not what it says; the tests do that.
#   PATH=VENV/bin:$PATH scripts/try_installed.sh
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
set -x
fullpipe --version
fullpipe run "$root/scenarios/demo.toml" --out demo --figures figures
fullpipe compare cubic bbr3 --rate 10mbit --rtt 20ms --buffer 1bdp --duration 4s --warmup 1s --repeat 3 --out pair
cat >sweep.toml <<END
[scenario]
duration = "2s"
path = { rate = "10mbit", rtt = "{rtt}", buffer = "1bdp" }
flow = [{ cc = "{cc}" }]
[axis]
rtt = ["10ms", "20ms"]
cc = ["bbr3", "cubic"]
[sweep]
seeds = 3
END
fullpipe sweep run sweep.toml --out store
fullpipe query store "select axis_cc, avg(goodput_bps) from flows group by 1"
fullpipe plot store --x rtt --y utilisation --out chart.png
fullpipe effects store --y utilisation --of rtt,cc
fullpipe flent export demo --out demo.flent.gz
fullpipe flent import demo.flent.gz --out imported
fullpipe report imported --out imported.html
fullpipe model share --help
fullpipe cc list
