"""Trials in this process: scenarios through the scheduler of sweeps, on threads (the simulator
releases Python's lock), measured as the runs of any sweep.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

import pyarrow as pa

from fullpipe.base.errors import RunError, UserError
from fullpipe.base.machine import cores
from fullpipe.engines import engine
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.measures import Rows
from fullpipe.sweep.runs import Run, run_of
from fullpipe.sweep.schedule import Failure, Group, Item, LostError, Work, run_all

Tables = dict[str, pa.Table]


class Threads:
    """An executor of this process (sweep.schedule.Executor)."""

    group_s = 0.02

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
        """Waits for the running trials, which are short."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def run_trials(documents: Sequence[Mapping[str, Any]], jobs: int | None) -> list[Tables | None]:
    """The rows of each scenario's one run (sweep.tables.SCHEMAS); None if it failed.

    Raises UserError if one is no scenario."""
    items: list[Item] = []
    for index, document in enumerate(documents):
        scenario = make_scenario(document, f"trial {index}")
        run = run_of(scenario, scenario.seed, "sim")
        items.append(Item((index, run), run.cost_s))
    tables: list[Tables | None] = [None] * len(items)

    def work(payloads: Sequence[tuple[int, Run]]) -> list[Failure]:
        failures: list[Failure] = []
        for position, (index, run) in enumerate(payloads):
            rows = Rows()
            try:
                _measure(run, rows)
            except (RunError, UserError) as error:
                failures.append(Failure(position, str(error)))
            else:
                tables[index] = rows.take()
        return failures

    if run_all(items, work, Threads(jobs)).interrupted:
        raise KeyboardInterrupt
    return tables


def _measure(run: Run, rows: Rows) -> None:
    if run.external:  # runs in a worker, which the engine has
        result = engine("sim").run(json.loads(run.plan), lambda _done: True, {})
        rows.add(run.facts, result.tables)
        return
    for _, error in rows.simulate([(run.facts, run.plan)]):
        raise RunError(str(error)) from error
