"""What a plot of a store shows, before it is drawn.

The unit of repetition is the run: a metric of flows is the mean over the flows of a group in each
run, and a point the mean over runs. Knows no drawing library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from fullpipe.base.errors import UserError
from fullpipe.expr.quantities import COLUMN_UNITS, quantity
from fullpipe.sweep.query import VIEWS, connect, quoted
from fullpipe.sweep.stopping import half_width
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import SCHEMAS

KINDS = ("line", "heat", "box", "cdf", "pareto")
MAX_PANELS, MAX_SERIES = 24, 24
Floats = npt.NDArray[np.float64]

#: Of these metrics less is better, of all others more.
_LESS = ("delay", "rtt", "ping", "loss", "retransmit", "drops", "queue", "completion")


@dataclass(frozen=True)
class Request:
    """What a user asks for; names are columns of the views."""

    y: str
    x: str | None = None
    by: str | None = None
    facet: str | None = None
    kind: str = "line"
    where: str | None = None


@dataclass(frozen=True)
class Series:
    """One line: at each x the mean of its runs, the 95 % interval, the number of runs, and the
    runs' own values. `x` holds numbers, or positions in `Chart.x_labels`."""

    name: str
    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    runs: tuple[Floats, ...]


@dataclass(frozen=True)
class Panel:
    """One plot of several with common axes. `heat`: means [y label, x label]. `front`: points
    (x, y) that no other is better than in both."""

    title: str
    series: list[Series] = field(default_factory=list)
    heat: Floats | None = None
    front: Floats | None = None


@dataclass(frozen=True)
class Chart:
    """All panels, and what stands at their axes. `x_labels` are empty for an axis of numbers."""

    kind: str
    title: str
    x_title: str
    y_title: str
    panels: list[Panel]
    x_labels: list[str] = field(default_factory=list)
    y_labels: list[str] = field(default_factory=list)
    log_x: bool = False
    note: str = ""


def make_chart(store: Store, request: Request) -> Chart:
    """The chart of a request.

    Raises UserError where a name is no column, nothing fits, or there is too much to see."""
    if request.kind not in KINDS:
        raise UserError(f"--kind {request.kind}: is not one of {', '.join(KINDS)}")
    needs = {"line": "x", "heat": "x", "box": "x", "pareto": "x"}.get(request.kind)
    if needs and request.x is None:
        raise UserError(f"--kind {request.kind} needs --x")
    if request.kind == "heat" and request.by is None:
        raise UserError("--kind heat needs --by, the axis upwards")
    rows, x_column = _rows(store, request)
    if not rows:
        raise UserError("plot: no run fits; `fullpipe query` shows what there is")
    facets = _ordered([row[0] for row in rows])
    if len(facets) > MAX_PANELS:
        raise UserError(f"--facet {request.facet}: {len(facets)} values, at most {MAX_PANELS}")
    names = _ordered([row[1] for row in rows])
    if request.kind != "heat" and len(names) > MAX_SERIES:
        raise UserError(f"--by {request.by}: {len(names)} values, at most {MAX_SERIES}")
    places = _ordered([row[2] for row in rows])
    numeric = request.kind in ("cdf", "pareto") or (
        request.kind == "line" and all(isinstance(place, int | float) for place in places)
    )
    counts: list[int] = []
    panels = []
    for facet in facets:
        mine = [row for row in rows if row[0] == facet]
        title = "" if request.facet is None else f"{request.facet} {_shown(facet)}"
        panels.append(_panel(request, title, mine, names, places, numeric, counts))
    runs = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    interval = ", with their 95 % interval (Student's t)" if request.kind == "line" else ""
    note = f"means of {runs} runs{interval}"
    if request.kind in ("cdf", "box"):
        note = f"{runs} runs a {'line' if request.kind == 'cdf' else 'box'}"
    if request.kind == "pareto":
        note = f"points are means of cells, {runs} cells a colour; line: no cell is better in both"
    return Chart(
        request.kind, f"{request.y}" + (f" by {request.by}" if request.by else ""),
        _title(x_column),
        "share of runs" if request.kind == "cdf" else (
            request.by or "" if request.kind == "heat" else _title(request.y)
        ),
        panels, [] if numeric and request.kind != "heat" else [_shown(p) for p in places],
        [_shown(name) for name in names] if request.kind == "heat" else [],
        _spans_decades(places) if numeric and request.kind == "line" else False, note,
    )  # fmt: skip


