"""Writes docs/evidence/kernel_files.md: files of Linux 6.12 in the simulator beside the same
modules in 6.12 as User Mode Linux; and in the page that is there its table of decisions, call by
call.

python scripts/kernel_files.py FOLDER --date DAY [--keep RESULTS]
python scripts/kernel_files.py FOLDER --decisions [--keep RESULTS]

FOLDER has the kernel's net/ipv4/tcp_*.c (`fullpipe doctor --linux-source 6.12` keeps them in the
cache); `fullpipe doctor --build uml --kernel 6.12` builds the machine.
RESULTS is a JSON file of runs that are done; a run in it is not repeated.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tempfile
from pathlib import Path
from statistics import mean, variance
from typing import Any

import fullpipe
from fullpipe.authoring.kernel_import import import_kernel_file
from fullpipe.engines.sim import SimEngine
from fullpipe.engines.vm import VmEngine
from fullpipe.kernel import replay
from fullpipe.kernel.calls import first_difference
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

PAGE = Path(__file__).parent.parent / "docs" / "evidence" / "kernel_files.md"
NAMES = (
    "bbr", "bic", "cdg", "cubic", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "reno",
    "scalable", "vegas", "veno", "westwood", "yeah",
)  # fmt: skip
PATHS = {
    "a": {"rate": "10mbit", "rtt": "40ms", "buffer": "1bdp"},
    "b": {"rate": "8mbit", "rtt": "20ms", "buffer": "4bdp"},
    "c": {"rate": "5mbit", "rtt": "80ms", "buffer": "0.5bdp"},
    "d": {"rate": "4mbit", "rtt": "100ms", "buffer": "2bdp"},
    "e": {"rate": "10mbit", "rtt": "40ms", "buffer": "400 packets", "qdisc": "codel"},
    "f": {"rate": "10mbit", "rtt": "40ms", "buffer": "1bdp", "loss": "0.1%"},
    "g": {"rate": "2mbit", "rtt": "60ms", "buffer": "40 packets"},
    "h": {"rate": "20mbit", "rtt": "10ms", "buffer": "1bdp"},
}
#: The kernel of both: its files, its TCP in the simulator, its image as User Mode Linux.
KERNEL, TCP = "6.12", "6.12.117"
#: Both engines run the same seeds, and a seed is an RTT: where a packet more or less fits into the
#: queue decides what a flow does for seconds, one RTT says little.
SPREAD = "1pkt"
SEEDS = 6
LOSSY, LOSSY_SEEDS = "f", 24
GOODPUT, CWND = 0.01, 0.03
#: What is compared call by call: files, paths, the seed.
TRACED_NAMES = ("bbr", "cubic", "htcp", "illinois", "vegas", "westwood")
TRACED, TRACED_SEED = ("a", "e"), 2

_HEAD = """# Files of the kernel tree

