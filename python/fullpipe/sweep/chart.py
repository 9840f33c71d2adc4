"""Charts of a store, as plots that any renderer draws.

The unit of repetition is the run: a metric of flows is the mean over the flows of a group in each
run, and a point is the mean over runs. This module must not know a drawing library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from fullpipe.base.errors import UserError
from fullpipe.base.units import counted
from fullpipe.congestion.registry import cc_sets
from fullpipe.expr.quantities import COLUMN_UNITS, quantity
from fullpipe.metrics.settling import of_stored
from fullpipe.metrics.titles import title_of
from fullpipe.plots import style
from fullpipe.plots.model import BOX_QUANTILES, Box, Floats, Grid, Heat, Plot, Trace, box_of, cdf
from fullpipe.statistics.intervals import half_width
from fullpipe.sweep import applications
from fullpipe.sweep.chart_axes import (
    Scale,
    all_shown,
    axis_title,
    metric_title,
    scale_of,
    shown,
    ticks,
)
from fullpipe.sweep.query import (
    axis_columns,
    choices,
    columns_of,
    connected,
    metric_column,
    quoted,
    reason,
    select,
)
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import SCHEMAS

KINDS = ("line", "heat", "box", "cdf", "pareto")
MAX_PANELS, MAX_SERIES = 24, 24

#: A cell of a store as text, SWEEP/INDEX, in SQL.
CELL = "sweep || '/' || cell"
#: The runs whose figures are not to be trusted, in SQL.
_UNTRUSTED = "select key from runs_rows where problems <> ''"
#: Numbers that say which run or flow a row is of.
_NAMES = ("flow_id", "seed")
#: Of these metrics less is better, of all others more.
_LESS = (
    "delay",
    "rtt",
    "ping",
    "loss",
    "retransmit",
    "drops",
    "queue",
    "completion",
    "jitter",
    "slowdown",
    "page_time",
)


@dataclass(frozen=True)
class Request:
    """What a user asks for; names are columns of the views. `sweep`: which (listing.chosen)."""

    y: str
    x: str | None = None
    by: str | None = None
    facet: str | None = None
    kind: str = "line"
    where: str | None = None
    sweep: str | None = None


def make_chart(store: Store, request: Request) -> Grid:
    """The chart of a request.

    Raises UserError where a name is no column, nothing fits, or there is too much to see."""
    if request.kind not in KINDS:
        raise UserError(f"--kind {request.kind}: is not one of {', '.join(KINDS)}")
    needs = {"line": "x", "heat": "x", "box": "x", "pareto": "x"}.get(request.kind)
    if needs and request.x is None:
        raise UserError(f"--kind {request.kind} needs --x")
    if request.kind == "heat" and request.by is None:
        raise UserError("--kind heat needs --by, the axis upwards")
    selected = _rows(store, request)
    rows, x_column, own_axes = selected.rows, selected.x, selected.own_axes
    if not rows and selected.problems:
        raise UserError(f"plot: no run that fits is to be trusted: {selected.problems[0]}")
    if not rows:
        raise UserError("plot: no run fits; `fullpipe query` shows what there is")
    crossed = selected.crossed if request.kind == "heat" else []
    facets = _ordered([row[0] for row in [*rows, *crossed]])
    if len(facets) > MAX_PANELS:
        raise UserError(f"--facet {request.facet}: {len(facets)} values, at most {MAX_PANELS}")
    names = _ordered([row[1] for row in [*rows, *crossed]])
    if request.kind != "heat" and len(names) > MAX_SERIES:
        raise UserError(f"--by {request.by}: {len(names)} values, at most {MAX_SERIES}")
    divisors = [
        1.0 if request.kind != "pareto" else title_of(request.x or "")[1],
        title_of(request.y)[1],
    ]
    rows = [_divided(row, *divisors) for row in rows]
    x_values = _ordered([row[2] for row in [*rows, *crossed]])
    draw = _Drawer(request, x_column, names, x_values, crossed, selected.fair)
    panels = []
    for facet in facets:
        key = "" if request.facet is None else shown(facet)
        panels.append(draw.panel(facet, key, [row for row in rows if row[0] == facet]))
    title = title_of(request.y)[0].partition(" (")[0]
    title += f" by {axis_title(request.by)}" if request.by else ""
    note = f"; averaged over {', '.join(selected.averaged)}" if selected.averaged else ""
    if request.kind == "heat" and selected.fair is not None:
        note += f"; white: the fair share, {selected.fair:.3g}"
    note += f"; {selected.settling}" if selected.settling else ""
    note += "".join(f"; only flows whose {name} is the cell's" for name in own_axes)
    return Grid(title, panels, draw.note() + note + _left_out(selected, request.kind))


class _Drawer:
    """Draws the panels of one request. `counts` gathers how many runs each point stands for."""

    def __init__(
        self,
        request: Request,
        x_column: str,
        names: list[Any],
        x_values: list[Any],
        crossed: Sequence[Any],
        fair: float | None,
    ) -> None:
        self.request = request
        is_metric = request.kind in ("cdf", "pareto")
        self.x_title = metric_title(x_column) if is_metric else axis_title(x_column)
        self.fair = fair
        self.names = names
        self.x_values = x_values
        self.crossed = crossed
        self.counts: list[int] = []
        is_number = all(isinstance(x_value, int | float) for x_value in x_values)
        self.scale: Scale | None = None
        if request.kind == "line" and is_number:
            self.scale = scale_of(x_column, x_values)
            self.x_title = self.scale.title

    def panel(self, value: Any, key: str, rows: list[Any]) -> Plot:
        """The plot of these rows, which have this value of the facets' axis, shown as `key`."""
        facet = self.request.facet
        title = "" if facet is None else f"{axis_title(facet)} {key}"
        if self.request.kind == "heat":
            return self._heat(value, key, title, rows)
        y_title = "Share of runs" if self.request.kind == "cdf" else metric_title(self.request.y)
        traces: list[Trace] = []
        boxes: list[Box] = []
        for index, name in enumerate(self.names):
            named_rows = [row for row in rows if row[1] == name]
            if not named_rows:
                continue
            label = "" if self.request.by is None else shown(name)
            colour = self._colour(label, index)
            if self.request.kind == "box":
                boxes += self._boxes(label, colour, named_rows, index)
            elif self.request.kind == "line":
                traces.append(self._line(label, colour, named_rows, index))
            else:
                draw = self._cdf if self.request.kind == "cdf" else self._points
                traces.append(draw(label, colour, named_rows))
        if self.request.kind == "pareto":
            traces.append(self._front(rows))
        if self.fair is not None and self.request.kind == "line" and traces:
            traces.append(self._fair_line(self.fair))
        is_log = self.scale is not None and self.scale.is_log
        return Plot(
            key,
            title,
            self.x_title,
            y_title,
            traces,
            boxes=boxes,
            x_ticks=self._ticks(),
            log_x=10 if is_log else 0,
            zero=False,
        )

    def _ticks(self) -> tuple[tuple[float, str], ...]:
        if self.scale is not None:
            low, high = (
                end / self.scale.divisor for end in (min(self.x_values), max(self.x_values))
            )
            return ticks(low, high, self.scale.is_log)
        if self.request.kind in ("box", "line"):
            return tuple((float(at), text) for at, text in enumerate(all_shown(self.x_values)))
        return ()

    def _fair_line(self, fair: float) -> Trace:
        """A line across the panel at the fair share."""
        ends = (
            (0, len(self.x_values) - 1)
            if self.scale is None
            else (min(self.x_values) / self.scale.divisor, max(self.x_values) / self.scale.divisor)
        )
        x = np.array(ends, dtype=np.float64)
        return Trace(
            "fair share", style.REFERENCE, x, np.full(2, fair), "dash", 1.0, is_reference=True
        )

    def _colour(self, name: str, index: int) -> str:
        """A congestion control's own colour where lines stand for congestion controls."""
        if not name:
            return style.NEUTRAL
        is_cc = self.request.by == "cc" or name in cc_sets()
        return style.cc_colour(name) if is_cc else style.line_colour(index)

    def note(self) -> str:
        """What the points of the panels stand for."""
        low, high = min(self.counts), max(self.counts)
        runs = f"{low}" if low == high else f"{low} to {high}"
        match self.request.kind:
            case "cdf":
                return f"{runs} runs a line"
            case "box":
                return f"{runs} runs a box; box: quartiles; whiskers: 5th and 95th percentile"
            case "pareto":
                return (
                    f"points are means of cells, {runs} cells a colour; line: no cell is better in "
                    "both"
                )
            case "line":
                return f"means of {runs} runs, with their 95 % interval (Student's t)"
            case _:
                return f"means of {runs} runs"

    def _heat(self, facet: Any, key: str, title: str, rows: list[Any]) -> Plot:
        values = np.full((len(self.names), len(self.x_values)), np.nan)
        for line, name in enumerate(self.names):
            for column, x_value in enumerate(self.x_values):
                samples = [row[4] for row in rows if row[1] == name and row[2] == x_value]
                if samples:
                    values[line, column] = float(np.mean(samples))
                    self.counts.append(len(samples))
        heat = Heat(
            values,
            tuple(all_shown(self.x_values)),
            tuple(all_shown(self.names)),
            metric_title(self.request.y),
            self._crossed(facet, values),
            self.fair,
            tuple(map(str, self.x_values)),
            tuple(map(str, self.names)),
        )
        by = axis_title(self.request.by or "")
        return Plot(key, title, self.x_title, by, heat=heat, zero=False)

    def _crossed(self, facet: Any, values: Floats) -> tuple[tuple[int, int], ...]:
        """The cells none of whose runs is to be trusted."""
        crossed = {
            (self.names.index(name), self.x_values.index(x_value))
            for panel, name, x_value in self.crossed
            if panel == facet
        }
        return tuple(sorted(cell for cell in crossed if np.isnan(values[cell])))

    def _line(self, name: str, colour: str, rows: list[Any], index: int) -> Trace:
        """Means with intervals: joined along numbers; side by side at values without an order."""
        x, mean, half, keys = [], [], [], []
        for position, x_value in enumerate(self.x_values):
            values = _values(rows, x_value)
            if values.size:
                aside = (index - (len(self.names) - 1) / 2) * 0.5 / len(self.names)
                x.append(float(x_value) / self.scale.divisor if self.scale else position + aside)
                mean.append(float(values.mean()))
                half.append(half_width(values) if values.size > 1 else 0.0)
                keys.append(str(x_value))
                self.counts.append(values.size)
        y, spread = np.array(mean), np.array(half)
        return Trace(
            name,
            colour,
            np.array(x),
            y,
            width=2.0,
            mark="dot",
            joined=self.scale is not None,
            band=(y - spread, y + spread),
            keys=tuple(keys),
        )

    def _boxes(self, name: str, colour: str, rows: list[Any], index: int) -> list[Box]:
        width = 0.8 / len(self.names)
        boxes = []
        for position, x_value in enumerate(self.x_values):
            values = _values(rows, x_value)
            if values.size:
                self.counts.append(values.size)
                at = position + (index + 0.5) * width - 0.4
                quantiles = np.quantile(values, BOX_QUANTILES)
                boxes.append(box_of(name, colour, quantiles, values, at, 0.8 * width))
        return boxes

    def _cdf(self, name: str, colour: str, rows: list[Any]) -> Trace:
        self.counts.append(len(rows))
        x, y = cdf(np.array([row[4] for row in rows], dtype=np.float64))
        return Trace(name, colour, x, y, shape="after")

    def _points(self, name: str, colour: str, rows: list[Any]) -> Trace:
        self.counts.append(len(rows))
        points = _pairs(rows)
        return Trace(
            name,
            colour,
            points[:, 0],
            points[:, 1],
            opacity=0.8,
            mark="dot",
            keys=tuple(row[3] for row in rows),
        )

    def _front(self, rows: list[Any]) -> Trace:
        front = _front(_pairs(rows), _is_less(self.request.x or ""), _is_less(self.request.y))
        return Trace("front", style.NEUTRAL, front[:, 0], front[:, 1])


