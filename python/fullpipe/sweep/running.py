"""A sweep from its file to its store: plans what is missing, runs it, adds seeds where the rule
asks for more, compacts.

Decides what runs; the scheduler decides where and in what order. Must never judge a result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fullpipe.base.errors import UserError
from fullpipe.sweep.cells import (
    Cell,
    Planned,
    cells_of,
    check_engine,
    plan_runs,
    sweep_id,
)
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.filling import fill, write_asked
from fullpipe.sweep.schedule import Executor, Progress
from fullpipe.sweep.store import Store

#: Seeds that a round of the stopping rule adds, as a share of those that a cell has.
_GROWTH = 0.5
#: Interval between two reports of progress while cells are planned (s).
_PLANNING_S = 0.5


@dataclass(frozen=True)
class Shard:
    """Part `index` (from 1) of `count`: the runs whose keys fall into it. Keys are hashes, so the
    parts have about the same size, and each can be run without knowing the others."""

    index: int
    count: int

    def has(self, key: str) -> bool:
        """Whether the run with this key belongs to it."""
        return int(key, 16) % self.count == self.index - 1


WHOLE = Shard(1, 1)


@dataclass
class Outcome:
    """What became of a sweep, whose name in the store is `sweep`. `failures`: cell, seed and reason
    of runs that could not be done."""

    sweep: str = ""
    cells: int = 0
    reused: int = 0
    ran: int = 0
    failures: list[tuple[Cell, int, str]] = field(default_factory=list)
    interrupted: bool = False
    #: Sentences about files of the store that were damaged and set aside.
    damaged: list[str] = field(default_factory=list)


def run_sweep(
    sweep: Sweep,
    store: Store,
    executor: Executor,
    shard: Shard = WHOLE,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> Outcome:
    """Runs what the sweep asks for and the store lacks.

    Ctrl-C keeps the runs that have ended. Raises UserError where a cell is no scenario, the engine
    cannot run it, or the stopping rule names no metric."""
    rule, until_settled = sweep.seeds.rule, sweep.options.until_settled
    if rule is not None:
        from fullpipe.sweep.stopping import check_metric

        check_metric(rule[0], f"{sweep.source}: sweep.seeds.until")
    if shard.count > 1 and (rule is not None or until_settled):
        raise UserError("--shard: a rule to stop looks at all seeds of a cell; give a number")
    try:
        check_engine(sweep)
        cells = cells_of(sweep)
        todo = plan_runs(sweep, cells, sweep.seeds.least, _planning(len(cells), on_progress))
    except UserError:
        store.withdraw()
        raise
    outcome = Outcome(sweep_id(sweep), cells=len(cells), damaged=store.mend())
    while True:
        write_asked(store, sweep, cells)
        _run(sweep, todo, store, executor, shard, on_progress, outcome)
        if outcome.interrupted:
            break
        todo = _longer(sweep, cells, store) if until_settled else []
        if rule is not None and not todo:
            todo = _more(sweep, cells, store, rule)
        if not todo:
            break
    store.compact()
    store.leave()
    return outcome


def _planning(total: int, on_progress: Callable[[Progress], None]) -> Callable[[int], None]:
    """Reports how many cells are planned, twice a second."""
    begin = shown = time.monotonic()

    def report(done: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if done and now - shown >= _PLANNING_S:
            shown = now
            per_s, share = done / max(now - begin, 1e-9), done / total
            on_progress(Progress(done, total, 0, share, (total - done) / per_s, per_s, True))

    return report


def missing(sweep: Sweep, store: Store | None) -> tuple[list[Planned], int, int]:
    """(runs that are not there, cells, all runs): what `run_sweep` would begin with."""
    cells = cells_of(sweep)
    stored = store.keys() if store else set()
    planned = plan_runs(sweep, cells, sweep.seeds.least)
    return (
        [entry for entry in planned if entry.run.facts.key not in stored],
        len(cells),
        len(planned),
    )


def _run(
    sweep: Sweep,
    todo: list[Planned],
    store: Store,
    executor: Executor,
    shard: Shard,
    on_progress: Callable[[Progress], None],
    outcome: Outcome,
) -> None:
    of_shard = {
        planned.run.facts.key: planned for planned in todo if shard.has(planned.run.facts.key)
    }
    wanted = [(sweep, run) for _, run in todo if run.facts.key in of_shard]
    filled = fill(wanted, store, executor, on_progress)
    outcome.reused += filled.reused
    outcome.ran += filled.ran
    outcome.interrupted |= filled.interrupted
    for key, reason in filled.failures.items():
        cell, run = of_shard[key]
        outcome.failures.append((cell, run.facts.seed, reason))


def _longer(sweep: Sweep, cells: list[Cell], store: Store) -> list[Planned]:
    """The runs of the cells that had not settled, twice as long; they take the place of those."""
    from fullpipe.sweep.stopping import longer_runs, unsettled_cells

    unsettled = unsettled_cells({cell.index: cell.keys for cell in cells}, store.table("runs"))
    return [entry for index in unsettled for entry in longer_runs(sweep, cells[index])]


def _more(sweep: Sweep, cells: list[Cell], store: Store, rule: tuple[str, float]) -> list[Planned]:
    """Further seeds of the cells whose interval is too wide."""
    from fullpipe.sweep.stopping import widths

    metric, limit = rule
    tables = {name: store.table(name) for name in ("runs", "flows", "path")}
    width_of = widths(metric, {cell.index: cell.keys for cell in cells}, tables)
    planned: list[Planned] = []
    for cell in cells:
        count, most = len(cell.keys), sweep.seeds.most or 0
        if width_of[cell.index] >= limit and count < most:
            further = min(max(1, round(count * _GROWTH)), most - count)
            planned += plan_runs(sweep, [cell], further)
    return planned
