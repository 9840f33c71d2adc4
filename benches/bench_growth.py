"""What a delivered packet costs the simulator where the work grows: instructions, which do not
depend on the machine's load, unlike seconds.

Prints, each with its target: instructions a packet over a FIFO at 1 Gbit/s (BBRv3 and CUBIC), of
1 to 10,000 CUBIC flows there, of 1,000 and 50,000 short flows a second, under queue disciplines (8
flows, 100 Mbit/s), over Wi-Fi with 1, 4 and 32 stations, and of a BBRv3 flow with and without
reordering; and the memory of 10,000 flows. Setting up and recording count, reading the plan does
not. Exit status 1 where a target is missed.

Needs valgrind, and the simulator as wheels ship it: `cargo build --profile wheel -p fullpipe-sim
--example run_plan`.

Usage: `.venv/bin/python benches/bench_growth.py [--only PART] [--program FILE]`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from processes import peak_kib, simulated
from targets import Targets

from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

PROGRAM = Path(__file__).parent.parent / "target/wheel/examples/run_plan"
#: The whole run of the simulator, without the reading of its plan and the digest of its recording.
RUN = "fullpipe_sim::sim::run*"
#: 802.11n at 300 Mbit/s on the air.
WIFI = {"standard": "n", "width": 40, "streams": 2, "mcs": 15, "guard_interval": "400ns"}


class Counter:
    """Counts the instructions of runs."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def a_packet(self, document: dict[str, Any]) -> float:
        """Instructions a delivered data packet."""
        with tempfile.TemporaryDirectory() as folder:
            plan = Path(folder) / "plan.json"
            plan.write_text(json.dumps(resolve(make_scenario(document))), encoding="utf-8")
            done = subprocess.run(
                ["valgrind", "--tool=callgrind", f"--toggle-collect={RUN}",
                 f"--callgrind-out-file={folder}/counts", str(self._program), str(plan)],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
        packets = re.search(r" (\d+) packets", done.stdout)
        instructions = re.search(r"Collected : (\d+)", done.stderr)
        assert packets and instructions, done.stderr
        return int(instructions[1]) / int(packets[1])


def path(seconds: float, flows: list[dict[str, Any]], **keys: Any) -> dict[str, Any]:
    """Flows over one bottleneck of 1 Gbit/s."""
    keys = {"rate": "1gbit", "rtt": "40ms", "buffer": "1bdp", **keys}
    return {"duration": f"{seconds}s", "path": keys, "flow": flows}


def cubic(count: int, seconds: float) -> dict[str, Any]:
    """So many CUBIC flows that start together."""
    return path(seconds, [{"cc": "cubic", "count": count}])


def short(flows_per_s: int, seconds: float) -> dict[str, Any]:
    """Flows of 10 kB that come and go."""
    keys = {"rate": "10gbit", "rtt": "20ms", "buffer": "1bdp"}
    traffic = {"cc": "cubic", "flows_per_s": flows_per_s, "sizes": "10KB"}
    return {"duration": f"{seconds}s", "path": keys, "traffic": [traffic]}


def wifi(stations: int) -> dict[str, Any]:
    """A CUBIC flow to each station."""
    names = [f"s{index}" for index in range(stations)]
    flows = [{"cc": "cubic", "direction": "down", "station": name} for name in names]
    station = [{"name": name} for name in names]
    return {**path(2, flows, rtt="20ms"), "wifi": {**WIFI, "station": station}}


def reordered(mbit: int, seconds: float, share: str) -> dict[str, Any]:
    """A BBRv3 flow whose packets overtake others with this probability."""
    link = {
        "name": "link", "rate": f"{mbit}mbit", "delay": "25ms", "reorder": share,
        "buffer": f"{mbit * 6250}B",
    }  # fmt: skip
    return {"duration": f"{seconds}s", "link": [link], "flow": [{"cc": "bbr3"}]}


def begin(count: int) -> None:
    """Runs so many flows for so short a time that little is recorded."""
    simulated(cubic(count, 0.2))


def bounded(targets: Targets, name: str, value: float, most: int | None = None) -> None:
    """A count of instructions, with its target if it has one."""
    limit = "" if most is None else f" (at most {most})"
    text = f"{name}: {value:.0f} instructions a packet{limit}"
    targets.hold(text, most is None or value <= most)


def figures(counter: Counter, targets: Targets, only: str) -> None:
    """All of them whose part contains `only`."""
    unit, times = "instructions a packet", "times that"
    two = [{"cc": "bbr3"}, {"cc": "cubic"}]
    if only in "fifo":
        value = counter.a_packet(path(5, two))
        bounded(targets, "FIFO, BBRv3 and CUBIC", value, 1150)
    if only in "flows":
        first = counter.a_packet(cubic(1, 2))
        bounded(targets, "1 flow", first)
        for count, seconds in ((100, 2), (1000, 2), (10_000, 1)):
            value = counter.a_packet(cubic(count, seconds))
            name = f"{count:,} flows, {value:.0f} {unit}"
            targets.at_most(name, value / first, f"{times} of one", 6)
    if only in "short":
        few, many = counter.a_packet(short(1000, 1)), counter.a_packet(short(50_000, 0.1))
        name = f"50,000 short flows a second, {many:.0f} {unit}"
        targets.at_most(name, many / few, f"{times} of 1,000 ({few:.0f})", 1.3)
    if only in "disciplines":
        eight = [{"cc": "bbr3", "count": 4}, {"cc": "cubic", "count": 4}]
        for qdisc, most in (("fifo", None), ("codel", None), ("fq_codel", 2200), ("cake", 2800)):
            value = counter.a_packet(path(3, eight, rate="100mbit", qdisc=qdisc))
            bounded(targets, f"8 flows, {qdisc}", value, most)
    if only in "wifi":
        one, four, many = (counter.a_packet(wifi(stations)) for stations in (1, 4, 32))
        bounded(targets, "4 stations", four, 4300)
        name = f"32 stations, {many:.0f} {unit}"
        targets.at_most(name, many / one, f"{times} of one ({one:.0f})", 1.2)
    if only in "reordering":
        for mbit, seconds in ((100, 4), (500, 2), (2000, 1)):
            bare, value = (counter.a_packet(reordered(mbit, seconds, x)) for x in ("0%", "1%"))
            name = f"1 % reordered at {mbit} Mbit/s, {value:.0f} {unit}"
            targets.at_most(name, value / bare, f"{times} without ({bare:.0f})", 2)
    if only in "memory":
        few, many = (peak_kib("bench_growth", f"begin({count})") for count in (10, 10_000))
        kib = (many - few) / 10_000
        targets.at_most("memory of a flow, its plan included", kib, "KiB", 8)


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default="", help="fifo, flows, short, disciplines, wifi, reordering, memory"
    )
    parser.add_argument("--program", type=Path, default=PROGRAM, help="the built run_plan")
    options = parser.parse_args()
    targets = Targets()
    figures(Counter(options.program), targets, options.only)
    sys.exit(targets.status)


if __name__ == "__main__":
    main()
