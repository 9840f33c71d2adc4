"""A sweep from its file to its store: plans what is missing, runs it, adds seeds where the rule
asks for more, settles.

Decides what is run; where and in what order is the scheduler's. Must never judge a result.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field

import tomli_w

from fullpipe.base.errors import UserError
from fullpipe.engines.base import engine
from fullpipe.plan.resolve import resolve
from fullpipe.sweep.cells import Cell, Planned, Planner, asked, sweep_id
from fullpipe.sweep.collector import set_aside, without_collector
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.schedule import Executor, Item, Progress, run_all
from fullpipe.sweep.store import Store
from fullpipe.sweep.worker import Cells

#: Seeds that a round of the stopping rule adds, as a share of those that a cell has.
_GROWTH = 0.5


@dataclass(frozen=True)
class Shard:
    """Part `index` (from 1) of `count`: the runs whose keys fall into it. Keys are hashes, so the
    parts are alike, and whoever runs one needs to know nothing of the others."""

    index: int
    count: int

    def has(self, key: str) -> bool:
        """Whether a run belongs to it."""
        return int(key, 16) % self.count == self.index - 1


WHOLE = Shard(1, 1)


@dataclass
class Outcome:
    """What became of a sweep. `failures`: cell, seed and reason of runs that could not be done."""

    cells: int = 0
    reused: int = 0
    ran: int = 0
    failures: list[tuple[Cell, int, str]] = field(default_factory=list)
    interrupted: bool = False


@without_collector()
def run_sweep(
    sweep: Sweep,
    store: Store,
    executor: Executor,
    shard: Shard = WHOLE,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> Outcome:
    """Runs what the sweep asks for and the store lacks.

    Ctrl-C leaves what has ended. Raises UserError where a cell is no scenario, the engine cannot
    run it, or the stopping rule asks for what is no metric."""
    rule = sweep.seeds.rule
    if rule is not None:
        from fullpipe.sweep.stopping import check_metric  # the rule looks at tables

        check_metric(rule[0], f"{sweep.source}: sweep.seeds.until")
        if shard.count > 1:
            raise UserError("--shard: a rule to stop looks at all seeds of a cell; give a number")
    outcome = Outcome()
    work = store.workplace()
    work.mkdir()
    try:
        planner = Planner(sweep, work / "plans", deciding_options(sweep))
        cells = list(planner.cells())
        outcome.cells = len(cells)
        _check_engine(planner, cells)
        known = store.known()
        todo = planner.plan(cells, sweep.seeds.least)
        while True:
            rows = asked(cells)
            store.write_sweep(sweep_id(sweep), rows, tomli_w.dumps(sweep.document))
            _run(todo, known, planner, store, work, executor, shard, on_progress, outcome)
            if rule is None or outcome.interrupted:
                break
            todo = _more(planner, cells, store, rule, sweep.seeds.most or 0)
            if not todo:
                break
            known = store.known()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    store.settle()
    return outcome


def deciding_options(sweep: Sweep) -> dict[str, str]:
    """Options of the engine that decide a result."""
    return {"kernel": sweep.options.kernel} if sweep.options.kernel else {}


def missing(sweep: Sweep, store: Store | None, planner: Planner) -> tuple[list[Planned], int, int]:
    """(runs that are not there, cells, all runs): what `run_sweep` would begin with."""
    cells = list(planner.cells())
    known = store.known() if store else set()
    planned = planner.plan(cells, sweep.seeds.least)
    return [one for one in planned if one.run.facts.key not in known], len(cells), len(planned)


def _check_engine(planner: Planner, cells: list[Cell]) -> None:
    """The first cell of each kind would fail at once: say so before anything runs."""
    runs = engine(planner.sweep.options.engine)
    for cell in cells[:1]:
        runs.check(resolve(planner.scenario(cell)[1]))


def _run(
    todo: list[Planned],
    known: set[str],
    planner: Planner,
    store: Store,
    work: object,
    executor: Executor,
    shard: Shard,
    on_progress: Callable[[Progress], None],
    outcome: Outcome,
) -> None:
    mine = todo if shard.count == 1 else [one for one in todo if shard.has(one.run.facts.key)]
    lacking = [one for one in mine if one.run.facts.key not in known]
    # Cells may ask for the same run; it is run once.
    fresh = {one.run.facts.key: one for one in lacking}
    outcome.reused += len(mine) - len(lacking)
    options = planner.sweep.options
    group = Cells(
        store.folder.resolve(), planner.spool.resolve(), options.engine, planner.options,
        options.keep == "recordings",
    )  # fmt: skip
    with set_aside():
        result = run_all(
            [Item(planned.run, planned.cost_s) for planned in fresh.values()], group, executor,
            on_progress,
        )  # fmt: skip
    outcome.ran += result.done
    outcome.interrupted |= result.interrupted
    for run, reason in result.failures:
        planned = fresh[run.facts.key]
        outcome.failures.append((planned.cell, run.facts.seed, reason))


def _more(
    planner: Planner, cells: list[Cell], store: Store, rule: tuple[str, float], most: int
) -> list[Planned]:
    """Further seeds of the cells whose interval is too wide."""
    from fullpipe.sweep.stopping import widths

    metric, limit = rule
    tables = {name: store.table(name) for name in ("runs", "flows", "path")}
    found = widths(metric, {cell.index: cell.keys for cell in cells}, tables)
    planned: list[Planned] = []
    for cell in cells:
        count = len(cell.keys)
        if found[cell.index] >= limit and count < most:
            planned += planner.plan([cell], min(max(1, round(count * _GROWTH)), most - count))
    return planned
