"""Verdicts: each claim held against the runs in the store.

The unit of repetition is the run: an interval resamples the runs of each cell (stratified
bootstrap, percentiles), never samples within a run. Must never run anything.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from fullpipe.errors import UserError
from fullpipe.experiments.entry import Claim, Entry, Size
from fullpipe.experiments.observed import observed_cells
from fullpipe.experiments.predictions import predicted_cells
from fullpipe.experiments.rehearsal import points_of, published_cells
from fullpipe.experiments.runner import jobs_of
from fullpipe.experiments.store import Store, StoredRun
from fullpipe.experiments.values import (
    Array,
    Point,
    Table,
    UntestableError,
    Value,
    evaluate,
    shown,
    single,
)
from fullpipe.language import ExpressionError, parse, source

Status = Literal["reproduced", "contradicted", "not testable here"]
STATUSES: tuple[Status, ...] = ("reproduced", "contradicted", "not testable here")
RESAMPLES = 2000
LEAST_RUNS = 3


@dataclass(frozen=True)
class Verdict:
    """What became of a claim. `value`, `low`, `high`: the measured number and its 95 % interval;
    `published`: as the paper prints it, or what its values give; `support`: share of the resamples
    in which the claim holds."""

    claim: Claim
    engine: str
    status: Status
    reason: str = ""
    shown: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    runs: int = 0
    support: float | None = None
    published: str = ""

    @property
    def measured(self) -> str:
        """The number with its unit and interval; empty where there is none."""
        if self.value is None:
            return ""
        unit = f" {self.claim.unit}" if self.claim.unit else ""
        if self.low is None or self.high is None:
            return f"{self.value:.4g}{unit}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]{unit}"

    @property
    def interval(self) -> str:
        """How the interval was made; empty where there is none."""
        if self.low is None:
            return ""
        return f"95 %, bootstrap over runs, {RESAMPLES} resamples, seed 1"


@dataclass(frozen=True)
class Results:
    """What the store holds of an entry on one engine (on all, where engines are compared)."""

    entry: Entry
    engine: str
    size: Size
    points: list[Point]
    #: Point -> its runs, by seed; empty where it was not run.
    runs: list[list[StoredRun]]
    expressions: list[dict[str, str]]
    beside: dict[tuple[str, str, str], dict[int, float]]

    @property
    def missing(self) -> frozenset[int]:
        """Points without runs."""
        return frozenset(index for index, runs in enumerate(self.runs) if not runs)

    @property
    def repetitions(self) -> tuple[int, int]:
        """Fewest and most runs of the points that have some."""
        counts = [len(runs) for runs in self.runs if runs]
        return (min(counts), max(counts)) if counts else (0, 0)

    def values(self, metric: str) -> list[Array]:
        """Each point's values, one a run."""
        return [
            np.array([run.metrics[texts[metric]] for run in runs])
            for runs, texts in zip(self.runs, self.expressions, strict=True)
        ]

    def estimates(self, metric: str) -> Array:
        """Each point's value; NaN where it was not run."""
        over = _OVER[self.entry.metric[metric].over_runs]
        return np.array([over(v) if v.size else math.nan for v in self.values(metric)])


@dataclass(frozen=True)
class EntryVerdicts:
    """An entry's claims on one engine."""

    results: Results
    verdicts: list[Verdict]


_OVER: dict[str, Callable[..., Array]] = {"mean": np.mean, "median": np.median}


def judge(
    entry: Entry,
    store: Store,
    size: Size = "default",
    engine: str | None = None,
    repetitions: int | None = None,
    observed: Sequence[Path] = (),
) -> EntryVerdicts:
    """The verdicts on an entry's claims by what the store holds.

    Raises UserError where the observed file cannot be read."""
    results = collect(entry, store, size, engine, repetitions, observed)
    table, resampled = _table(results), None
    if results.repetitions[0] >= LEAST_RUNS:
        resampled = _resampled(results)
    return EntryVerdicts(
        results, [_verdict(claim, results, table, resampled) for claim in entry.claim]
    )


def collect(
    entry: Entry,
    store: Store,
    size: Size,
    engine: str | None,
    repetitions: int | None,
    observed: Sequence[Path],
) -> Results:
    """Everything that the store holds of an entry."""
    name = engine or entry.engines[0]
    engines: list[str] = list(entry.engines) if entry.compare_engines else [name]
    points = points_of(entry, size, engines)
    runs: list[list[StoredRun]] = []
    expressions: list[dict[str, str]] = []
    for one in engines:
        cells = len(entry.cells(size))
        try:
            jobs = jobs_of(entry, store, one, size, repetitions)
        except ModuleNotFoundError:
            runs += [[] for _ in range(cells)]
            expressions += [{} for _ in range(cells)]
            continue
        each = len(jobs) // max(cells, 1)
        for index in range(cells):
            mine = jobs[index * each : (index + 1) * each]
            found = [store.read(job.key, job.expressions) for job in mine]
            runs.append([run for run in found if run is not None])
            expressions.append(mine[0].expressions)
    beside: dict[tuple[str, str, str], dict[int, float]] = {
        ("published", metric, ""): values
        for metric, values in published_cells(entry, points).items()
    }
    beside |= observed_cells(entry, points, observed)
    if any(metric.predict for metric in entry.metric.values()):
        beside |= predicted_cells(entry, size, points, store)
    label = " and ".join(engines)
    return Results(entry, label, size, points, runs, expressions, beside)


