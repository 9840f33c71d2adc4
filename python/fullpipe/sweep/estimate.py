"""What a sweep will take, time and disk, from short trials of a few of its runs.

Must never write into a store.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic_core import to_json

from fullpipe.base.scratch import scratch
from fullpipe.sweep.cells import Planned
from fullpipe.sweep.runs import Run, cost_s
from fullpipe.sweep.store import Store
from fullpipe.sweep.worker import Cells

#: Runs that are tried, from the cheapest to the dearest, and how long one may take (CPU s).
_TRIALS = 3
_TRIAL_S = 1.0


@dataclass(frozen=True)
class Estimate:
    """CPU seconds of all runs together, and bytes that their results take."""

    cpu_s: float
    disk_bytes: float
    trials: int


def estimate(planned: Sequence[Planned], cells: Cells) -> Estimate:
    """Tries a few of the runs, shortened where they are long, and scales the result to all by
    their rough costs. On engines that boot a kernel nothing is tried: booting dominates."""
    if not planned:
        return Estimate(0.0, 0.0, 0)
    ordered = sorted((entry.run for entry in planned), key=lambda run: run.cost_s)
    total = sum(run.cost_s for run in ordered)
    if cells.engine != "sim":
        return Estimate(total, 4e3 * len(planned), 0)
    indices = {round(i * (len(ordered) - 1) / max(_TRIALS - 1, 1)) for i in range(_TRIALS)}
    short = [_shortened(ordered[index]) for index in sorted(indices)]
    with scratch("fullpipe-trial-") as folder:
        store = Store(folder / "store", create=True)
        first = Store(folder / "first", create=True)
        replace(cells, store=first.folder)(short[:1])  # loads what every process loads once
        trial = replace(cells, store=store.folder)
        begin = time.process_time()
        trial(short)
        spent = time.process_time() - begin
        size = sum(file.stat().st_size for file in store.folder.rglob("*") if file.is_file())
        if not cells.keep_recordings:  # a part's frame is larger than the few rows in it
            size = 400 * len(short)
    rough = sum(run.cost_s for run in short)
    return Estimate(total * spent / rough, size / len(short) * len(planned), len(short))


def _shortened(run: Run) -> Run:
    """The run with its duration cut to what a trial may take."""
    plan = json.loads(run.plan)
    share = min(1.0, _TRIAL_S / run.cost_s)
    plan["duration_ns"] = max(2 * plan["sample_interval_ns"], int(plan["duration_ns"] * share))
    return run._replace(plan=to_json(plan), cost_s=cost_s(plan, "sim"))
