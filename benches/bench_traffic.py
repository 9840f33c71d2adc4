"""Traffic of many flows: the yardsticks against theory, and the speed and memory of the simulator.

Prints mean slowdown under processor sharing by size against 1 / (1 - load), mean time under SRPT
against Schrage and Miller's formula (Poisson arrivals, exponential work; target: within 1 % at
loads 0.3, 0.6 and 0.9), delivered data packets a CPU second of WebSearch flows at 10 Gbit/s and
load 0.5 (target: 1 million), and the growth of memory from a number of flows to ten times as many
that end (of 10 kB; target: at most 1.1 times). `--flows 1000000` is the million of WebSearch,
`--ended 1000000` that of flows that end; `--backbone` adds a run of bless2025, section VI (target:
60 CPU seconds). Exit status 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import Any

import numpy as np
from processes import peak_kib, simulated
from scipy import integrate
from targets import Targets

from fullpipe import _native

#: Jobs at each load: the errors of means grow as the load does.
JOBS = {0.3: 2_000_000, 0.6: 5_000_000, 0.9: 40_000_000}
#: Work done, so that 40 million jobs need no more memory than these.
PART = 5_000_000
WEBSEARCH_BYTES = 1.789e6


def schrage_miller(load: float) -> float:
    """Mean time in the system under SRPT, exponential work of mean 1 (Schrage and Miller, 1966)."""

    def load_to(x: float) -> float:
        return load * (1 - math.exp(-x) * (1 + x))

    def second(x: float) -> float:
        return 2 - math.exp(-x) * (x * x + 2 * x + 2)

    def time_of(x: float) -> float:
        busy = 1 - load_to(x)
        waits = load / 2 * (second(x) + x * x * math.exp(-x)) / busy**2
        serves, _ = integrate.quad(lambda y: 1 / (1 - load_to(y)), 0, x)
        return waits + serves

    found, _ = integrate.quad(lambda x: time_of(x) * math.exp(-x), 0, 60, limit=400)
    return float(found)


def yardsticks(load: float, jobs: int) -> tuple[float, float, float]:
    """(mean slowdown of small jobs, of large ones, over theory, under PS; mean time under SRPT over
    theory)."""
    rng = np.random.default_rng(7)
    small, large, served = [], [], []
    for _ in range(max(1, jobs // PART)):
        count = min(jobs, PART)
        arrivals = np.cumsum(rng.exponential(1 / load, count))
        works = rng.exponential(1.0, count)
        given = arrivals.tobytes(), works.tobytes()
        times = np.frombuffer(_native.traffic.fluid("ps", *given))
        low = works < math.log(2)
        # Means of times over means of works: single slowdowns of tiny jobs have no variance.
        small.append(times[low].sum() / works[low].sum())
        large.append(times[~low].sum() / works[~low].sum())
        served.append(np.frombuffer(_native.traffic.fluid("srpt", *given)).mean())
    ideal = 1 / (1 - load)
    means = [float(np.mean(values)) for values in (small, large, served)]
    return means[0] / ideal, means[1] / ideal, means[2] / schrage_miller(load)


def drop(_columns: object) -> None:
    """Rows of a run that nobody reads."""


def flows_of(flows: int, sizes: str, wire_bytes: float) -> dict[str, Any]:
    """So many flows, about, at 10 Gbit/s and load 0.5; `wire_bytes`: of a flow, on average."""
    return {
        "duration": f"{flows * wire_bytes * 8 / 5e9:.3f}s", "sample_interval": "1s",
        "path": {"rate": "10gbit", "rtt": "10ms", "buffer": "1bdp"},
        "host": {"receive_aggregation": "20us"},
        "traffic": [{"cc": "cubic", "load": 0.5, "sizes": sizes, "senders": 4}],
    }  # fmt: skip


def ended(flows: int) -> None:
    """Runs flows of 10 kB, which come and go by the hundred thousand in seconds."""
    simulated(flows_of(flows, "10KB", 10_700), rows=drop)


def backbone(length: str) -> dict[str, Any]:
    """A run of bless2025, section VI: CUBIC, 10 ms, collapsed."""
    return {
        "duration": length, "path": {"rate": "3gbit", "rtt": "10ms", "buffer": "8bdp"},
        "host": {"pacing": "fq", "receive_aggregation": "20us", "rmem_max": "500MB",
                 "wmem_max": "1000MB"},
        "traffic": [{"cc": "cubic", "trace": "mawi", "configuration": "collapsed", "senders": 2,
                     "trace_length": length}],
    }  # fmt: skip


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, default=5_000, help="WebSearch flows")
    parser.add_argument("--ended", type=int, default=200_000, help="flows of 10 kB")
    parser.add_argument("--jobs", type=float, default=1.0, help="part of the yardsticks' jobs")
    parser.add_argument("--backbone", metavar="LENGTH", help="bless2025's run, so long: 15min")
    options = parser.parse_args()
    targets = Targets()
    for load, jobs in JOBS.items():
        begin = time.process_time()
        ratios = yardsticks(load, int(jobs * options.jobs))
        spent = time.process_time() - begin
        shown = ", ".join(f"{100 * (ratio - 1):+.2f} %" for ratio in ratios)
        targets.hold(
            f"load {load}: PS small, PS large, SRPT against theory: {shown} ({spent:.1f} CPU s)",
            all(abs(ratio - 1) < 0.01 for ratio in ratios),
        )
    health, spent = simulated(flows_of(options.flows, "websearch", WEBSEARCH_BYTES), rows=drop)
    speed = health["packets_delivered"] / spent / 1e6
    targets.hold(
        f"{health['traffic_flows']} WebSearch flows at 10 Gbit/s: {speed:.2f} million packets a "
        f"CPU second, {health['traffic_connections']} connections (target: 1 million)",
        speed >= 1,
    )
    few, many = (
        peak_kib("bench_traffic", f"ended({flows})")
        for flows in (options.ended // 10, options.ended)
    )
    targets.hold(
        f"memory: {few / 1024:.0f} MiB for {options.ended // 10} flows of 10 kB, "
        f"{many / 1024:.0f} MiB for {options.ended} (target: at most 1.1 times)",
        many <= 1.1 * few,
    )
    if options.backbone:
        health, spent = simulated(backbone(options.backbone), rows=drop)
        targets.hold(
            f"bless2025, CUBIC, 10 ms, {options.backbone}: {health['traffic_flows']} flows, "
            f"{spent:.0f} CPU s, {health['packets_delivered'] / spent / 1e6:.2f} million packets a "
            "CPU second (target: 60 CPU s for 15min)",
            spent <= 60,
        )
    sys.exit(targets.status)


if __name__ == "__main__":
    main()
