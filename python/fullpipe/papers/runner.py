"""Runs what a catalogue asks for and the store lacks, and asks the models, over all cores.

Each run is stored as it ends: an interrupted experiment continues where it stopped. Knows entries
and the store; must never judge.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from fullpipe.base.errors import RunError, UserError
from fullpipe.engines import engine, run_scenario
from fullpipe.expr.conditions import Condition
from fullpipe.papers.entry import Entry, Size
from fullpipe.papers.grid import Cell
from fullpipe.papers.predictions import lacking, predict
from fullpipe.papers.store import Measured, Store
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.cells import Cell as Asked
from fullpipe.sweep.pool import Pool, cores
from fullpipe.sweep.runs import PACKET_S, run_of
from fullpipe.sweep.schedule import Failure, Item, Progress, run_all
from fullpipe.sweep.templates import fill

#: Asking the models costs as much for each flow as running so many packets, roughly.
_FLOW_ASKED_S = 4e5 * PACKET_S
#: Runs are grouped up to so much work: a run of a hundredth of a second should not wait for a
#: process, and progress should be seen.
_GROUP_S = 0.25


#: Entry -> number of a cell -> how many runs it should have.
Wanted = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class Job:
    """One run of one cell. `cost_s`: CPU seconds that it takes, roughly; of a kernel's runs many,
    so that each is a task of its own and stored when it ends."""

    entry_id: str
    document: dict[str, Any]
    engine: str
    key: str
    expressions: dict[str, str]
    cost_s: float


@dataclass(frozen=True)
class Question:
    """A scenario that the models are asked about."""

    entry_id: str
    plan: dict[str, Any]
    warmup_s: float
    cost_s: float
    engine: str = "models"


@dataclass
class Outcome:
    """What became of a request: runs reused and run, and why some could not be."""

    reused: int = 0
    ran: int = 0
    interrupted: bool = False
    #: Entry and engine -> the first reason.
    failures: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, more: Outcome) -> None:
        """What became of runs that were asked for besides; what they reused is of this request."""
        self.ran += more.ran
        self.interrupted |= more.interrupted
        self.failures |= more.failures


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
    """Runs what is missing, of the cells for which `where` holds (a condition on axes); with
    `wanted` only those cells, so often.

    Ctrl-C leaves what has ended. What an engine cannot run is a failure of that entry and does not
    stop the others."""
    store.prepare()
    outcome = Outcome()
    todo: dict[str, Job] = {}
    questions: dict[str, Question] = {}
    for entry in entries:
        for name in engines or entry.engines:
            picked = _picked(entry, name, size, repetitions, where, wanted)
            reason = _unable(entry, name, [cell for _, cell, _ in picked])
            if reason:
                outcome.failures[entry.id, name] = reason
                continue
            asked = [
                job_of(entry, store, name, cell, index)
                for _, cell, count in picked
                for index in range(count)
            ]
            add = wanted is not None or bool(where)
            scenarios = [cell.document for _, cell, _ in picked]
            store.ask(f"{entry.id}-{name}", _asked(picked, asked), scenarios, add)
            for job in asked:
                if store.read(job.key, job.expressions) is None:
                    todo[job.key] = _joined(todo.get(job.key), job)
                else:
                    outcome.reused += 1
        for key, (plan, warmup_s) in lacking(entry, size, store, where).items():
            cost = len(plan["flows"]) * _FLOW_ASKED_S
            questions[key] = Question(entry.id, plan, warmup_s, cost)
    _run_all(list(questions.values()), store, keep_recordings, jobs, None, outcome)
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
    """(number, cell, runs) of every cell that is asked for."""
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


def _asked(picked: Sequence[tuple[int, Cell, int]], jobs: Sequence[Job]) -> list[Asked]:
    """The cells as sweeps know them, with the keys of their runs. For an axis's fields that are
    lists or tables its label stands."""
    keys = iter(job.key for job in jobs)
    return [
        Asked(
            number,
            {k: value for k, value in cell.fields.items() if not isinstance(value, list | dict)},
            [next(keys) for _ in range(count)],
            cell.scenario.seed,
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


def _joined(known: Job | None, job: Job) -> Job:
    """One run for two entries that ask for different metrics of it."""
    if known is None:
        return job
    both = {text: text for text in (*known.expressions.values(), *job.expressions.values())}
    return Job(known.entry_id, known.document, job.engine, job.key, both, job.cost_s)


def _unable(entry: Entry, engine_name: str, cells: Sequence[Cell]) -> str:
    """Why an engine cannot run these cells of an entry; empty where it can."""
    if not entry.runnable:
        return entry.not_yet_runnable
    try:
        runs = engine(engine_name)
        for cell in cells:
            runs.check(resolve(cell.on(engine_name).scenario))
    except ModuleNotFoundError:
        return f"engine {engine_name} is not part of this installation"
    except (UserError, RunError) as error:
        return str(error)
    return ""


def _run_all(
    asked: Sequence[Job | Question],
    store: Store,
    keep: bool,
    jobs: int | None,
    on_progress: Callable[[Progress], None] | None,
    outcome: Outcome,
) -> None:
    """Does what is asked on the scheduler of sweeps."""
    if not asked or outcome.interrupted:
        return
    work = store.workplace()
    work.mkdir()
    try:
        result = run_all(
            [Item(one, one.cost_s) for one in asked],
            _Work(store.folder, work, keep),
            Pool(min(len(asked), jobs or cores()), preload="fullpipe.papers.runner"),
            on_progress or (lambda _progress: None),
            _GROUP_S,
        )
    finally:
        # Whatever a process that was ended left behind.
        shutil.rmtree(work, ignore_errors=True)
    outcome.ran += result.done if isinstance(asked[0], Job) else 0
    outcome.interrupted = result.interrupted
    for one, reason in result.failures:
        outcome.failures.setdefault((one.entry_id, one.engine), reason)


@dataclass(frozen=True)
class _Work:
    """In a process of its own: runs, measures, stores; or asks the models."""

    folder: Path
    work: Path
    keep: bool

    def __call__(self, asked: Sequence[Job | Question]) -> list[Failure]:
        store = Store(self.folder)
        failures = []
        done: list[Measured] = []
        try:
            for index, one in enumerate(asked):
                try:
                    if isinstance(one, Question):
                        predict(one.plan, one.warmup_s, store)
                    else:
                        done.append(_run_one(one, self.work, self.keep))
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
    place = work / job.key
    try:
        toml = tomli_w.dumps(job.document)
        outcome = run_scenario(scenario, toml, [place], job.engine, {}, jobs=1)
        if outcome.failures:
            raise RunError("; ".join(outcome.failures))
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    # What took a kernel minutes is worth its megabyte: a new metric needs no new run.
    kept = keep or job.engine != "sim"
    return Measured(job.key, outcome.recordings[0], job.expressions, kept)
