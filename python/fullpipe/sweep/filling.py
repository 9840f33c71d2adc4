"""Runs what a store lacks, for one sweep or for many at once. Must never judge a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tomli_w

from fullpipe.sweep.cells import Cell, asked, sweep_id
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.runs import Run
from fullpipe.sweep.schedule import Executor, Item, Progress, run_all
from fullpipe.sweep.store import Store
from fullpipe.sweep.worker import Cells


@dataclass
class Filled:
    """What became of runs. `failures`: their keys, and why they failed."""

    reused: int = 0
    ran: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


def fill(
    wanted: Iterable[tuple[Sweep, Run]],
    store: Store,
    executor: Executor,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> Filled:
    """Does the runs that are not there, with their recordings where a sweep keeps them. What two
    ask for is run once. All sweeps are of one engine. Ctrl-C keeps the runs that have ended."""
    filled, stored = Filled(), store.keys()
    todo: dict[bool, dict[str, Run]] = {False: {}, True: {}}
    works: dict[bool, Cells] = {}
    for sweep, run in wanted:
        key, keep = run.facts.key, keeps_recordings(sweep)
        if key in stored and (not keep or store.recording(key).is_dir()):
            filled.reused += 1
            continue
        todo[keep][key] = run
        works.setdefault(keep, work_of(sweep, store.folder))
    for keep, work in works.items():
        if filled.interrupted:
            break
        items = [Item(run, run.cost_s) for run in todo[keep].values()]
        result = run_all(items, work, executor, on_progress)
        filled.ran += result.done
        filled.interrupted |= result.interrupted
        filled.failures |= {run.facts.key: reason for run, reason in result.failures}
    return filled


def write_asked(store: Store, sweep: Sweep, cells: Sequence[Cell]) -> None:
    """Stores what a sweep asks for, and its file; it becomes the store's newest."""
    document = tomli_w.dumps(sweep.document)
    store.write_sweep(sweep_id(sweep), asked(cells), document, sweep.title)


def keeps_recordings(sweep: Sweep) -> bool:
    """Whether a sweep keeps recordings beside its metrics."""
    return sweep.options.keep == "recordings"


def work_of(sweep: Sweep, folder: Path) -> Cells:
    """What does the runs of a sweep and adds them to the store in a folder."""
    options = sweep.options
    return Cells(
        folder.resolve(), options.engine, options.engine_options(), keeps_recordings(sweep)
    )
