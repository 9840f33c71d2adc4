"""Speed and memory of the simulator, in CPU time.

Prints, each with its target: delivered data packets a CPU second of two flows (BBRv3 and CUBIC) at
1 Gbit/s, 40 ms, 1 BDP, and of two CUBIC flows through a Wi-Fi link of 300 Mbit/s, up and down, TCP
and ACKs included; simulated over CPU time of two BBRv3 flows at 10 Gbit/s, 20 ms; memory, and with
it simulated over CPU time, of four flows at 100 Gbit/s, 10 ms, and of 1,000 at 10 Gbit/s, 20 ms;
packets a CPU second under CAKE as a part of those under a FIFO, and over a Mahimahi trace as a part
of those over a constant rate of the same mean; the growth of memory from 60 s to 600 s. What is
compared runs alternately, and the best of `--runs` counts. Exit status 1 where a target is missed.

Usage: `.venv/bin/python benches/bench_speed.py [--runs 3] [--only PART]`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from processes import peak_kib, simulated
from targets import Targets

TWO = [{"cc": "bbr3"}, {"cc": "cubic"}]
KIB_PER_GIB = 1 << 20
FOUR = ["bbr3", "cubic", "bbr3", "cubic"]
#: 802.11n at 300 Mbit/s on the air.
WIFI = {"standard": "n", "width": 40, "streams": 2, "mcs": 15, "guard_interval": "400ns"}
#: Full packets a ms of the trace, and the same as a rate on the wire.
TRACE_PACKETS = 20
TRACE_RATE = f"{TRACE_PACKETS * 1514 * 8}kbit"


def measure(rate: str, rtt: str, ccs: list[str], duration_s: int, **path: str) -> tuple[float, int]:
    """(CPU seconds, delivered data packets) of one run."""
    return run({
        "duration": f"{duration_s}s",
        "path": {"rate": rate, "rtt": rtt, "buffer": "1bdp", **path},
        "flow": [{"cc": cc} for cc in ccs],
    })  # fmt: skip


def run(document: dict[str, Any]) -> tuple[float, int]:
    """(CPU seconds, delivered data packets) of one run."""
    health, seconds = simulated(document)
    return seconds, health["packets_delivered"]


def best(documents: list[dict[str, Any]], runs: int) -> list[float]:
    """Million packets per CPU second of each; runs alternate, so that load affects all alike."""
    found = [0.0] * len(documents)
    for _ in range(runs):
        for index, document in enumerate(documents):
            seconds, packets = run(document)
            found[index] = max(found[index], packets / seconds / 1e6)
    return found


def path(seconds: int, **keys: Any) -> dict[str, Any]:
    """Two flows at 1 Gbit/s."""
    keys = {"rate": "1gbit", "rtt": "40ms", "buffer": "1bdp", **keys}
    return {"duration": f"{seconds}s", "path": keys, "flow": TWO}


def wifi(direction: str) -> dict[str, Any]:
    """Two CUBIC flows at one station."""
    flow = {"cc": "cubic", "count": 2, "direction": direction}
    return {**path(20, rtt="20ms"), "wifi": WIFI, "flow": [flow]}


def link(**keys: Any) -> dict[str, Any]:
    """Two flows over one link of a row."""
    link = {"name": "link", "delay": "20ms", "buffer": "1MB", **keys}
    return {"duration": "20s", "link": [link], "flow": TWO}


def large(
    targets: Targets, text: str, case: tuple[str, str, list[str], int], most_gib: float
) -> None:
    """Memory of a run (`measure`'s arguments) with Python; its speed is in the text."""
    seconds, packets = measure(*case)
    speed = f"{case[-1] / seconds:.2f} simulated seconds and {packets / seconds / 1e6:.1f} million"
    memory = peak_kib("bench_speed", f"measure(*{case!r})") / KIB_PER_GIB
    targets.at_most(f"memory, {text} ({speed} packets a CPU second)", memory, "GiB", most_gib)


def figures(targets: Targets, runs: int, only: str) -> None:
    """All of them whose name contains `only`."""
    million = "million packets a CPU second"
    if only in "wire":
        (value,) = best([path(20)], runs)
        targets.at_least("1 Gbit/s, BBRv3 and CUBIC", value, million, 10)
        ten = ("10gbit", "20ms", ["bbr3", "bbr3"], 10)
        speed = max(ten[-1] / measure(*ten)[0] for _ in range(runs))
        targets.at_least("10 Gbit/s, two BBRv3", speed, "simulated seconds a CPU second", 12)
    if only in "large":
        large(targets, "100 Gbit/s, two BBRv3 and two CUBIC", ("100gbit", "10ms", FOUR, 2), 4)
        large(targets, "1,000 flows at 10 Gbit/s", ("10gbit", "20ms", FOUR * 250, 3), 1)
    if only in "wifi":
        up, down = best([wifi("up"), wifi("down")], runs)
        targets.at_least("Wi-Fi at 300 Mbit/s, up", up, million, 1)
        targets.at_least("Wi-Fi at 300 Mbit/s, down", down, million, 1)
    if only in "cake":
        fifo, cake = best([path(10), path(10, qdisc="cake")], runs)
        targets.at_least("CAKE at 1 Gbit/s", cake / fifo, "of a FIFO's packets a CPU second", 0.5)
    if only in "trace":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "steady.trace"
            times = (f"{ms}\n" * TRACE_PACKETS for ms in range(1, 1001))
            file.write_text("".join(times), encoding="utf-8")
            steady, traced = best([link(rate=TRACE_RATE), link(rate_trace=str(file))], runs)
        # Below 5 % runs of the same kind differ as much.
        targets.at_least("Mahimahi trace", traced / steady, "of a constant rate's packets", 0.95)
    if only in "memory":
        case = "measure('1gbit', '40ms', ['bbr3', 'cubic'], {})"
        short, long = (peak_kib("bench_speed", case.format(seconds)) for seconds in (60, 600))
        text = f"memory, {short / 1024:.0f} MiB for 60 s"
        targets.at_most(text, long / short, "times that for 600 s", 1.2)


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="wire, large, wifi, cake, trace, memory")
    options = parser.parse_args()
    targets = Targets()
    figures(targets, options.runs, options.only)
    sys.exit(targets.status)


if __name__ == "__main__":
    main()
