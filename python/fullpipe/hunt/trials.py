"""Trials in this process: the cells of a sweep through the scheduler of sweeps, on threads (the
simulator runs without Python's lock), measured as any sweep's runs are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

import pyarrow as pa
from pydantic_core import to_json

from fullpipe import _native, outside
from fullpipe.engines.scratch import scratch
from fullpipe.plan import resolve
from fullpipe.sweep.cells import Planner, cost_s
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.measures import Facts, facts_of, measured
from fullpipe.sweep.pool import cores
from fullpipe.sweep.schedule import Failure, Group, Item, LostError, Work, run_all

Tables = dict[str, pa.Table]


class Threads:
    """An executor of this process (sweep.schedule.Executor)."""

    def __init__(self, width: int | None) -> None:
        self.width = width or cores()
        self._pool = ThreadPoolExecutor(self.width)

    def run(
        self, work: Work, groups: Iterator[Group]
    ) -> Iterator[tuple[Group, list[Failure] | LostError | None]]:
        """See `schedule.Executor`."""
        pending: dict[Future[list[Failure]], Group] = {}
        while True:
            for group in islice(groups, self.width - len(pending)):
                pending[self._pool.submit(work, [item.payload for item in group.items])] = group
            if not pending:
                return
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                yield pending.pop(future), future.result()

    def close(self) -> None:
        """Waits for what runs: a trial takes no longer than a moment."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def run_trials(sweep: Sweep, jobs: int | None) -> list[Tables | None]:
    """The rows of each cell's one run (sweep.measures.SCHEMAS); None where it failed.

    Raises UserError where a cell is no scenario."""
    items: list[Item] = []
    with scratch("fullpipe-trials-") as folder:
        planner = Planner(sweep, folder / "plans", {})
        for cell in planner.cells():
            _, scenario = planner.scenario(cell)
            plan = resolve(scenario)
            for flow in plan["flows"]:
                if outside.is_outside(flow["cc"]["algorithm"]):
                    outside.load(flow["cc"]["algorithm"])
            facts = facts_of(str(cell.index), plan, plan["seed"], "sim", scenario.warmup)
            items.append(Item((facts, to_json(plan).decode()), cost_s(plan, "sim")))
    found: list[Tables | None] = [None] * len(items)

    def work(payloads: Sequence[tuple[Facts, str]]) -> list[Failure]:
        failures = []
        for index, (facts, text) in enumerate(payloads):
            try:
                found[int(facts.key)] = measured([(facts, _native.sim.run(text))])
            except (ValueError, RuntimeError) as error:
                failures.append(Failure(index, str(error)))
        return failures

    if run_all(items, work, Threads(jobs), group_s=0.02).interrupted:
        raise KeyboardInterrupt
    return found
