"""Runs the cells and models of entries that the store lacks, over all cores.

Each run is stored when it ends, so an interrupted experiment continues where it stopped. This
module must not judge.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from fullpipe.base.errors import RunError, UserError
from fullpipe.base.machine import cores
from fullpipe.engines import engine
from fullpipe.engines.runner import run_scenario
from fullpipe.experiments.entry import Entry, Size
from fullpipe.experiments.grid import Cell
from fullpipe.experiments.predictions import lacking, predict
from fullpipe.experiments.run_store import Measured, Store
from fullpipe.expr.conditions import Condition
from fullpipe.plan.plan import Plan
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.cells import Cell as SweepCell
from fullpipe.sweep.pool import Pool
from fullpipe.sweep.runs import PACKET_S, run_of
from fullpipe.sweep.schedule import Failure, Item, Progress, run_all
from fullpipe.sweep.templates import fill

#: Estimated CPU seconds of the models for each flow: as for so many simulated packets.
_PREDICTED_FLOW_S = 4e5 * PACKET_S
#: CPU seconds of a group of runs: short runs share a process, and progress stays visible.
_GROUP_S = 0.25


#: Entry -> index of a cell -> number of its runs.
Wanted = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class Job:
    """One run of one cell. `cost_s`: estimated CPU seconds. Those of a kernel exceed a group's, so
    that each is stored when it ends."""

    entry_id: str
    document: dict[str, Any]
    engine: str
    key: str
    expressions: dict[str, str]
    cost_s: float


@dataclass(frozen=True)
class PredictionJob:
    """A scenario for the models."""

    entry_id: str
    plan: Plan
    warmup_s: float
    cost_s: float
    engine: str = "models"


@dataclass
class Outcome:
    """The result of a request: numbers of runs, and the reasons of failures."""

    reused: int = 0
    ran: int = 0
    interrupted: bool = False
    #: Entry and engine -> the first reason.
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    #: Sentences about files of the store that were damaged and set aside.
    damaged: list[str] = field(default_factory=list)

    def add(self, more: Outcome) -> None:
        """Adds the outcome of further runs; the runs that they reused belong to this request."""
        self.ran += more.ran
        self.interrupted |= more.interrupted
        self.failures |= more.failures
        self.damaged += more.damaged


def run_entries(
    entries: Sequence[Entry],
    store: Store,
    size: Size = "default",
    engines: Sequence[str] = (),
    repetitions: int | None = None,
    keep_recordings: bool = False,
    jobs: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
    where: str = "",
    wanted: Wanted | None = None,
) -> Outcome:
    """Runs what the store lacks of the cells for which `where` holds (a condition on axes), or of
    `wanted` alone.

    Ctrl-C keeps the runs that have ended. A cell that an engine cannot run is a failure of its
    entry and does not stop the others."""
    outcome = Outcome(damaged=store.prepare())
    todo: dict[str, Job] = {}
    predictions: dict[str, PredictionJob] = {}
    for entry in entries:
        for name in engines or entry.engines:
            picked = _picked(entry, name, size, repetitions, where, wanted)
            reasons = (unable(name, cell) for _, cell, _ in picked)
            reason = entry.not_yet_runnable or next(filter(None, reasons), "")
            if reason:
                outcome.failures[entry.id, name] = reason
                continue
            wished = [
                job_of(entry, store, name, cell, index)
                for _, cell, count in picked
                for index in range(count)
            ]
            add = wanted is not None or bool(where)
            scenarios = [cell.document for _, cell, _ in picked]
            store.write_cells(f"{entry.id}-{name}", _sweep_cells(picked, wished), scenarios, add)
            for job in wished:
                if store.read(job.key, job.expressions) is None:
                    todo[job.key] = _joined(todo.get(job.key), job)
                else:
                    outcome.reused += 1
        for key, (plan, warmup_s) in lacking(entry, size, store, where).items():
            cost = len(plan["flows"]) * _PREDICTED_FLOW_S
            predictions[key] = PredictionJob(entry.id, plan, warmup_s, cost)
    _run_all(list(predictions.values()), store, keep_recordings, jobs, None, outcome)
    _run_all(list(todo.values()), store, keep_recordings, jobs, on_progress, outcome)
    store.refresh()
    return outcome


def _picked(
    entry: Entry,
    engine_name: str,
    size: Size,
    repetitions: int | None,
    where: str,
    wanted: Wanted | None,
) -> list[tuple[int, Cell, int]]:
    """(index, cell, runs) of every wanted cell."""
    cells = list(enumerate(entry.cells(size)))
    if wanted is not None:
        counts = wanted.get(entry.id, {})
        return [(number, cell, counts[number]) for number, cell in cells if number in counts]
    runs = repetitions or entry.repetitions_of(size, engine_name)
    return [
        (number, cell, runs)
        for number, cell in cells
        if not where or Condition(where).holds(cell.fields)
    ]


def _sweep_cells(picked: Sequence[tuple[int, Cell, int]], jobs: Sequence[Job]) -> list[SweepCell]:
    """The cells for the tables of sweeps, with the keys of their runs. Fields that are lists or
    tables are left out; their axis has its label."""
    keys = iter(job.key for job in jobs)
    return [
        SweepCell(
            number,
            {k: value for k, value in cell.fields.items() if not isinstance(value, list | dict)},
            [next(keys) for _ in range(count)],
            cell.scenario.seed,
            cell.own_flows,
        )
        for number, cell, count in picked
    ]


def job_of(entry: Entry, store: Store, engine_name: str, cell: Cell, index: int) -> Job:
    """A run of a cell: the one whose seed is the scenario's plus `index`."""
    cell = cell.on(engine_name)
    scenario = cell.scenario.repeated()
    seed = scenario.seed + index
    run = run_of(scenario, seed, engine_name)
    spread = {"start_spread": f"{scenario.start_spread}ns"}
    document = {**cell.document, **spread, "seed": seed}
    expressions = expressions_of(entry, cell)
    return Job(entry.id, document, engine_name, store.key(run), expressions, run.cost_s)