{date}. The file `net/ipv4/tcp_NAME.c` of Debian's Linux 6.12 in the simulator (`fullpipe cc
import`), beside `kernel:NAME` in the same kernel as User Mode Linux (6.12.117): one bulk flow of
12 s, measured from 2 s on. Means of {seeds} seeds in both, of {lossy_seeds} on the path that loses
packets at random. A seed is an RTT, the same in both engines: up to one packet's time is added.
`reno` is in the kernel's registry itself (`tcp_cong.c`), for which the built-in `reno` stands.
`python scripts/kernel_files.py FOLDER --date DAY` repeats it.

Difference of goodput (aim: 1 %) and of mean cwnd (aim: 3 %), simulator less kernel, in %. **Bold**:
beyond the aim by more than two standard errors of the difference. `~`: beyond it, and chance may be
the reason.

| path | |
|---|---|
{paths}

{table}

{within} of {cells} cells are within both aims; for certain beyond one: {beyond}. Commit f0858ca
with the headers of f0858ca; several processes shared two cores.

## Why one RTT says little

The earlier table, of 6.1 at whole RTTs, had cells beyond the aims whose cause was unknown:
`illinois`, `westwood` and `yeah` on path d, `bic` and `htcp` on path e. Samples of both engines
each millisecond show it:

- The simulator ran the TCP of 6.12.117 beside a kernel 6.1. With `host.tcp = "6.1"` `htcp` on path
  e has 9.21 Mbit/s and 34.3 packets; the kernel 9.22 and 34.3.
- On path d both send the same packets until the queue overflows. There the engines differ by one
  packet: the receivers' ACKs, one for each packet while the window grows and one for two
  afterwards, change over at another packet, so another packet finds the queue full. The loss of
  one packet more keeps the sender in Recovery 0.3 s longer; the second Recovery then reduces to 79
  packets instead of 63. The mean cwnd of `illinois` is 86 or 75.
- 5 us of RTT decide it: at 99.995 ms the simulator has 75.3, at 100 ms 86.1. The kernel has both
  too: with six RTTs within 3 ms, 75.3 to 76.0 five times and 86.1 once.

In the machine the receive buffer first grows after 12 packets instead of 11 on path d: the first
two packets of a round trip are read together there, or its first RTT sample is a millisecond
longer. That is what moves the ACKs; which of the two it is was not followed.

## Decisions

2026-11-28, commit f4742e9 with the mend below. The same file as part of fullpipe's module in the
same machine, with every call that TCP makes to it logged (`--cc-trace`): 12 s, seed 2. Each cell
has the calls; in how many of them `fullpipe replay`, which gives the kernel's facts to the
simulator's build, decides otherwise; and the first call that a run of the simulator does not have,
or that decides otherwise there (`fullpipe trace diff --decisions`).
`python scripts/kernel_files.py FOLDER --decisions` repeats it.

<!-- decisions -->
{decisions}

From the same facts the headers give the kernel's decisions, bit for bit, in 160,812 calls. The
module changes nothing: `htcp` on path e with six seeds has the goodput and the cwnd of
`kernel:htcp` to the last digit. What is left is TCP's, and first of all which packets an ACK
covers:

- An RTT of 40 ms is 40,000 us in the machine, whose processor takes no time, and 40,001 us in the
  simulator. H-TCP counts RTTs in ticks of 4 ms, rounded up: 10 or 11 of them.
- Two packets that arrive in one burst are read together in the machine, so the receive buffer first
  grows after 12 packets; the simulator's application reads after the first of them, at 11.
- The machine's packets take less memory than Debian's: windows of 81,920 bytes instead of 79,872,
  writes up to packets 90, 146 and 324 instead of 88, 143 and 320. In QEMU Debian's kernel has the
  simulator's numbers.

`htcp` on path e was beyond the aims, and the trace shows why. In the first Recovery the application
had written 320 packets (QEMU, too; 324 in the machine). When 206 are acknowledged, the kernel's
application writes on; the simulator's waited until 248. Its 40 packets came in one burst then,
CoDel dropped three packets fewer, and H-TCP returned to Open with long RTTs that held its reduction
at a half. Linux merges buffers that are SACKed (`tcp_shift_skb_data()`), which frees memory; the
simulator kept each burst's. It merges them now. With it `htcp` has 9.22 Mbit/s and 34.5 packets
there in the mean of the six seeds, the kernel 9.17 and 34.3: +0.5 and +0.7 %, within the aims. Reno
has the kernel's three reductions and seven losses of the first 0.7 s, in QEMU too. The table above
is from before.

## What was tried besides

- `tcp_lp.c` depends on when a receiver's clock starts, which each connection draws: most are Reno,
  an eighth yields. Both engines: 52.3 packets on path a in most runs, 37 to 50 in the others.
- `tcp_bbr.c` of Google's v3, as patches bring it to 6.12 and 6.17, runs; beside `bbr3-linux` on all
  paths but e, 5 runs each: goodput within 0.7 %, cwnd within 0.9 %. `tcp_bbr2.c`, patched into 6.2,
  runs.
- Fourteen of the fifteen (`reno` is no file), `lp` and `dctcp` of Debian's 5.10 and 7.3 run. Those
  of `bbr`, tsunami and nanqinlang that were tried run from 4.13 to 6.1; of 4.9 to 4.12 they
  compile.
- BBRplus of 4.14 to 4.16 runs; those of 4.17 to 5.0 are refused: they call `bbr_target_cwnd()`,
  which they do not have. TCP Brutal runs. `tcp_cong.c` is refused: it is the registry.
- `doctor --build uml --kernel 6.1` fails on Debian 12: the linker finds no `__xmknod`.
"""


def main() -> None:
    """Runs what is not done and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--date", help="day of the measurement, YYYY-MM-DD")
    parser.add_argument("--decisions", action="store_true", help="write that table alone")
    given = parser.parse_args()
    if given.decisions == (given.date is not None):
        parser.error("name --date DAY or --decisions")
    done: dict[str, list[list[float]]] = {}
    if given.keep is not None and given.keep.is_file():
        done = json.loads(given.keep.read_text())
    if given.decisions:
        _write_decisions(given.folder, given.keep, done)
        return
    with tempfile.TemporaryDirectory() as text:
        for name in NAMES:
            own = "reno"
            if name != "reno":
                file = given.folder / f"tcp_{name}.c"
                own = str(import_kernel_file(file, f"of_{name}"[:15], Path(text))[0])
            for path in PATHS:
                for engine, cc in (("sim", own), ("vm", f"kernel:{name}")):
                    key = f"{engine} {path} {name}"
                    if key not in done:
                        done[key] = _measure(cc, path, engine)
                        if given.keep is not None:
                            given.keep.write_text(json.dumps(done, indent=0))
    PAGE.write_text(_page(done, given.date), encoding="utf-8")


def _measure(cc: str, path: str, engine: str) -> list[list[float]]:
    """Goodput in bit/s and mean cwnd of each run."""
    scenario: dict[str, Any] = {
        "duration": "12s", "warmup": "2s", "path": PATHS[path], "rtt_spread": SPREAD,
        "flow": [{"cc": cc}],
    }  # fmt: skip
    if engine == "sim":
        scenario["host"] = {"tcp": TCP}
    options = {"kernel": KERNEL, "machine": "uml"} if engine == "vm" else {}
    runs = LOSSY_SEEDS if path == LOSSY else SEEDS
    recordings = fullpipe.run(scenario, engine=engine, seeds=runs, jobs=1, **options)
    flows = (summary["flows"][0] for summary in recordings.summaries())
    return [[flow["goodput_bps"], flow["cwnd_packets"]["mean"]] for flow in flows]


def _write_decisions(folder: Path, keep: Path | None, done: dict[str, Any]) -> None:
    """Puts the table of decisions into the page."""
    rows = [f"| | {' | '.join(TRACED)} |", "|---|" + "---|" * len(TRACED)]
    for name in TRACED_NAMES:
        cells = []
        for path in TRACED:
            key = f"calls {path} {name}"
            if key not in done:
                done[key] = _compare_calls(folder / f"tcp_{name}.c", path)
                if keep is not None:
                    keep.write_text(json.dumps(done, indent=0))
            cells.append(done[key])
        rows.append(f"| {name} | {' | '.join(cells)} |")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.replace(_decisions(page), "\n".join(rows)), encoding="utf-8")


def _decisions(page: str) -> str:
    """The table of decisions that the page has."""
    found = re.search(r"(?s)<!-- decisions -->\n(.*?)\n\n", page)
    if found is None:
        raise SystemExit(f"{PAGE}: has no table of decisions")
    return found[1]


def _compare_calls(file: Path, path: str) -> str:
    """Calls of the kernel, from which on a replay decides otherwise, and the first call in which a
    run of the simulator does."""
    with tempfile.TemporaryDirectory() as text:
        place = Path(text)
        own = import_kernel_file(file, f"of_{file.stem[4:]}"[:15], place)[0]
        plan = resolve(make_scenario({
            "duration": "12s", "path": PATHS[path], "rtt_spread": SPREAD, "seed": TRACED_SEED,
            "host": {"tcp": TCP}, "flow": [{"cc": str(own)}],
        }))  # fmt: skip
        traces = place / "sim", place / "kernel"
        SimEngine().run(plan, lambda _done: True, {"cc_trace": str(traces[0])})
        options = {"kernel": KERNEL, "machine": "uml", "cc_trace": str(traces[1])}
        VmEngine().run(plan, lambda _done: True, options)
        (found,) = replay(traces[1]).algorithms
        if found.lost or found.skipped:
            raise SystemExit(f"{file.name}, path {path}: {found.lost} calls were not logged")
        differs = "0" if found.difference is None else f"from {found.difference.sequence} on"
        first = first_difference(*traces, decisions_only=True)
        apart = "none" if first is None else f"{first.call} at {first.t_us / 1e6:.3f} s"
        return f"{found.calls:,} / {differs}; {apart}"


def _page(done: dict[str, list[list[float]]], date: str) -> str:
    lines = [f"| | {' | '.join(PATHS)} |", "|---|" + "---|" * len(PATHS)]
    within = beyond = 0
    for name in NAMES:
        cells = []
        for path in PATHS:
            found = [_difference(done, name, path, 0, GOODPUT),
                     _difference(done, name, path, 1, CWND)]  # fmt: skip
            within += all(mark == "" for _, mark in found)
            beyond += any(mark == "**" for _, mark in found)
            cells.append(" ".join(f"{mark}{value * 100:+.1f}{mark.replace('~', '')}"
                                  for value, mark in found))  # fmt: skip
        lines.append(f"| {name} | {' | '.join(cells)} |")
    paths = "\n".join(
        f"| {key} | {', '.join(f'{what} {value}' for what, value in path.items())} |"
        for key, path in PATHS.items()
    )
    return _HEAD.format(
        date=date, seeds=SEEDS, lossy_seeds=LOSSY_SEEDS, paths=paths, table="\n".join(lines),
        within=within, beyond=beyond, cells=len(NAMES) * len(PATHS),
        decisions=_decisions(PAGE.read_text(encoding="utf-8")),
    )  # fmt: skip


def _difference(
    done: dict[str, list[list[float]]], name: str, path: str, index: int, aim: float
) -> tuple[float, str]:
    """The relative difference of the means, and its mark."""
    ours, theirs = ([run[index] for run in done[f"{engine} {path} {name}"]]
                    for engine in ("sim", "vm"))  # fmt: skip
    known = mean(theirs)
    value = mean(ours) / known - 1
    if abs(value) <= aim:
        return value, ""
    error = math.sqrt(variance(ours) / len(ours) + variance(theirs) / len(theirs)) / known
    return value, "**" if abs(value) - aim > 2 * error else "~"


if __name__ == "__main__":
    main()
