"""A store as the page shows it: its progress, a chart, one cell.

Only reads. Names from the page are checked before use, and no SQL comes from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.base.toml import parse_toml
from fullpipe.congestion.trust import from_outside
from fullpipe.expr.quantities import COLUMN_UNITS
from fullpipe.plots.plotly_renderer import grid_figure_of
from fullpipe.sweep.cells import cells_of, scenario_of
from fullpipe.sweep.chart import KINDS, Request, make_chart, view_of
from fullpipe.sweep.file import read_sweep
from fullpipe.sweep.query import ask, axis_column, axis_columns, quoted, sql_text
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import SCHEMAS


def state(folder: Path) -> dict[str, Any]:
    """Runs that are there and that sweeps ask for, and what a chart may be made of."""
    store = Store(folder)
    asked = store.sweeps()
    keys = {key for rows in asked.values() for key in rows.column("key").to_pylist()}
    columns: dict[str, int] = {}
    for rows in asked.values():
        for name in axis_columns(rows.column_names):
            if not _is_companion(name, rows.column_names):
                values = rows.column(name).unique()
                columns[name] = max(columns.get(name, 0), len(values))
    metrics = sorted({
        field.name
        for schema in SCHEMAS.values()
        for field in schema
        if str(field.type) == "double" and field.name not in ("start_s",)
    })  # fmt: skip
    axes = sorted(columns, key=lambda name: columns[name] < 2)
    return {
        "done": len(store.known() & keys), "asked": len(keys), "axes": axes,
        "metrics": metrics, "kinds": list(KINDS), "name": folder.name,
    }  # fmt: skip


def _is_companion(name: str, names: list[str]) -> bool:
    """Whether a column holds another's values in base units."""
    return any(name == f"{other}_{unit}" for other in names for unit in COLUMN_UNITS.values())


def chart(folder: Path, wanted: dict[str, str]) -> dict[str, Any]:
    """A chart as `data` and `layout` for Plotly's script. `wanted`: y, x, by, facet, kind, and
    filters `is.AXIS` = value.

    Raises UserError if a name is no column."""
    store = Store(folder)
    filters = {
        name.removeprefix("is."): value
        for name, value in wanted.items()
        if name.startswith("is.") and value
    }
    y, kind = wanted.get("y", "goodput_bps"), wanted.get("kind", "line")
    where = " and ".join(_fits(store, filters, view_of(y, kind == "pareto")))
    request = Request(
        y, wanted.get("x") or None, wanted.get("by") or None,
        wanted.get("facet") or None, kind, where or None,
    )  # fmt: skip
    return grid_figure_of(make_chart(store, request))


def cell(folder: Path, wanted: dict[str, Any], trusted: Sequence[Path] = ()) -> dict[str, Any]:
    """The cell at a point (axis -> value as it is shown): its scenario, and its runs' rows.
    `refused`: why its scenario cannot be run, such as code in a file that is not `trusted`.

    Raises UserError if there is no such cell."""
    store = Store(folder)
    where = " and ".join(_fits(store, wanted, "cells")) or "true"
    found = ask(store, f"select sweep, cell from cells where {where} order by all limit 1")
    if not found.num_rows:
        raise UserError("no cell there")
    row = found.to_pylist()[0]
    rows = ask(
        store,
        "select asked.seed, r.flow, r.goodput_bps, r.share, r.retransmit_ratio, r.rtt_p50_us "
        "from asked join flows_rows r using (key) "
        f"where sweep = {sql_text(row['sweep'])} and cell = {row['cell']} "
        "order by asked.seed, r.flow_id limit 200",
    )
    found, refused = None, "this store does not say what its scenarios are"
    with from_outside(trusted):
        try:
            found = document(store, **row)
        except UserError as error:
            refused = str(error)
    return {
        "cell": row["cell"], "rows": rows.to_pylist(), "document": found,
        "refused": "" if found else refused,
    }  # fmt: skip


def _fits(store: Store, wanted: Mapping[str, Any], view: str) -> list[str]:
    """Conditions on a view that axes have these values, as written or as numbers in base units.

    Raises UserError if a name is no axis."""
    columns = {name for rows in store.sweeps().values() for name in axis_columns(rows.column_names)}
    conditions = []
    for axis, value in wanted.items():
        if axis not in columns:
            raise UserError(f"{axis!r} is no axis; axes are {', '.join(sorted(columns))}")
        same = [f"cast({quoted(axis_column(axis, view))} as varchar) = {sql_text(str(value))}"]
        for column in (axis, *(f"{axis}_{unit}" for unit in COLUMN_UNITS.values())):
            if column in columns:
                named = quoted(axis_column(column, view))
                same.append(
                    f"try_cast({named} as double) = try_cast({sql_text(str(value))} as double)"
                )
        conditions.append(f"({' or '.join(same)})")
    return conditions


def document(store: Store, sweep: str, cell: int) -> dict[str, Any] | None:
    """The scenario of a cell; None if the store does not say (an older one)."""
    text = store.document(sweep)
    if text is None:
        one = store.scenarios(sweep).get(str(cell))
        return one if isinstance(one, dict) else None
    found = read_sweep(parse_toml(text), "sweep")
    cells = cells_of(found)
    return scenario_of(found, cells[cell])[0] if cell < len(cells) else None