def expressions_of(entry: Entry, cell: Cell) -> dict[str, str]:
    """Metric -> expression for this cell."""
    return {
        name: str(fill(metric.value, cell.fields, f"{entry.source}: metric.{name}.value"))
        for name, metric in entry.metric.items()
    }


def _joined(earlier: Job | None, job: Job) -> Job:
    """One run for two entries that need different metrics of it."""
    if earlier is None:
        return job
    both = {text: text for text in (*earlier.expressions.values(), *job.expressions.values())}
    return Job(earlier.entry_id, earlier.document, job.engine, job.key, both, job.cost_s)


def unable(engine_name: str, cell: Cell) -> str:
    """Why an engine cannot run a cell here; empty if it can."""
    try:
        plan = resolve(cell.on(engine_name).scenario)
        engine(engine_name).check(plan, _options(engine_name))
    except ModuleNotFoundError:
        return f"engine {engine_name} is not part of this installation"
    except (UserError, RunError) as error:
        return str(error)
    return ""


def _options(engine_name: str) -> dict[str, str]:
    """The options with which an engine runs cells."""
    # User Mode Linux is several times as fast where it is built.
    return {"machine": "auto"} if engine_name == "vm" else {}


def _run_all(
    wanted: Sequence[Job | PredictionJob],
    store: Store,
    keep: bool,
    jobs: int | None,
    on_progress: Callable[[Progress], None] | None,
    outcome: Outcome,
) -> None:
    """Runs the jobs on the scheduler of sweeps."""
    if not wanted or outcome.interrupted:
        return
    work = store.workplace()
    work.mkdir()
    try:
        result = run_all(
            [Item(job, job.cost_s) for job in wanted],
            _Work(store.folder, work, keep),
            Pool(min(len(wanted), jobs or cores()), preload="fullpipe.experiments.runner"),
            on_progress or (lambda _progress: None),
            _GROUP_S,
        )
    finally:
        # A killed process leaves files.
        shutil.rmtree(work, ignore_errors=True)
    outcome.ran += result.done if isinstance(wanted[0], Job) else 0
    outcome.interrupted = result.interrupted
    for job, reason in result.failures:
        outcome.failures.setdefault((job.entry_id, job.engine), reason)


@dataclass(frozen=True)
class _Work:
    """The work of a process: runs, measures and stores, or computes predictions."""

    folder: Path
    work: Path
    keep: bool

    def __call__(self, group: Sequence[Job | PredictionJob]) -> list[Failure]:
        store = Store(self.folder)
        failures = []
        done: list[Measured] = []
        try:
            for index, job in enumerate(group):
                try:
                    if isinstance(job, PredictionJob):
                        predict(job.plan, job.warmup_s, store)
                    else:
                        done.append(_run_one(job, self.work, self.keep))
                except (RunError, UserError) as error:
                    failures.append(Failure(index, str(error)))
            if done:
                store.write(done)
        finally:
            for run in done:
                shutil.rmtree(run.recording.path, ignore_errors=True)
        return failures


def _run_one(job: Job, work: Path, keep: bool) -> Measured:
    scenario = make_scenario(job.document, job.entry_id)
    path = work / job.key
    try:
        toml = tomli_w.dumps(job.document)
        options = _options(job.engine)
        outcome = run_scenario(scenario, toml, [path], job.engine, options, jobs=1)
        if outcome.failures:
            raise RunError("; ".join(outcome.failures))
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    # A kernel's run takes minutes, its recording a megabyte: a new metric needs no new run.
    keep_recording = keep or job.engine != "sim"
    return Measured(job.key, outcome.recordings[0], job.expressions, keep_recording)
