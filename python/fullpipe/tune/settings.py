"""Runs settings of a congestion control over the rows of a search, and measures them.

A setting is a value for each constant that differs from the congestion control's own; its name is
what a scenario's `cc` takes, `cubic[beta=0.85]`. Must never decide which setting is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fullpipe.conformance.measured_conditions import holds
from fullpipe.congestion.registry import choose
from fullpipe.scorecard.card import summary
from fullpipe.scorecard.items import ALONE
from fullpipe.scorecard.values import Rows, Values, rows_of, values_of
from fullpipe.statistics.intervals import wilson
from fullpipe.sweep.cells import Cell
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.schedule import Progress
from fullpipe.sweep.store import Store
from fullpipe.sweep.together import run_together
from fullpipe.tune.file import Row, Search

Setting = Mapping[str, str]


@dataclass(frozen=True)
class Result:
    """What a setting was measured to be. `values`: `row.measure` -> number; `intervals`: of those
    that have one, its 95 % interval; NaN where nothing was measured."""

    name: str
    objective: float
    values: dict[str, float]
    intervals: dict[str, tuple[float, float]]


@dataclass
class Bench:
    """Measures settings of one search on its training paths, or on its held-out ones. Each setting
    runs once: the store keeps the runs, so that a search that was interrupted continues."""

    search: Search
    store: Store
    held_out: bool = False
    jobs: int | None = None
    on_progress: Callable[[Progress], None] = lambda _progress: None
    results: dict[str, Result] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def name(self, setting: Setting) -> str:
        """The name of a setting, for a scenario's `cc`; constants with default values left out."""
        written = self.search.options.cc.partition("[")[0]
        values = {**self.search.defaults, **setting}
        changed = [f"{k}={v}" for k, v in values.items() if v != self.search.shipped[k]]
        text = ",".join(changed)
        return f"{written}[{text}]" if text else written

    def measure(self, settings: Sequence[Setting]) -> list[Result]:
        """The results of settings, in their order. Raises UserError where a row cannot run."""
        return self.measure_names([self.name(setting) for setting in settings])

    def measure_names(self, names: Sequence[str]) -> list[Result]:
        """The results of congestion controls by name. Raises UserError for an unknown one, and
        KeyboardInterrupt where a run was interrupted."""
        fresh = [name for name in dict.fromkeys(names) if name not in self.results]
        if fresh:
            self._run(fresh)
        return [self.results[name] for name in names]

    def _run(self, names: Sequence[str]) -> None:
        rows = self.search.rows
        alone = [row for row in rows if row.harms]
        wanted = [(row, name) for name in names for row in rows]
        wanted += [(row, ALONE) for row in alone]
        for name in names:
            choose(name, {})
        ran = run_together(
            [self._sweep(row, name) for row, name in wanted],
            self.store,
            self.jobs,
            self.on_progress,
        )
        if ran.interrupted:
            raise KeyboardInterrupt
        self.failures |= ran.failures
        cells = {
            (row.id, name): row_cells
            for (row, name), row_cells in zip(wanted, ran.cells, strict=True)
        }
        keys = {key for row_cells in ran.cells for cell in row_cells for key in cell.keys}
        measured = rows_of(self.store, keys)
        for name in names:
            self.results[name] = self._result(name, cells, measured)

    def _sweep(self, row: Row, name: str) -> Sweep:
        """A row's runs of one congestion control. Held-out ones draw other paths if the row draws
        any, and have other random seeds."""
        if not self.held_out:
            return row.runs(name, False, "sim")
        seed = self.search.options.held_out_seed
        sweep = dict(row.sweep)
        if isinstance(sweep.get("sample"), Mapping):
            sweep["sample"] = {**sweep["sample"], "seed": seed}
        first = (seed + 1) * 1000
        held_out = row.model_copy(update={"sweep": sweep})
        return held_out.runs(name, False, "sim", overrides=[f"seed={first}"])

    def _result(self, name: str, cells: Mapping[tuple[str, str], list[Cell]], rows: Rows) -> Result:
        values: dict[str, float] = {}
        intervals: dict[str, tuple[float, float]] = {}
        for row in self.search.rows:
            together, alone = cells[row.id, name], cells.get((row.id, ALONE))
            numbers = {m.id: values_of(row, m, together, alone, rows) for m in row.measure}
            for measure in row.measure:
                interval = summary(measure, numbers[measure.id])
                values[f"{row.id}.{measure.id}"] = _number(interval["value"])
                if interval["low"] is not None and interval["high"] is not None:
                    ends = float(interval["low"]), float(interval["high"])
                    intervals[f"{row.id}.{measure.id}"] = ends
            for called, condition in row.share.items():
                met, count = _met(condition, numbers)
                values[f"{row.id}.{called}"] = met / count
                intervals[f"{row.id}.{called}"] = wilson(met, count)
        return Result(name, self.search.objective.value(values), values, intervals)


def _met(condition: str, numbers: Mapping[str, Values]) -> tuple[int, int]:
    """How many cells meet a condition on their means over seeds, and how many there are."""
    cells = len(next(iter(numbers.values())))
    met = 0
    for cell in range(cells):
        means = {name: _mean(values[cell]) for name, values in numbers.items()}
        met += holds(condition, means)
    return met, cells


def _mean(values: Sequence[float]) -> float:
    valid = [value for value in values if not math.isnan(value)]
    return float(np.mean(valid)) if valid else math.nan


def _number(value: float | str | None) -> float:
    """A number of a scorecard's document; what never ends is infinite."""
    if value is None:
        return math.nan
    return math.inf if isinstance(value, str) else float(value)
