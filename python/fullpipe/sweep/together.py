"""Runs the sweeps of many items at once: one store, one executor, one progress bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fullpipe.sweep.cells import Cell, cells_of, check_engine, plan_runs
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.filling import fill, write_asked
from fullpipe.sweep.pool import Pool
from fullpipe.sweep.runs import Run
from fullpipe.sweep.schedule import Progress
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
    wanted: list[tuple[Sweep, Run]] = []
    for sweep in sweeps:
        check_engine(sweep)
        cells = cells_of(sweep)
        wanted += [(sweep, run) for _, run in plan_runs(sweep, cells, sweep.seeds.least)]
        ran.cells.append(cells)
        write_asked(store, sweep, cells)
    filled = fill(wanted, store, Pool(jobs), on_progress)
    ran.runs, ran.reused = len(wanted), filled.reused
    ran.failures, ran.interrupted = filled.failures, filled.interrupted
    store.compact()
    return ran
