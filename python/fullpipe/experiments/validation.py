"""Checks an entry when it is read: every claim is computed on made-up numbers and every name of
an axis is looked up, so that a mistake is found before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from fullpipe.base.errors import UserError
from fullpipe.experiments.entry import DRAWN, Entry, Size
from fullpipe.experiments.reference_values import axis_values, points_of, published_values
from fullpipe.experiments.values import Table, UntestableError, evaluate, single
from fullpipe.expr.language import ExpressionError
from fullpipe.sweep.templates import fill


def validate(entry: Entry) -> None:
    """Raises UserError naming file, key and what is allowed if an expression is wrong or names an
    unknown axis or value of an axis."""
    _check_names(entry)
    for size in ("default", "full"):
        table = _made_up(entry, size)
        for claim in entry.claim:
            for key, text in (("check", claim.check), ("value", claim.value)):
                if text is None or (entry.not_yet_runnable and claim.about != "arithmetic"):
                    continue
                try:
                    single(evaluate(text, table), text)
                except ExpressionError as error:
                    raise UserError(f"{entry.source}: claim {claim.id}: {key}: {error}") from None
                except UntestableError as error:
                    if size == "full":
                        raise UserError(
                            f"{entry.source}: claim {claim.id}: {key}: {error}"
                        ) from None


def _check_names(entry: Entry) -> None:
    axes = entry.axes
    for index, published in enumerate(entry.published):
        where = f"{entry.source}: published.{index}"
        _member(f"{where}.metric", published.metric, list(entry.metric))
        for name, value in published.at.items():
            _member(f"{where}.at", name, axes)
            _member(f"{where}.at.{name}", value, axis_values(entry, name))
        if published.along:
            _member(f"{where}.along", published.along, axes)
            labels = axis_values(entry, published.along)
            if len(labels) != len(published.values):
                raise UserError(
                    f"{where}.values: {len(published.values)} values along {published.along}, "
                    f"which has {len(labels)}: {', '.join(map(str, labels))}"
                )
    for index, plot in enumerate(entry.plot):
        where = f"{entry.source}: plot.{index}"
        known_of = list(entry.metric if plot.kind == "line" else DRAWN[plot.kind])
        _member(f"{where}.of", plot.of, known_of)
        for name in [*plot.by, *plot.panel, *([plot.x] if plot.x else [])]:
            _member(f"{where}", name, axes)
    for index, observed in enumerate(entry.observed):
        where = f"{entry.source}: observed.{index}"
        _member(f"{where}.metric", observed.metric, list(entry.metric))
        for cell in entry.cells("default")[:1]:
            fill(observed.match, cell.fields, f"{where}.match")
    for cell in entry.cells("default")[:1]:
        for name, metric in entry.metric.items():
            for key, text in (("value", metric.value), ("predict", metric.predict)):
                fill(text, cell.fields, f"{entry.source}: metric.{name}.{key}")


def _member(where: str, name: Any, allowed: Any) -> None:
    if name not in allowed:
        raise UserError(f"{where}: {name!r} is not one of {', '.join(map(str, allowed)) or 'none'}")


def _made_up(entry: Entry, size: Size) -> Table:
    points = points_of(entry, size, list(entry.engines))
    draw = np.random.default_rng(1)
    metrics = {name: draw.uniform(0.5, 1.5, (1, len(points))) for name in entry.metric}
    beside: dict[tuple[str, str, str], dict[int, float]] = {
        ("published", name, ""): values for name, values in published_values(entry, points).items()
    }
    for observed in entry.observed:
        beside["observed", observed.metric, ""] = dict.fromkeys(range(len(points)), 1.0)
    numbers = {name: number.value for name, number in entry.number.items()}
    return Table(points, metrics, numbers, _Predictions(beside, entry, len(points)))


class _Predictions(dict[tuple[str, str, str], dict[int, float]]):
    """Made-up predictions of every model, for the metrics that have `predict`."""

    def __init__(self, values: Any, entry: Entry, count: int) -> None:
        super().__init__(values)
        self.entry, self.count = entry, count

    def get(self, key: Any, default: Any = None) -> Any:
        kind, metric, _ = key
        if kind == "predicted" and self.entry.metric[metric].predict:
            return dict.fromkeys(range(self.count), 1.0)
        return super().get(key, default)