def _pairs(rows: list[Any]) -> Floats:
    return np.array([[row[2], row[4]] for row in rows], dtype=np.float64)


def _values(rows: list[Any], x_value: Any) -> Floats:
    return np.array([row[4] for row in rows if row[2] == x_value], dtype=np.float64)


def run_values(
    store: Store,
    metric: str,
    axes: Sequence[str],
    where: str | None = None,
    sweep: str | None = None,
) -> tuple[list[float], dict[str, list[str]]]:
    """A metric of every run (of flows: the mean of those that fit), and for each axis its value in
    that run. Raises UserError as `make_chart`."""

    def read(connection: duckdb.DuckDBPyConnection) -> list[Any]:
        view = view_of(metric)
        names = _Names(view, columns_of(connection, view))
        y = quoted(metric_column(metric, view, names.columns))
        factors = [quoted(names.column(name)) for name in axes]
        try:
            return select(
                connection,
                f"select avg({y}), {', '.join(factors)} from {view} {names.where(where)} "
                f"group by {', '.join(['key', *factors])} having avg({y}) is not null",
            ).fetchall()
        except duckdb.Error as error:
            raise UserError(f"effects: {reason(error, connection)}") from None

    rows = connected(store, read, sweep=sweep)
    if not rows:
        raise UserError("effects: no run fits")
    texts = {name: [str(row[index + 1]) for row in rows] for index, name in enumerate(axes)}
    return [row[0] for row in rows], texts


