"""Runs the sweeps of many items at once: one store, one executor, one bar of progress.

What is run and when is the scheduler's of sweeps; this only puts their cells together. Must never
judge a result.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tomli_w

from fullpipe.engines.base import engine
from fullpipe.plan.resolve import resolve
from fullpipe.sweep.cells import Cell, Planned, Planner, asked, sweep_id
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.pool import Pool
from fullpipe.sweep.running import deciding_options
from fullpipe.sweep.schedule import Item, Progress, run_all
from fullpipe.sweep.store import Store
from fullpipe.sweep.worker import Cells

#: File of plans by whether recordings are kept.
_SPOOLS = {False: "plans", True: "kept"}


@dataclass
class Ran:
    """What became of several sweeps: their cells with the keys of runs, in the order of sweeps;
    failed runs as key -> reason."""

    cells: list[list[Cell]] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    runs: int = 0
    reused: int = 0
    interrupted: bool = False


def run_together(
    sweeps: Sequence[Sweep],
    store: Store,
    jobs: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> Ran:
    """Runs what the store lacks of these sweeps; all are of one engine.

    Raises UserError where a cell is no scenario or the engine cannot run it."""
    ran = Ran()
    work = store.workplace()
    work.mkdir()
    try:
        known = store.known()
        todo: dict[bool, dict[str, Planned]] = {False: {}, True: {}}
        for sweep in sweeps:
            planner = Planner(sweep, work / _SPOOLS[_keeps(sweep)], deciding_options(sweep))
            cells = list(planner.cells())
            engine(sweep.options.engine).check(resolve(planner.scenario(cells[0])[1]))
            for planned in planner.plan(cells, sweep.seeds.least):
                key = planned.run.facts.key
                ran.runs += 1
                if _is_there(store, key, known, _keeps(sweep)):
                    ran.reused += 1
                else:
                    todo[_keeps(sweep)][key] = planned
            ran.cells.append(cells)
            store.write_sweep(sweep_id(sweep), asked(cells), tomli_w.dumps(sweep.document))
        for keep, lacking in todo.items():
            _run(keep, list(lacking.values()), sweeps[0], store, work, jobs, on_progress, ran)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    store.settle()
    return ran


def _keeps(sweep: Sweep) -> bool:
    return sweep.options.keep == "recordings"


def _is_there(store: Store, key: str, known: set[str], keep: bool) -> bool:
    return key in known and (not keep or store.recording(key).is_dir())


def _run(
    keep: bool,
    planned: list[Planned],
    sweep: Sweep,
    store: Store,
    work: Path,
    jobs: int | None,
    on_progress: Callable[[Progress], None],
    ran: Ran,
) -> None:
    if not planned or ran.interrupted:
        return
    options = sweep.options
    spool = (work / _SPOOLS[keep]).resolve()
    group = Cells(store.folder.resolve(), spool, options.engine, deciding_options(sweep), keep)
    items = [Item(one.run, one.cost_s) for one in planned]
    result = run_all(items, group, Pool(jobs), on_progress)
    ran.interrupted |= result.interrupted
    ran.failures |= {run.facts.key: reason for run, reason in result.failures}
