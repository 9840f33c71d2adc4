"""The stored runs of an entry, and the tables on which its claims are computed.

The unit of repetition is the run: a resample draws the runs of each cell with replacement
(stratified bootstrap) and is widened to Student's t (`widening`). This module must run nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fullpipe.agreement.expected import beyond
from fullpipe.experiments.entry import Entry, Size
from fullpipe.experiments.grid import Cell
from fullpipe.experiments.predictions import predicted_cells
from fullpipe.experiments.reference_values import observed_values, points_of, published_values
from fullpipe.experiments.run_store import Store, StoredRun
from fullpipe.experiments.runner import expressions_of, job_of
from fullpipe.experiments.values import Array, Point, Table

RESAMPLES = 2000
LEAST_RUNS = 3
Beside = dict[tuple[str, str, str], dict[int, float]]


@dataclass(frozen=True)
class Results:
    """The stored runs of an entry on one engine, or on all engines if they are compared."""

    entry: Entry
    engine: str
    size: Size
    points: list[Point]
    #: Point -> its runs, by seed.
    runs: list[list[StoredRun]]
    expressions: list[dict[str, str]]
    beside: Beside

    @property
    def missing(self) -> frozenset[int]:
        """Points without runs."""
        return frozenset(index for index, runs in enumerate(self.runs) if not runs)

    @property
    def repetitions(self) -> tuple[int, int]:
        """Fewest and most runs of a point, without the points that have none."""
        return self.repetitions_of(range(len(self.runs)))

    def repetitions_of(self, points: Sequence[int]) -> tuple[int, int]:
        """Fewest and most runs of these points, without those that have none."""
        counts = [len(self.runs[point]) for point in points if self.runs[point]]
        return (min(counts), max(counts)) if counts else (0, 0)

    def beyond(self, point: int) -> str:
        """Why the comparisons of the simulator with kernels do not cover a point; empty if they do,
        or if a kernel ran it."""
        engine = str(self.points[point].axes.get("engine", self.engine))
        cells = self.entry.cells(self.size)
        return "" if engine != "sim" else beyond(cells[point % len(cells)].scenario)

    def values(self, metric: str) -> list[Array]:
        """Each point's values, one for each run."""
        return [
            np.array([run.metrics[texts[metric]] for run in runs])
            for runs, texts in zip(self.runs, self.expressions, strict=True)
        ]

    def estimates(self, metric: str) -> Array:
        """Each point's value over its runs; NaN if it has none."""
        over = _OVER[self.entry.metric[metric].over_runs]
        return np.array([over(v) if v.size else math.nan for v in self.values(metric)])

    @functools.cached_property
    def table(self) -> Table:
        """The table of the points' values."""
        return self.with_values({name: self.estimates(name)[None, :] for name in self.entry.metric})

    @functools.cached_property
    def resampled(self) -> Table:
        """The table of resamples, for expressions that rest on single points."""
        return self.resampled_for(1)

    def resampled_for(self, pooled: int) -> Table:
        """The table of resamples, for expressions that average over `pooled` points. All metrics
        of a resample come from the same runs. Points of fewer than three runs keep their values."""
        metrics = {}
        for name, drawn in self._drawn.items():
            estimates = self.estimates(name)
            wide = np.array([widening(len(runs), pooled) for runs in self.runs])
            spread = estimates + wide * (drawn - estimates)
            positive = [bool((values >= 0).all()) for values in self.values(name)]
            metrics[name] = np.where(positive, np.maximum(spread, 0.0), spread)
        return self.with_values(metrics)

    @functools.cached_property
    def _drawn(self) -> dict[str, Array]:
        names = list(self.entry.metric)
        metrics = {name: np.tile(self.estimates(name), (RESAMPLES, 1)) for name in names}
        draw = np.random.default_rng(1)
        values = {name: self.values(name) for name in names}
        for point, runs in enumerate(self.runs):
            if len(runs) >= LEAST_RUNS:
                index = draw.integers(0, len(runs), (RESAMPLES, len(runs)))
                for name in names:
                    over = _OVER[self.entry.metric[name].over_runs]
                    metrics[name][:, point] = over(values[name][point][index], axis=1)
        return metrics

    def with_values(self, metrics: dict[str, Array], whole: bool = False) -> Table:
        """The table of these values. `whole`: no point counts as missing."""
        numbers = {name: number.value for name, number in self.entry.number.items()}
        gone: frozenset[int] = frozenset() if whole else self.missing
        return Table(self.points, metrics, numbers, self.beside, gone)

    def only(self, points: Sequence[int]) -> Results:
        """The results of some of the points."""
        index_of = {point: index for index, point in enumerate(points)}
        beside = {
            key: {index_of[point]: value for point, value in values.items() if point in index_of}
            for key, values in self.beside.items()
        }
        return Results(
            self.entry,
            self.engine,
            self.size,
            points=[self.points[p] for p in points],
            runs=[self.runs[p] for p in points],
            expressions=[self.expressions[p] for p in points],
            beside=beside,
        )

    def with_runs(self, other: Results, points: Collection[int]) -> Results:
        """These results with the runs of another engine in some of the points."""
        runs = [
            other.runs[point] if point in points else current
            for point, current in enumerate(self.runs)
        ]
        return replace(self, runs=runs)


