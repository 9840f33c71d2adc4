"""Measures the test of settling (crates/fullpipe-metrics/src/settle.rs) on simulated runs: false
alarms in windows long after the start, hits in the tutorial's contest, and how often intervals of
`--until-settled` cover the mean of long runs. docs/evidence/settling.md has the results.

    python benches/bench_settling.py alarms [SEEDS]
    python benches/bench_settling.py coverage [GROUPS]
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from fullpipe import _native
from fullpipe.base.columns import as_numpy
from fullpipe.engines.tables import arrow_tables
from fullpipe.metrics.samples import samples_of
from fullpipe.metrics.settling import goes_on, settled_summary
from fullpipe.plan.facts import facts_of
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.statistics.intervals import half_width

#: Flows (algorithm, count), rate, base RTT, buffer, discipline.
CONTEST = ([("cubic", 1), ("bbr3", 1)], "20mbit", "40ms", "4bdp", "fifo")
SETTLED: dict[str, Any] = {
    "CUBIC beside BBRv3, 4 BDP": CONTEST,
    "CUBIC beside BBRv3, 1 BDP": (CONTEST[0], "20mbit", "40ms", "1bdp", "fifo"),
    "CUBIC beside BBRv3, FQ-CoDel": (CONTEST[0], "20mbit", "40ms", "4bdp", "fq_codel"),
    "CUBIC beside BBRv1, 2 BDP": ([("cubic", 1), ("bbr1", 1)], "20mbit", "40ms", "2bdp", "fifo"),
    "BBRv3 alone, 2 BDP": ([("bbr3", 1)], "20mbit", "40ms", "2bdp", "fifo"),
    "two BBRv3, 2 BDP": ([("bbr3", 2)], "20mbit", "40ms", "2bdp", "fifo"),
    "two BBRv1, 8 BDP": ([("bbr1", 2)], "20mbit", "40ms", "8bdp", "fifo"),
    "CUBIC alone, 1 BDP": ([("cubic", 1)], "20mbit", "40ms", "1bdp", "fifo"),
    "two CUBIC, 1 BDP": ([("cubic", 2)], "20mbit", "40ms", "1bdp", "fifo"),
    "two CUBIC, PIE": ([("cubic", 2)], "20mbit", "40ms", "4bdp", "pie"),
    "four Reno, 20 ms": ([("reno", 4)], "20mbit", "20ms", "1bdp", "fifo"),
    "five CUBIC, five BBRv3": ([("cubic", 5), ("bbr3", 5)], "50mbit", "20ms", "1bdp", "fifo"),
}
WINDOWS_S = (25, 60, 100, 200)
FROM_S, UNTIL_S = 150, 400


class Run:
    """A simulated run, measured within any window."""

    def __init__(self, setting: Any, seed: int, duration_s: int) -> None:
        groups, rate, rtt, buffer, qdisc = setting
        scenario = make_scenario({
            "duration": f"{duration_s}s",
            "path": {"rate": rate, "rtt": rtt, "buffer": buffer, "qdisc": qdisc},
            "flow": [{"cc": cc, "count": count} for cc, count in groups],
        }).repeated()  # fmt: skip
        self.plan = resolve(scenario, seed)
        self.tables = arrow_tables(_native.sim.run(json.dumps(self.plan)))

    def measured(self, start_s: float, end_s: float) -> tuple[dict[str, Any], float]:
        """Its settling, and the share of the first flow."""
        directions = self.tables["flows"]["direction"].to_pylist()
        facts = facts_of(self.plan, directions, 0)._replace(start_s=start_s, end_s=end_s)
        names = [queue.name for queue in facts.queues]
        found = _native.metrics.Run(facts, samples_of(self._column, names))
        columns = [name for name, _, _ in _native.metrics.TABLES["flow"]]
        share = found.flows()[0][columns.index("share")]
        return settled_summary(*found.settling(), end_s - start_s), share

    def _column(self, table: str, column: str) -> Any:
        return as_numpy(self.tables[table][column].combine_chunks())


def alarms(seeds: int) -> None:
    """Prints false alarms and windows that are too short to tell, by scenario and length, and hits
    in the tutorial's contest."""
    hits, total = 0, {length: [0, 0, 0] for length in WINDOWS_S}
    for name, setting in SETTLED.items():
        counts = {length: [0, 0, 0] for length in WINDOWS_S}
        for seed in range(1, seeds + 1):
            run = Run(setting, seed, UNTIL_S)
            if name == "CUBIC beside BBRv3, 4 BDP":
                hits += run.measured(5, 30)[0]["state"] == "not settled"
            for length in WINDOWS_S:
                for start in range(FROM_S, UNTIL_S - length + 1, length):
                    state = run.measured(start, start + length)[0]["state"]
                    counts[length][0] += state == "not settled"
                    counts[length][1] += state == "too short"
                    counts[length][2] += 1
        cells = [f"{flagged}, {short} of {count}" for flagged, short, count in counts.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        total = {
            length: [sum(pair) for pair in zip(total[length], counts[length], strict=True)]
            for length in WINDOWS_S
        }
    shares = [
        f"{100 * flagged / count:.1f} %, {100 * short / count:.0f} %"
        for flagged, short, count in total.values()
    ]
    print(f"| all | {' | '.join(shares)} |")
    print(f"hits: {hits} of {seeds}")


def coverage(groups: int, runs: int = 5) -> None:
    """Prints how often the 95 % interval of groups of runs covers the mean of long ones: of 30 s
    with 5 s warm-up, and of `--until-settled` from there."""
    rounds = [(5, 30), (30, 60), (60, 120), (120, 240), (240, 480)]
    long = [Run(CONTEST, 10_000 + seed, UNTIL_S) for seed in range(20)]
    truth = float(np.mean([run.measured(FROM_S, UNTIL_S)[1] for run in long]))
    covered, first, ended = 0, 0, []
    for group in range(groups):
        seeds = range(100 * group + 1, 100 * group + 1 + runs)
        mine = [Run(CONTEST, seed, rounds[-1][1]) for seed in seeds]
        for place, window in enumerate(rounds):
            found = [run.measured(*window) for run in mine]
            shares = [share for _, share in found]
            is_covered = abs(float(np.mean(shares)) - truth) <= half_width(shares)
            first += is_covered and place == 0
            states = [state for state, _ in found]
            if not goes_on(states) or place == len(rounds) - 1:
                covered += is_covered
                ended.append(window[1])
                break
    print(f"mean share of CUBIC in 20 runs from {FROM_S} s to {UNTIL_S} s: {truth:.3f}")
    print(f"30 s with 5 s warm-up: {first} of {groups} intervals cover it")
    print(f"until settled: {covered} of {groups}; durations {sorted(set(ended))}, "
          f"{[ended.count(one) for one in sorted(set(ended))]} times")  # fmt: skip


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    {"alarms": alarms, "coverage": coverage}[what](int(rest[0]) if rest else 10)
