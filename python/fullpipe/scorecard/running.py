"""Runs the sweeps of many items at once: one store, one executor, one progress bar.

This module only combines their cells; the sweep scheduler runs them. Must never judge a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import tomli_w

from fullpipe.sweep.cells import Cell, asked, cells_of, check_engine, plan_runs, sweep_id
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.pool import Pool
from fullpipe.sweep.running import work_of
from fullpipe.sweep.runs import Run
from fullpipe.sweep.schedule import Item, Progress, run_all
from fullpipe.sweep.store import Store


@dataclass
class Ran:
    """The result of several sweeps: their cells with the keys of runs, in the order of sweeps;
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

    Raises UserError if a cell is no scenario or the engine cannot run it."""
    ran = Ran()
    known = store.known()
    todo: dict[bool, dict[str, Run]] = {False: {}, True: {}}
    for sweep in sweeps:
        check_engine(sweep)
        cells = cells_of(sweep)
        for _, run in plan_runs(sweep, cells, sweep.seeds.least):
            ran.runs += 1
            if _is_there(store, run.facts.key, known, _keeps(sweep)):
                ran.reused += 1
            else:
                todo[_keeps(sweep)][run.facts.key] = run
        ran.cells.append(cells)
        store.write_sweep(sweep_id(sweep), asked(cells), tomli_w.dumps(sweep.document))
    for keep, lacking in todo.items():
        if lacking and not ran.interrupted:
            items = [Item(run, run.cost_s) for run in lacking.values()]
            work = replace(work_of(sweeps[0], store.folder), keep_recordings=keep)
            result = run_all(items, work, Pool(jobs), on_progress)
            ran.interrupted |= result.interrupted
            ran.failures |= {run.facts.key: reason for run, reason in result.failures}
    store.compact()
    return ran


def _keeps(sweep: Sweep) -> bool:
    return sweep.options.keep == "recordings"


def _is_there(store: Store, key: str, known: set[str], keep: bool) -> bool:
    return key in known and (not keep or store.recording(key).is_dir())