_OVER: dict[str, Callable[..., Array]] = {"mean": np.mean, "median": np.median}


@functools.cache
def widening(runs: int, pooled: int = 1) -> float:
    """The factor by which a bootstrap of few runs is too narrow for a mean: its variance has 1/n
    instead of 1/(n-1), and its quantiles are normal instead of Student's (Hesterberg, "What
    Teachers Should Know About the Bootstrap", 2015, section 3.4). For the mean of several cells the
    degrees of freedom of their runs add up."""
    from scipy import stats

    if runs < LEAST_RUNS:
        return 1.0
    student = stats.t.ppf(0.975, pooled * (runs - 1))
    return float(student / stats.norm.ppf(0.975) * (runs / (runs - 1)) ** 0.5)


def collect(
    entry: Entry,
    store: Store,
    size: Size,
    engine: str | None,
    repetitions: int | None,
    observed: Sequence[Path],
) -> Results:
    """The stored runs of an entry, up to `repetitions` of each cell or, if that is None, up to the
    entry's `most_repetitions`."""
    name = engine or entry.engines[0]
    engines: list[str] = list(entry.engines) if entry.compare_engines else [name]
    points = points_of(entry, size, engines)
    cells = entry.cells(size)
    runs = [
        _stored(entry, store, engine_name, size, cell, repetitions)
        for engine_name in engines
        for cell in cells
    ]
    expressions = [expressions_of(entry, cell) for _ in engines for cell in cells]
    beside: Beside = {
        ("published", metric, ""): values
        for metric, values in published_values(entry, points).items()
    }
    beside |= observed_values(entry, points, observed)
    if any(metric.predict for metric in entry.metric.values()):
        beside |= predicted_cells(entry, size, points, store)
    label = " and ".join(engines)
    return Results(entry, label, size, points, runs, expressions, beside)


def on_kernel(results: Results, store: Store, repetitions: int | None) -> Results:
    """The runs of the same cells in the virtual machine. Runs with health problems are left out:
    the processor limited them, not the kernel."""
    entry, size = results.entry, results.size
    stored = (
        _stored(entry, store, "vm", size, cell, repetitions, least=0) for cell in entry.cells(size)
    )
    runs = [[run for run in cell if not run.problems] for cell in stored]
    return Results(entry, "vm", size, results.points, runs, results.expressions, results.beside)


def _stored(
    entry: Entry,
    store: Store,
    engine: str,
    size: Size,
    cell: Cell,
    repetitions: int | None,
    least: int | None = None,
) -> list[StoredRun]:
    """The stored runs of a cell, and those beyond its repetitions up to the first that is
    missing."""
    asked = repetitions or entry.repetitions_of(size, engine)
    most = asked if repetitions or entry.compare_engines else max(asked, entry.most_repetitions)
    runs = []
    for index in range(most):
        try:
            job = job_of(entry, store, engine, cell, index)
        except ModuleNotFoundError:
            return []
        run = store.read(job.key, job.expressions)
        if run is not None:
            runs.append(run)
        elif index >= (asked if least is None else least):
            break
    return runs