def run_values(
    store: Store, metric: str, axes: Sequence[str], where: str | None = None
) -> tuple[list[float], dict[str, list[str]]]:
    """A metric of every run (of flows: the mean of those that fit), and for each axis its value in
    that run. Raises UserError as `make_chart`."""
    connection = connect(store)
    try:
        columns = [row[0] for row in connection.execute("describe runs").fetchall()]
        flows = [row[0] for row in connection.execute("describe flows").fetchall()]
        view = _view(metric, {"flows": flows, "path": list(SCHEMAS["path"].names), "runs": columns})
        known = flows if view == "flows" else columns
        for name in axes:
            if name not in known:
                raise UserError(f"--of {name}: is no column; there are {', '.join(known)}")
        names = [quoted(name) for name in axes]
        condition = f"where {where}" if where else ""
        rows = connection.execute(
            f"select avg({quoted(metric)}), {', '.join(names)} from {view} {condition} "
            f"group by key, {', '.join(names)} having avg({quoted(metric)}) is not null"
        ).fetchall()
    except duckdb.Error as error:
        raise UserError(f"effects: {error}") from None
    finally:
        connection.close()
    if not rows:
        raise UserError("effects: no run fits")
    factors = {name: [str(row[index + 1]) for row in rows] for index, name in enumerate(axes)}
    return [row[0] for row in rows], factors


def _rows(store: Store, request: Request) -> tuple[list[tuple[Any, Any, Any, str, float]], str]:
    """(facet, by, x, run, y) of every run that has a value, and what the x axis shows."""
    connection = connect(store)
    try:
        columns = {
            view: [row[0] for row in connection.execute(f"describe {view}").fetchall()]
            for view in VIEWS
        }
        view = _view(request.y, columns, request.kind == "pareto")
        x = "null"
        joined = ""
        if request.kind == "pareto":
            other = _view(request.x or "", columns, True)
            joined = (
                f" join (select key, avg({quoted(request.x or '')}) as x_value from {other}"
                " group by key) using (key)"
            )
            x = "avg(x_value)"
        elif request.x is not None and request.kind != "cdf":
            x = _name(request.x, columns[view], request.kind == "line")
        by, facet = (
            _name(name, columns[view], False) if name else "''"
            for name in (request.by, request.facet)
        )
        group = [name for name in (facet, by) if name != "''"]
        group += [x] if x not in ("null", "avg(x_value)") else []
        where = f"where {request.where}" if request.where else ""
        sql = (
            f"select {facet}, {by}, {x}, key, avg({quoted(request.y)}) from {view}{joined} {where}"
            f" group by {', '.join([*dict.fromkeys(group), 'key'])}"
            f" having avg({quoted(request.y)}) is not null order by all"
        )
        if request.kind == "pareto":
            # One point a cell: its runs are repetitions of it.
            sql = (
                f"select {facet}, {by}, avg(x_value), cast(cell as varchar), "
                f"avg({quoted(request.y)}) from {view}{joined} {where} group by "
                f"{', '.join([*dict.fromkeys(group), 'cell'])} order by all"
            )
        shown = request.y if request.kind == "cdf" else request.x or ""
        if request.kind == "line":
            shown = _scaled(shown, columns[view])
        return connection.execute(sql).fetchall(), shown
    except duckdb.Error as error:
        raise UserError(f"plot: {error}") from None
    finally:
        connection.close()


def _view(metric: str, columns: dict[str, list[str]], of_runs: bool = False) -> str:
    """The view that has a metric: of flows before that of runs, unless runs are what is shown."""
    order = ("runs", "path", "flows") if of_runs else ("flows", "path", "runs")
    for view in order:
        if metric in SCHEMAS[view].names and metric in columns[view]:
            return view
    known = sorted({name for schema in SCHEMAS.values() for name in schema.names})
    raise UserError(f"{metric!r} is no metric; known are {', '.join(known)}")


def _name(name: str, columns: Sequence[str], scaled: bool) -> str:
    """A column, quoted; where plots need a scale, of an axis with a unit the one with numbers."""
    return quoted(_scaled(name, columns) if scaled else _checked(name, columns))


