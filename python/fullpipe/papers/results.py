"""What the store holds of an entry, and the tables that claims are computed on.

The unit of repetition is the run: resamples draw the runs of each cell anew (stratified bootstrap)
and are widened to what Student's t asks for so few runs (`widening`). Must never run anything.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fullpipe.papers.entry import Entry, Size
from fullpipe.papers.grid import Cell
from fullpipe.papers.observed import observed_cells
from fullpipe.papers.predictions import predicted_cells
from fullpipe.papers.regime import beyond
from fullpipe.papers.rehearsal import points_of, published_cells
from fullpipe.papers.runner import expressions_of, job_of
from fullpipe.papers.store import Store, StoredRun
from fullpipe.papers.values import Array, Point, Table

RESAMPLES = 2000
LEAST_RUNS = 3
Beside = dict[tuple[str, str, str], dict[int, float]]


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
    beside: Beside

    @property
    def missing(self) -> frozenset[int]:
        """Points without runs."""
        return frozenset(index for index, runs in enumerate(self.runs) if not runs)

    @property
    def repetitions(self) -> tuple[int, int]:
        """Fewest and most runs of the points that have some."""
        return self.repetitions_of(range(len(self.runs)))

    def repetitions_of(self, points: Sequence[int]) -> tuple[int, int]:
        """Fewest and most runs of those of these points that have some."""
        counts = [len(self.runs[point]) for point in points if self.runs[point]]
        return (min(counts), max(counts)) if counts else (0, 0)

    def beyond(self, point: int) -> str:
        """Why checks of the simulator against kernels say nothing of a point; empty where they do,
        and where a kernel ran it."""
        engine = str(self.points[point].axes.get("engine", self.engine))
        cells = self.entry.cells(self.size)
        return "" if engine != "sim" else beyond(cells[point % len(cells)].scenario)

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

    @functools.cached_property
    def table(self) -> Table:
        """Each point's value."""
        return self.with_values({name: self.estimates(name)[None, :] for name in self.entry.metric})

    @functools.cached_property
    def resampled(self) -> Table:
        """Each point's runs drawn anew, widened for what rests on single points."""
        return self.resampled_for(1)

    def resampled_for(self, pooled: int) -> Table:
        """Each point's runs drawn anew, for all metrics together, so that they stay paired; widened
        for what rests on so many points together. Points of fewer than three runs stay as they
        are."""
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
        """The table of these values; `whole`: nothing counts as missing."""
        numbers = {name: number.value for name, number in self.entry.number.items()}
        gone: frozenset[int] = frozenset() if whole else self.missing
        return Table(self.points, metrics, numbers, self.beside, gone)

    def only(self, points: Sequence[int]) -> Results:
        """The results of some points alone."""
        place = {point: index for index, point in enumerate(points)}
        beside = {
            key: {place[point]: value for point, value in values.items() if point in place}
            for key, values in self.beside.items()
        }
        return Results(
            self.entry, self.engine, self.size, [self.points[p] for p in points],
            [self.runs[p] for p in points], [self.expressions[p] for p in points], beside,
        )  # fmt: skip


_OVER: dict[str, Callable[..., Array]] = {"mean": np.mean, "median": np.median}


@functools.cache
def widening(runs: int, pooled: int = 1) -> float:
    """By how much a bootstrap of so few runs is too narrow for a mean: it takes s/sqrt(n) with 1/n
    for 1/(n-1), and normal quantiles for Student's (Hesterberg, "What Teachers Should Know About
    the Bootstrap", 2015, section 3.4); of the mean of several cells their runs' degrees of freedom
    add up."""
    from scipy import stats  # a second to load

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
    """Everything that the store holds of an entry: without `repetitions` up to what it is run at
    most where a verdict stays uncertain."""
    name = engine or entry.engines[0]
    engines: list[str] = list(entry.engines) if entry.compare_engines else [name]
    points = points_of(entry, size, engines)
    cells = entry.cells(size)
    runs = [
        _stored(entry, store, one, size, cell, repetitions) for one in engines for cell in cells
    ]
    expressions = [expressions_of(entry, cell) for _ in engines for cell in cells]
    beside: Beside = {
        ("published", metric, ""): values
        for metric, values in published_cells(entry, points).items()
    }
    beside |= observed_cells(entry, points, observed)
    if any(metric.predict for metric in entry.metric.values()):
        beside |= predicted_cells(entry, size, points, store)
    label = " and ".join(engines)
    return Results(entry, label, size, points, runs, expressions, beside)


def on_kernel(results: Results, store: Store, repetitions: int | None) -> Results:
    """The same cells as the virtual machine ran them, as far as it did and kept up: a run that
    is not healthy shows what its processor could do, not what the kernel does."""
    entry, size = results.entry, results.size
    found = (
        _stored(entry, store, "vm", size, cell, repetitions, least=0) for cell in entry.cells(size)
    )
    runs = [[run for run in cell if not run.problems] for cell in found]
    return Results(
        entry, "vm", size, results.points, runs, results.expressions, results.beside
    )  # fmt: skip


def _stored(
    entry: Entry, store: Store, engine: str, size: Size, cell: Cell, repetitions: int | None,
    least: int | None = None,
) -> list[StoredRun]:  # fmt: skip
    """The runs of a cell; beyond what is asked for anyway, those that follow without a gap."""
    asked = repetitions or entry.repetitions_of(size, engine)
    most = asked if repetitions or entry.compare_engines else max(asked, entry.most_repetitions)
    found = []
    for index in range(most):
        try:
            job = job_of(entry, store, engine, cell, index)
        except ModuleNotFoundError:
            return []
        run = store.read(job.key, job.expressions)
        if run is not None:
            found.append(run)
        elif index >= (asked if least is None else least):
            break
    return found
