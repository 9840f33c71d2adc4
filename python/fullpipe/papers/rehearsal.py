"""A dress rehearsal of an entry when it is read: every claim computed on made-up numbers, every
name of an axis looked up, so that a slip is found before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from fullpipe.base.errors import UserError
from fullpipe.expr.language import ExpressionError
from fullpipe.papers.entry import Entry, Size
from fullpipe.papers.values import Point, Table, UntestableError, evaluate, single
from fullpipe.sweep.templates import fill

_DRAWN = ("queue_delay_rttmin", "ping_ms", "goodput_mbps")


def rehearse(entry: Entry) -> None:
    """Raises UserError naming file, key and what is allowed where an expression, an axis or a
    value of an axis does not exist."""
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


def points_of(entry: Entry, size: Size, engines: list[str]) -> list[Point]:
    """The points that claims are about: cells, times engines where these are compared."""
    cells = entry.cells(size)
    if not entry.compare_engines:
        return [Point(cell.axes, cell.fields) for cell in cells]
    return [
        Point({**cell.axes, "engine": name}, {**cell.fields, "engine": name})
        for name in engines
        for cell in cells
    ]


def published_cells(entry: Entry, points: list[Point]) -> dict[str, dict[int, float]]:
    """Metric -> point -> value that the paper prints."""
    found: dict[str, dict[int, float]] = {}
    for published in entry.published:
        along = _values(entry, published.along) if published.along else [None]
        for expected, value in zip(along, published.values, strict=True):
            for index, point in enumerate(points):
                at = published.at if published.along is None else {
                    **published.at, published.along: expected
                }  # fmt: skip
                if all(point.axes.get(name) == want for name, want in at.items()):
                    found.setdefault(published.metric, {})[index] = value
    return found


def _values(entry: Entry, axis: str) -> list[Any]:
    """All values of an axis in the order of the first grid that has them, as labels."""
    found: list[Any] = []
    for grid in [*entry.full.grid, *entry.grid]:
        for value in grid.get(axis, []):
            label = value["label"] if isinstance(value, dict) else value
            if label not in found:
                found.append(label)
    return found


def _check_names(entry: Entry) -> None:
    axes = entry.axes
    for index, published in enumerate(entry.published):
        where = f"{entry.source}: published.{index}"
        _member(f"{where}.metric", published.metric, list(entry.metric))
        for name, value in published.at.items():
            _member(f"{where}.at", name, axes)
            _member(f"{where}.at.{name}", value, _values(entry, name))
        if published.along:
            _member(f"{where}.along", published.along, axes)
            known = _values(entry, published.along)
            if len(known) != len(published.values):
                raise UserError(
                    f"{where}.values: {len(published.values)} values along {published.along}, "
                    f"which has {len(known)}: {', '.join(map(str, known))}"
                )
    for index, plot in enumerate(entry.plot):
        where = f"{entry.source}: plot.{index}"
        _member(f"{where}.of", plot.of, list(entry.metric) if plot.kind == "line" else _DRAWN)
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


def _member(where: str, name: Any, known: Any) -> None:
    if name not in known:
        raise UserError(f"{where}: {name!r} is not one of {', '.join(map(str, known)) or 'none'}")


def _made_up(entry: Entry, size: Size) -> Table:
    points = points_of(entry, size, list(entry.engines))
    draw = np.random.default_rng(1)
    values = {name: draw.uniform(0.5, 1.5, (1, len(points))) for name in entry.metric}
    beside: dict[tuple[str, str, str], dict[int, float]] = {
        ("published", name, ""): values for name, values in published_cells(entry, points).items()
    }
    for observed in entry.observed:
        beside["observed", observed.metric, ""] = dict.fromkeys(range(len(points)), 1.0)
    numbers = {name: number.value for name, number in entry.number.items()}
    return Table(points, values, numbers, _Predictions(beside, entry, len(points)))


class _Predictions(dict[tuple[str, str, str], dict[int, float]]):
    """Made-up predictions of any model, for metrics that say what models predict."""

    def __init__(self, known: Any, entry: Entry, count: int) -> None:
        super().__init__(known)
        self.entry, self.count = entry, count

    def get(self, key: Any, default: Any = None) -> Any:
        kind, metric, _ = key
        if kind == "predicted" and self.entry.metric[metric].predict:
            return dict.fromkeys(range(self.count), 1.0)
        return super().get(key, default)
