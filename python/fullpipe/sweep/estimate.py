"""What a sweep will take: time and disk, from short trials of a few of its runs.

Must never write into a store.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fullpipe.engines.scratch import scratch
from fullpipe.sweep.cells import Planned, cost_s
from fullpipe.sweep.spool import Spool, joined, opened
from fullpipe.sweep.store import Store
from fullpipe.sweep.worker import Cells, Run

#: Runs that are tried, from the cheapest to the dearest, and how long one may take.
_TRIALS = 3
_TRIAL_S = 1.0


@dataclass(frozen=True)
class Estimate:
    """CPU seconds of all runs together, and bytes that their results take."""

    cpu_s: float
    disk_bytes: float
    trials: int


def estimate(planned: Sequence[Planned], spool: Path, cells: Cells) -> Estimate:
    """Tries a few of the runs, shortened where they are long, and extends to all by what each is
    thought to cost. On engines that boot a kernel nothing is tried: their boot is the cost."""
    if not planned:
        return Estimate(0.0, 0.0, 0)
    ordered = sorted(planned, key=lambda one: one.cost_s)
    total = sum(one.cost_s for one in planned)
    if cells.engine != "sim":
        return Estimate(total, 4e3 * len(planned), 0)
    places = {round(i * (len(ordered) - 1) / max(_TRIALS - 1, 1)) for i in range(_TRIALS)}
    chosen = [ordered[place] for place in sorted(places)]
    with scratch("fullpipe-trial-") as folder:
        store = Store(folder / "store", create=True)
        short, thought = _shortened(chosen, spool, folder / "plans")
        trial = Cells(store.folder, folder / "plans", "sim", {}, cells.keep_recordings)
        trial(short[:1])  # what is loaded once is no part of a run
        begin = time.process_time()
        trial(short)
        spent = time.process_time() - begin
        size = sum(file.stat().st_size for file in store.folder.rglob("*") if file.is_file())
        if not cells.keep_recordings:  # a part's frame costs more than the few rows in it
            size = 400 * len(short)
    return Estimate(total * spent / thought, size / len(short) * len(planned), len(short))


def _shortened(chosen: Sequence[Planned], spool: Path, out: Path) -> tuple[list[Run], float]:
    """The runs with durations cut to what a trial may take, and their cost as it is thought."""
    runs, thought, target = [], 0.0, Spool(out)
    with opened(spool) as pieces:
        for one in chosen:
            plan = json.loads(joined(pieces, one.run.plan))
            share = min(1.0, _TRIAL_S / one.cost_s)
            least = 2 * plan["sample_interval_ns"]
            plan["duration_ns"] = max(least, int(plan["duration_ns"] * share))
            thought += cost_s(plan, "sim")
            span = target.put(json.dumps(plan).encode())
            runs.append(one.run._replace(plan=(span,), document=()))
    target.flush()
    return runs, thought
