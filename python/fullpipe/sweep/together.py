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
from fullpipe.sweep.stopping import longer_runs, unsettled_cells
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
    until_settled: bool = False,
) -> Ran:
    """Runs what the store lacks of these sweeps; all are of one engine.

    `until_settled`: cells that had not settled run again, twice as long. Sweeps of one source have
    the same cells, which are to be compared: where one has to, all do.

    Raises UserError if a cell is no scenario or the engine cannot run it."""
    ran = Ran()
    wanted: list[tuple[Sweep, Run]] = []
    for sweep in sweeps:
        check_engine(sweep)
        cells = cells_of(sweep)
        wanted += [(sweep, run) for _, run in plan_runs(sweep, cells, sweep.seeds.least)]
        ran.cells.append(cells)
        write_asked(store, sweep, cells)
    while wanted:
        filled = fill(wanted, store, Pool(jobs), on_progress)
        ran.runs += len(wanted)
        ran.reused += filled.reused
        ran.failures |= filled.failures
        ran.interrupted = filled.interrupted
        if ran.interrupted:
            break
        wanted = _longer(sweeps, ran.cells, store) if until_settled else []
    store.compact()
    store.leave()
    return ran


def _longer(
    sweeps: Sequence[Sweep], cells: Sequence[Sequence[Cell]], store: Store
) -> list[tuple[Sweep, Run]]:
    runs = store.table("runs")
    again: dict[str, set[int]] = {}
    for sweep, sweep_cells in zip(sweeps, cells, strict=True):
        unsettled = unsettled_cells({cell.index: cell.keys for cell in sweep_cells}, runs)
        again.setdefault(sweep.source, set()).update(unsettled)
    wanted = []
    for sweep, sweep_cells in zip(sweeps, cells, strict=True):
        indices = sorted(again[sweep.source])
        planned = [entry for index in indices for entry in longer_runs(sweep, sweep_cells[index])]
        if planned:
            write_asked(store, sweep, sweep_cells)
        wanted += [(sweep, run) for _, run in planned]
    return wanted
