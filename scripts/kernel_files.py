"""Writes docs/evidence/kernel_files.md: files of Linux 6.1 in the simulator beside the same modules
in the virtual machine.

python scripts/kernel_files.py FOLDER [--keep RESULTS]

FOLDER has the kernel's net/ipv4/tcp_*.c (`fullpipe doctor --linux-source 6.1` keeps them in the
cache).
RESULTS is a JSON file of runs that are done; a run in it is not repeated.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import fullpipe
from fullpipe.authoring.kernel_import import import_kernel_file

PAGE = Path(__file__).parent.parent / "docs" / "evidence" / "kernel_files.md"
NAMES = (
    "bbr", "bic", "cdg", "cubic", "highspeed", "htcp", "hybla", "illinois", "nv", "reno",
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
#: Seeds of the simulator; one run of the machine, more where chance decides.
SEEDS = 5
LOSSY, LOSSY_SEEDS, LOSSY_RUNS = "f", 20, 3
RANDOM, RANDOM_RUNS = {"cdg", "nv"}, 4
GOODPUT, CWND = 0.01, 0.03

_HEAD = """# Files of the kernel tree

{date}. The file `net/ipv4/tcp_NAME.c` of Debian's Linux 6.1 in the simulator (`fullpipe cc
import`), beside `kernel:NAME` in the virtual machine with Debian's 6.1: one bulk flow of 12 s,
measured from 2 s on. Means of {seeds} seeds beside one run, or up to {random_runs} of `cdg` and
`nv`, which draw random numbers; on the path that loses packets at random, of {lossy_seeds} beside
{lossy_runs}. `reno` is in the kernel's registry itself (`tcp_cong.c`), for which the built-in
`reno` stands. `python scripts/kernel_files.py FOLDER --date DAY` repeats it.

Difference of goodput (aim: 1 %) and of mean cwnd (aim: 3 %), simulator less kernel, in %.
**Bold**: beyond the aim.

| path | |
|---|---|
{paths}

{table}

{within} of {cells} cells are within both aims. Of the others:

- Path f: which packets are lost differs, and 3 runs of the machine leave a mean with a standard
  error of several per cent; nothing smaller can be said.
- `cdg` and `nv` on paths e and g: their random numbers spread mean cwnd by 5 to 10 % from seed to
  seed.
- `illinois` on path d: both engines lose about 100 packets at the end of the first slow start and
  do not part before. The simulator loses one more and stays in Recovery, where the kernel begins
  another one, with half the window; the 12 s hold no further loss. `westwood` and `yeah` part on
  that path too; why was not followed.
- `bic` and `htcp` on path e: of five seeds of `bic`, two are within 0.7 % of the kernel and three
  3 % below. `htcp` is 3 % below in all; the cause is not found.

## What was tried besides

| file | |
|---|---|
| the same fifteen and `dctcp` of Debian's 6.12 | compile |
| `tcp_lp.c` of 6.1 | runs, not as in the kernel: alone on path a 4.6 Mbit/s, there 9.6 |
| `tcp_cong.c` | refused: it is the registry |
| TCP Brutal, BBRplus | compile; not compared with a kernel |
"""


def main() -> None:
    """Runs what is not done and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--date", required=True, help="day of the measurement, YYYY-MM-DD")
    given = parser.parse_args()
    done: dict[str, list[list[float]]] = {}
    if given.keep is not None and given.keep.is_file():
        done = json.loads(given.keep.read_text())
    with tempfile.TemporaryDirectory() as text:
        for name in NAMES:
            own = "reno"
            if name != "reno":
                file = given.folder / f"tcp_{name}.c"
                own = str(import_kernel_file(file, f"of_{name}"[:15], Path(text))[0])
            for path in PATHS:
                lossy = path == LOSSY
                for engine, cc, runs in (
                    ("sim", own, LOSSY_SEEDS if lossy else SEEDS),
                    ("vm", f"kernel:{name}", _runs(name, path)),
                ):
                    key = f"{engine} {path} {name}"
                    if key not in done:
                        done[key] = _measure(cc, path, engine, runs)
                        if given.keep is not None:
                            given.keep.write_text(json.dumps(done, indent=0))
    PAGE.write_text(_page(done, given.date), encoding="utf-8")


def _runs(name: str, path: str) -> int:
    if path == LOSSY:
        return LOSSY_RUNS
    return RANDOM_RUNS if name in RANDOM else 1


def _measure(cc: str, path: str, engine: str, runs: int) -> list[list[float]]:
    """Goodput in bit/s and mean cwnd of each run."""
    scenario: dict[str, Any] = {
        "duration": "12s", "warmup": "2s", "path": PATHS[path], "flow": [{"cc": cc}],
    }  # fmt: skip
    options = {"kernel": "6.1"} if engine == "vm" else {}
    recordings = fullpipe.run(scenario, engine=engine, seeds=runs, jobs=1, **options)
    flows = (summary["flows"][0] for summary in recordings.summaries())
    return [[flow["goodput_bps"], flow["cwnd_packets"]["mean"]] for flow in flows]


def _page(done: dict[str, list[list[float]]], date: str) -> str:
    lines = [f"| | {' | '.join(PATHS)} |", "|---|" + "---|" * len(PATHS)]
    within = 0
    for name in NAMES:
        cells = []
        for path in PATHS:
            ours, theirs = (_mean(done[f"{engine} {path} {name}"]) for engine in ("sim", "vm"))
            goodput, cwnd = (own / known - 1 for own, known in zip(ours, theirs, strict=True))
            holds = (abs(goodput) <= GOODPUT, abs(cwnd) <= CWND)
            within += all(holds)
            shown = (f"{value * 100:+.1f}" for value in (goodput, cwnd))
            cells.append(" ".join(text if held else f"**{text}**"
                                  for text, held in zip(shown, holds, strict=True)))  # fmt: skip
        lines.append(f"| {name} | {' | '.join(cells)} |")
    paths = "\n".join(
        f"| {key} | {', '.join(f'{what} {value}' for what, value in path.items())} |"
        for key, path in PATHS.items()
    )
    return _HEAD.format(
        date=date, seeds=SEEDS, random_runs=RANDOM_RUNS, lossy_seeds=LOSSY_SEEDS,
        lossy_runs=LOSSY_RUNS, paths=paths,
        table="\n".join(lines), within=within, cells=len(NAMES) * len(PATHS),
    )  # fmt: skip


def _mean(runs: list[list[float]]) -> tuple[float, ...]:
    return tuple(sum(values) / len(values) for values in zip(*runs, strict=True))


if __name__ == "__main__":
    main()