def _verdict(claim: Claim, results: Results, table: Table, resampled: Table | None) -> Verdict:
    if claim.check is None:
        return _untestable(claim, results, claim.needs)
    if results.entry.not_yet_runnable and claim.about != "arithmetic":
        return _untestable(claim, results, results.entry.not_yet_runnable)
    try:
        holds = bool(single(evaluate(claim.check, table), claim.check)[0])
    except UntestableError as error:
        return _untestable(claim, results, str(error))
    except ExpressionError as error:
        raise UserError(f"{results.entry.source}: claim {claim.id}: {error}") from None
    node = parse(claim.value) if claim.value else shown(parse(claim.check))
    value, low, high = _measured(node, table, resampled)
    support = None
    if resampled is not None:
        held = single(evaluate(claim.check, resampled), claim.check)
        support = float(held.mean()) if held.size > 1 else None
        if support is None:
            low = high = None
    arithmetic = claim.about == "arithmetic" or not results.runs
    return Verdict(
        claim,
        "" if arithmetic else results.engine,
        "reproduced" if holds else "contradicted",
        "",
        source(node) if node is not None else "",
        value,
        low,
        high,
        0 if arithmetic else results.repetitions[0],
        support,
        claim.published or _as_published(node, results),
    )


def _untestable(claim: Claim, results: Results, reason: str) -> Verdict:
    status: Status = "not testable here"
    return Verdict(claim, results.engine, status, reason, published=claim.published)


def _as_published(node: ast.expr | None, results: Results) -> str:
    """What the shown number is with the paper's values; empty where it does not print them all."""
    metrics = {name: np.full((1, len(results.points)), np.nan) for name in results.entry.metric}
    for (kind, metric, _), values in results.beside.items():
        if kind == "published":
            metrics[metric][0, list(values)] = list(values.values())
    value, _, _ = _measured(node, _with(results, metrics, frozenset()), None)
    uses = node is not None and any(name in source(node) for name in metrics)
    return f"{value:.4g}" if value is not None and uses else ""


def _measured(
    node: ast.expr | None, table: Table, resampled: Table | None
) -> tuple[float | None, float | None, float | None]:
    """The number to show and its interval, where there are such."""
    if node is None:
        return None, None, None
    try:
        value = _plain(evaluate(node, table))
        if resampled is None or value is None:
            return value, None, None
        return (value, *_interval(evaluate(node, resampled)))
    except UntestableError:
        return None, None, None


def _plain(value: Value) -> float | None:
    number = float(value.data[0, 0]) if value.data.shape[1] == 1 else math.nan
    return number if math.isfinite(number) else None


def _interval(value: Value) -> tuple[float | None, float | None]:
    data = value.data[:, 0].astype(float)
    if data.size < 2 or not np.isfinite(data).all():
        return None, None
    low, high = np.quantile(data, [0.025, 0.975])
    return float(low), float(high)


def _table(results: Results) -> Table:
    metrics = {name: results.estimates(name)[None, :] for name in results.entry.metric}
    return _with(results, metrics)


def _resampled(results: Results) -> Table:
    """Each point's runs drawn anew, for all metrics together, so that they stay paired."""
    metrics = {name: np.full((RESAMPLES, len(results.points)), np.nan) for name in
               results.entry.metric}  # fmt: skip
    draw = np.random.default_rng(1)
    values = {name: results.values(name) for name in metrics}
    for point, runs in enumerate(results.runs):
        if not runs:
            continue
        index = draw.integers(0, len(runs), (RESAMPLES, len(runs)))
        for name, filled in metrics.items():
            over = _OVER[results.entry.metric[name].over_runs]
            filled[:, point] = over(values[name][point][index], axis=1)
    return _with(results, metrics)


def _with(
    results: Results, metrics: dict[str, Array], missing: frozenset[int] | None = None
) -> Table:
    numbers = {name: number.value for name, number in results.entry.number.items()}
    gone = results.missing if missing is None else missing
    return Table(results.points, metrics, numbers, results.beside, gone)


def commands(entry: Entry, size: Size, engines: Sequence[str] = ()) -> str:
    """The command that repeats an entry."""
    words = ["fullpipe experiment run", entry.id]
    if size == "full":
        words.append("--full")
    chosen = [name for name in engines if name not in entry.engines]
    words += [f"--engine {name}" for name in chosen]
    if entry.observed:
        words.append("--observed FILE.csv")
    return " ".join(words)