def _scaled(name: str, columns: Sequence[str]) -> str:
    found = (f"{name}_{unit}" for unit in COLUMN_UNITS.values())
    return next((column for column in found if column in columns), _checked(name, columns))


def _checked(name: str, columns: Sequence[str]) -> str:
    if name not in columns:
        raise UserError(f"{name!r} is no column; there are {', '.join(columns)}")
    return name


def _panel(
    request: Request, title: str, rows: list[Any], names: list[Any], places: list[Any],
    numeric: bool, counts: list[int],
) -> Panel:  # fmt: skip
    if request.kind == "heat":
        heat = np.full((len(names), len(places)), np.nan)
        for line, name in enumerate(names):
            for column, place in enumerate(places):
                found = [row[4] for row in rows if row[1] == name and row[2] == place]
                if found:
                    heat[line, column] = float(np.mean(found))
                    counts.append(len(found))
        return Panel(title, heat=heat)
    series = []
    for name in names:
        mine = [row for row in rows if row[1] == name]
        if not mine:
            continue
        label = "" if request.by is None else _shown(name)
        if request.kind == "cdf":
            values = np.sort(np.array([row[4] for row in mine], dtype=np.float64))
            share = np.arange(1, values.size + 1) / values.size
            series.append(Series(label, values, share, share, share, ()))
            counts.append(values.size)
            continue
        if request.kind == "pareto":
            points = np.array([[row[2], row[4]] for row in mine], dtype=np.float64)
            series.append(Series(label, points[:, 0], points[:, 1], points[:, 1], points[:, 1], ()))
            counts.append(len(mine))
            continue
        series.append(_series(label, mine, places, numeric, counts))
    front = None
    if request.kind == "pareto":
        points = np.array([[row[2], row[4]] for row in rows], dtype=np.float64)
        front = _front(points, _is_less(request.x or ""), _is_less(request.y))
    return Panel(title, series, front=front)


def _series(
    name: str, rows: list[Any], places: list[Any], numeric: bool, counts: list[int]
) -> Series:
    x, mean, low, high, runs = [], [], [], [], []
    for position, place in enumerate(places):
        values = np.array([row[4] for row in rows if row[2] == place], dtype=np.float64)
        if not values.size:
            continue
        half = half_width(values) if values.size > 1 else 0.0
        x.append(float(place) if numeric else float(position))
        mean.append(float(values.mean()))
        low.append(mean[-1] - half)
        high.append(mean[-1] + half)
        runs.append(values)
        counts.append(values.size)
    return Series(name, np.array(x), np.array(mean), np.array(low), np.array(high), tuple(runs))


def _front(points: Floats, less_x: bool, less_y: bool) -> Floats:
    """The points that no other beats in both, in the order of x."""
    signed = points * np.array([-1.0 if less_x else 1.0, -1.0 if less_y else 1.0])
    keep = [
        not any((other >= point).all() and (other > point).any() for other in signed)
        for point in signed
    ]
    chosen = np.unique(points[keep], axis=0)
    return np.asarray(chosen[np.argsort(chosen[:, 0])])


def _is_less(metric: str) -> bool:
    return any(word in metric for word in _LESS)


def _ordered(values: Sequence[Any]) -> list[Any]:
    """The values that there are: numbers and quantities by size, other text as it came."""
    found = list(dict.fromkeys(values))
    sizes = {value: quantity(value) for value in found}
    if None in sizes.values():
        return found
    return sorted(found, key=lambda value: sizes[value].value)  # type: ignore[union-attr]


def _spans_decades(values: Sequence[Any]) -> bool:
    numbers = [float(value) for value in values]
    return len(numbers) > 2 and min(numbers) > 0 and max(numbers) / min(numbers) >= 20


def _title(name: str) -> str:
    """A column's name with its unit in brackets."""
    units = {"bps": "bit/s", "s": "s", "ms": "ms", "us": "us", "rttmin": "RTTmin", "bdp": "BDP",
             "packets": "packets", "bits": "bit"}  # fmt: skip
    head, _, unit = name.rpartition("_")
    return f"{head.replace('_', ' ')} ({units[unit]})" if head and unit in units else (
        name.replace("_", " ")
    )  # fmt: skip


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