class _Names:
    """The columns of a view by the names that users give. `own_axes`: the names that are an
    axis and a column of `flows`: they mean the axis, and only the flows that take their value
    from it."""

    def __init__(self, view: str, columns: Sequence[str]) -> None:
        self.view = view
        self.columns = columns
        self.own_axes: dict[str, None] = {}

    def column(self, name: str) -> str:
        """The column that a name means. Raises UserError for an unknown or ambiguous one."""
        if name in self.columns:
            return name
        if f"own_{name}" in self.columns:
            self.own_axes[name] = None
            return f"axis_{name}"
        if ambiguity := choices(name, self.view, self.columns):
            raise UserError(ambiguity)
        raise UserError(f"{name!r} is no column; there are {', '.join(self.columns)}")

    def scaled(self, name: str) -> str:
        """As `column`; of an axis with a unit the column with numbers."""
        units = COLUMN_UNITS.values()
        columns = (f"{prefix}{name}_{unit}" for prefix in ("axis_", "") for unit in units)
        return next((column for column in columns if column in self.columns), "") or self.column(
            name
        )

    def where(self, condition: str | None, is_trusted: bool = True) -> str:
        """The rows that a user's condition and `own_axes` leave, in SQL: of runs without
        problems, or of the others."""
        conditions = [f"({condition})"] if condition else []
        conditions += [quoted(f"own_{name}") for name in self.own_axes]
        conditions.append(f"key {'not in' if is_trusted else 'in'} ({_UNTRUSTED})")
        return f"where {' and '.join(conditions)}"


