"""The functions of the Python API: run scenarios and sweeps, query models, open recordings.

Each function is a thin wrapper; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import tomli_w

from fullpipe.api.recordings import Recordings
from fullpipe.base.errors import RunError, UserError
from fullpipe.congestion.controller import Controller
from fullpipe.recording.recording import Recording

if TYPE_CHECKING:
    from fullpipe.api.stores import SweepResults
    from fullpipe.models.predict import Prediction
    from fullpipe.scenario.model import Scenario


def run(
    scenario: Mapping[str, Any] | str | Path,
    *,
    engine: str = "sim",
    seeds: int | Iterable[int] = 1,
    jobs: int | None = None,
    out: str | Path | None = None,
    changes: Iterable[str] = (),
    on_progress: Callable[[float], None] | None = None,
    **options: Any,
) -> Recordings:
    """Runs a scenario and returns its recordings.

    `scenario`: a TOML file, or a dictionary of the file's shape (docs/reference/scenario.md), in
    which `cc`
    may be a class of `fullpipe.Controller`. `engine`: sim, vm or live; `options` are the engine's,
    such as `kernel="6.12"`. `seeds`: how many runs, from the scenario's seed on, or the seeds
    themselves. Several run in `jobs` processes (default: all cores), with a spread of starts;
    classes passed as `cc` run in this process. `changes`: as `--set`, "path.rate=10mbit".
    `on_progress` is called with the share done, 0 to 1. `out`: a folder that keeps the recordings;
    without it they are deleted with the last object that refers to one.

    Raises UserError for bad input (also what a Controller raises, with its line), RunError if a
    run failed, KeyboardInterrupt where it was interrupted."""
    from fullpipe.engines import engine_names
    from fullpipe.engines.run import runs_of, seeds_of
    from fullpipe.engines.runner import execute

    if engine not in engine_names():
        raise UserError(f"engine {engine!r}: unknown; known are {', '.join(engine_names())}")
    made, toml = _scenario(scenario, changes)
    wanted = seeds_of(made, seeds) if isinstance(seeds, int) else list(seeds)
    if not wanted or len(set(wanted)) < len(wanted):
        raise UserError(f"seeds: {seeds!r}: at least one, and none twice")
    keeps = TemporaryDirectory(prefix="fullpipe-") if out is None else None
    base = Path(keeps.name) / "runs" if keeps is not None else Path(out or "")
    several = [base / f"run-{index:03d}" for index in range(len(wanted))]
    folders = [base] if len(wanted) == 1 else several
    engine_options = {name: str(value) for name, value in options.items()}
    runs = runs_of(made, toml, wanted, engine, engine_options)
    outcome = execute(runs, folders, on_progress or (lambda _share: None), jobs)
    if outcome.interrupted:
        raise KeyboardInterrupt
    if outcome.failures:
        raise RunError("; ".join(outcome.failures))
    return Recordings(outcome.recordings, keeps)


def load(*paths: str | Path) -> Recordings:
    """The recordings in these folders: each is one, or has some below it.

    Raises RecordingError if a folder has none, or one is damaged."""
    recordings: list[Recording] = []
    for path in map(Path, paths):
        inner = sorted(file.parent for file in path.glob("**/metadata.json"))
        recordings += [Recording.open(folder) for folder in inner or [path]]
    return Recordings(recordings)


def run_sweep(
    file: Mapping[str, Any] | str | Path,
    *,
    out: str | Path,
    jobs: int | None = None,
    changes: Iterable[str] = (),
) -> SweepResults:
    """Runs the cells of a sweep that a store lacks (docs/reference/sweeps.md), and returns what
    the store has of this sweep.

    `file`: a TOML file, or a dictionary of its shape (`scenario`, `axis`, `sweep`). `out`: the
    store's folder; what is there is not run again. Raises UserError for bad input, RunError if
    runs failed, KeyboardInterrupt where it was interrupted."""
    from fullpipe.api.stores import SweepResults
    from fullpipe.base.overrides import apply_changes
    from fullpipe.scenario.document import load_document
    from fullpipe.sweep.file import read_sweep
    from fullpipe.sweep.pool import Pool
    from fullpipe.sweep.running import run_sweep as fill
    from fullpipe.sweep.store import Store

    document = file if isinstance(file, Mapping) else load_document(file)
    source = "sweep" if isinstance(file, Mapping) else str(file)
    folder = Path() if isinstance(file, Mapping) else Path(file).parent
    store = Store(Path(out), create=True)
    pool = Pool(jobs)
    outcome = fill(read_sweep(apply_changes(document, changes), source, folder), store, pool)
    if outcome.interrupted:
        raise KeyboardInterrupt
    if outcome.failures:
        cell, seed, why = outcome.failures[0]
        raise RunError(
            f"{len(outcome.failures)} runs failed; cell {cell.index}, seed {seed}: {why}"
        )
    return SweepResults(store.folder, outcome.sweep)


def open_store(folder: str | Path, sweep: str | None = None) -> SweepResults:
    """The store of sweeps in a folder, as the command line or `run_sweep` left it. Nothing is run.
    `sweep`: which one of the store, by name or id, or "all"; by default the newest.

    Raises UserError if the folder is no store or has no such sweep."""
    from fullpipe.api.stores import SweepResults

    return SweepResults(folder, sweep)


def predict(
    scenario: Mapping[str, Any] | str | Path, *, changes: Iterable[str] = ()
) -> list[Prediction]:
    """What each model predicts in whose domain the scenario lies (docs/background/models.md):
    `model`,
    `shares` (congestion control -> share of capacity as goodput, 0 to 1), `queue_bytes`, `loss`,
    `jain_index`, `cautions`. Empty outside every domain. Nothing is run.

    Raises UserError for bad input."""
    from fullpipe.models import predict as ask
    from fullpipe.plan.resolve import resolve

    made, _ = _scenario(scenario, changes)
    return ask(resolve(made), made.warmup / 1e9)


def _scenario(
    scenario: Mapping[str, Any] | str | Path, changes: Iterable[str]
) -> tuple[Scenario, str]:
    """The scenario and its text, which is the original if nothing was changed."""
    from fullpipe.base.overrides import apply_changes
    from fullpipe.scenario.model import load_with_toml, make_scenario

    if isinstance(scenario, Mapping):
        document = apply_changes(with_classes(scenario), changes)
        return make_scenario(document), tomli_w.dumps(document)
    return load_with_toml(scenario, changes)


def with_classes(document: Mapping[str, Any]) -> dict[str, Any]:
    """The dictionary with classes replaced by their names."""
    result = dict(document)
    flows = result.get("flow")
    if isinstance(flows, Sequence) and not isinstance(flows, str):
        result["flow"] = [_named(flow, "cc") for flow in flows]
    tables = result.get("cc")
    if isinstance(tables, Mapping):
        result["cc"] = {name: _named(table, "base") for name, table in tables.items()}
    return result


def _named(item: Any, key: str) -> Any:
    value = item.get(key) if isinstance(item, Mapping) else None
    if not (isinstance(value, type) and issubclass(value, Controller)):
        return item
    from fullpipe.congestion.userfiles import classes

    return {**item, key: classes.hand_over(value)}