@dataclass(frozen=True)
class _Rows:
    """`rows`: (facet, by, x, run, y) of every run that has a value. `x`: what that axis shows.
    `own_axes`: the axes of which only flows with their value count (`_Names.own_axes`).
    `crossed`: (facet, by, x) of runs that are left out since they are not to be trusted, and their
    `problems`. `averaged`: axes that are not shown, with how many values of each a point stands
    for. `fair`: of shares, what each flow would have if all had the same; None where runs differ.
    `settling`: the note about runs that had not settled."""

    rows: list[tuple[Any, Any, Any, str, float]]
    x: str
    own_axes: list[str]
    crossed: list[tuple[Any, Any, Any]]
    problems: list[str]
    averaged: list[str]
    fair: float | None
    settling: str


def _left_out(selected: _Rows, kind: str) -> str:
    """The note about the runs that are left out; empty where there are none."""
    if not selected.problems:
        return ""
    runs = counted(len(selected.crossed), "run")
    how = "crossed out" if kind == "heat" else "left out"
    return f"; {how}, {runs}: {'; '.join(dict.fromkeys(selected.problems[:2]))}"


def _rows(store: Store, request: Request) -> _Rows:
    """What a request asks for."""

    def read(connection: duckdb.DuckDBPyConnection) -> _Rows:
        try:
            return _read(connection, request)
        except duckdb.Error as error:
            raise UserError(f"plot: {reason(error, connection)}") from None

    return connected(store, read, sweep=request.sweep)


def _read(connection: duckdb.DuckDBPyConnection, request: Request) -> _Rows:
    view = view_of(request.y, request.kind == "pareto")
    names = _Names(view, columns_of(connection, view))
    y = quoted(metric_column(request.y, view, names.columns))
    by, facet = (
        quoted(names.column(name)) if name else "''" for name in (request.by, request.facet)
    )
    x, joined, shown = "null", "", request.y
    if request.kind == "pareto":
        shown = request.x or ""
        x_view = view_of(shown, True)
        column = metric_column(shown, x_view, columns_of(connection, x_view))
        joined = (
            f" join (select key, avg({quoted(column)}) as x_value from {x_view}"
            f" {names.where(None) if x_view == view else ''} group by key) using (key)"
        )
        x = "avg(x_value)"
    elif request.x is not None and request.kind != "cdf":
        shown = names.scaled(request.x) if request.kind == "line" else names.column(request.x)
        x = quoted(shown)
    group = [name for name in (facet, by) if name != "''"]
    group += [x] if x not in ("null", "avg(x_value)") else []
    # Of pareto one point a cell: its runs are repetitions of it.
    unit = CELL if request.kind == "pareto" else "key"
    rows = select(
        connection,
        f"select {facet}, {by}, {x}, {unit} as unit, avg({y}) "
        f"from {view}{joined} {names.where(request.where)} "
        f"group by {', '.join([*dict.fromkeys(group), 'unit'])} "
        f"having avg({y}) is not null order by all",
    ).fetchall()
    wanted = names.where(request.where, is_trusted=False)
    shown_x = x if x not in ("null", "avg(x_value)") else "null"
    bad = select(
        connection,
        f"select {facet}, {by}, {shown_x}, any_value(problems_of.problems) "
        f"from {view} join (select key, problems from runs_rows) problems_of using (key) "
        f"{wanted} group by {', '.join([*dict.fromkeys([*group, 'key'])])} order by all",
    ).fetchall()
    return _Rows(
        rows,
        shown.removeprefix("axis_"),
        list(names.own_axes),
        [(row[0], row[1], row[2]) for row in bad],
        [row[3] for row in bad],
        _averaged(connection, request, names) if request.kind != "pareto" else [],
        _fair_share(connection, request, names),
        _settling(connection, request, names),
    )


def _averaged(connection: duckdb.DuckDBPyConnection, request: Request, names: _Names) -> list[str]:
    """The axes that are not shown and vary among the rows of a point: `buffer (3 values)`."""
    view = names.view
    on_axes = (request.x, request.by, request.facet)
    shown_names = {name.removeprefix("axis_") for name in on_axes if name}
    hidden = []
    columns = [name for name in axis_columns(columns_of(connection, "asked")) if name != "sweep"]
    for axis in dict.fromkeys(map(_bare, columns)):
        column = f"axis_{axis}" if f"axis_{axis}" in names.columns else axis
        if axis not in shown_names and column in names.columns:
            hidden.append((axis, column))
    if not hidden:
        return []
    counts = ", ".join(f"count(distinct {quoted(column)})" for _, column in hidden)
    counted_values = select(connection, f"select {counts} from {view} {names.where(request.where)}")
    (row,) = counted_values.fetchall()
    return [
        f"{axis} ({count} values)"
        for (axis, _), count in zip(hidden, row, strict=True)
        if count > 1
    ]


def _bare(column: str) -> str:
    """An axis without the unit of the column that has its numbers."""
    head, _, unit = column.rpartition("_")
    return head if head and unit in COLUMN_UNITS.values() else column


def _settling(connection: duckdb.DuckDBPyConnection, request: Request, names: _Names) -> str:
    """Whether the runs of a metric of flows or queues had settled; empty where they had."""
    rows = select(
        connection,
        "select unsettled from runs_rows where key in "
        f"(select key from {names.view} {names.where(request.where)})",
    ).fetchall()
    return of_stored([row[0] or "" for row in rows])


def _fair_share(
    connection: duckdb.DuckDBPyConnection, request: Request, names: _Names
) -> float | None:
    if request.y != "share":
        return None
    flow_counts = select(
        connection,
        "select distinct flows from (select key, count(*) as flows from flows_rows group by key) "
        f"join {names.view} using (key) {names.where(request.where)} limit 2",
    ).fetchall()
    return 1 / flow_counts[0][0] if len(flow_counts) == 1 and flow_counts[0][0] > 1 else None


def view_of(metric: str, of_runs: bool = False) -> str:
    """The view that has a metric: of flows before that of runs, unless runs are what is shown."""
    numbers = {
        view: [
            field.name for field in schema if _is_number(field.type) and field.name not in _NAMES
        ]
        for view, schema in SCHEMAS.items()
    } | applications.COLUMNS
    order = ("runs", "path", "flows") if of_runs else ("flows", "path", "runs")
    for view in (*order, *applications.COLUMNS):
        if metric in numbers[view]:
            return view
    metrics = sorted({name for names in numbers.values() for name in names})
    raise UserError(f"{metric!r} is no metric; known are {', '.join(metrics)}")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


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
    distinct = list(dict.fromkeys(values))
    sizes = {value: quantity(value) for value in distinct}
    if None in sizes.values():
        return distinct
    return sorted(distinct, key=lambda value: sizes[value].value)  # type: ignore[union-attr]


def _divided(
    row: tuple[Any, Any, Any, str, float], x: float, y: float
) -> tuple[Any, Any, Any, str, float]:
    facet, by, x_value, unit, value = row
    return facet, by, x_value / x if x != 1.0 else x_value, unit, value / y
