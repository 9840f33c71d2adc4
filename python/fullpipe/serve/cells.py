"""A store as the page shows it: its progress, a chart, one cell.

Only reads. Names from the page are checked before use, and no SQL comes from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fullpipe.base.errors import UserError
from fullpipe.base.toml import parse_toml
from fullpipe.congestion.trust import from_outside
from fullpipe.expr.quantities import COLUMN_UNITS
from fullpipe.metrics.titles import title_of
from fullpipe.plots.plotly_renderer import grid_figure_of
from fullpipe.sweep.cells import cells_of, scenario_of
from fullpipe.sweep.chart import CELL, KINDS, Request, make_chart, view_of
from fullpipe.sweep.file import read_sweep
from fullpipe.sweep.listing import chosen
from fullpipe.sweep.query import ask, axis_column, axis_columns, quoted, sql_text
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import SCHEMAS

#: Axes with more values than this are filtered by typing one.
_MOST_VALUES = 200


def state(folder: Path, sweep: str | None = None) -> dict[str, Any]:
    """Runs that are there and that a sweep (`listing.chosen`) asks for, and what a chart may be
    made of."""
    store = Store(folder)
    asked = _asked(store, sweep)
    keys = {key for rows in asked.values() for key in rows.column("key").to_pylist()}
    values: dict[str, dict[Any, None]] = {}
    for rows in asked.values():
        for name in _axes(rows.column_names):
            values.setdefault(name, {}).update(dict.fromkeys(rows.column(name).to_pylist()))
    metrics = {
        field.name: title_of(field.name)[0]
        for schema in SCHEMAS.values()
        for field in schema
        if str(field.type) == "double" and field.name not in ("start_s",)
    }
    return {
        "done": len(store.keys_now() & keys),
        "asked": len(keys),
        "axes": {
            name: list(map(str, values[name])) if len(values[name]) <= _MOST_VALUES else []
            for name in sorted(values, key=lambda name: len(values[name]) < 2)
        },
        "metrics": sorted(metrics.items(), key=lambda metric: metric[1]),
        "kinds": list(KINDS),
        "name": folder.name,
    }


def _axes(names: list[str]) -> list[str]:
    """The axes without the columns that hold their values in base units."""
    companions = {f"{name}_{unit}" for name in names for unit in COLUMN_UNITS.values()}
    return [name for name in axis_columns(names) if name not in companions]


def chart(folder: Path, wanted: dict[str, str], sweep: str | None = None) -> dict[str, Any]:
    """A chart of a sweep as `data` and `layout` for Plotly's script. `wanted`: y, x, by, facet,
    kind, and filters `is.AXIS` = value. `panels` has the facets' value of each panel; `places` and
    `rows` have the values at positions 0, 1, ... of its axes, if they have such.

    Raises UserError if a name is no column."""
    store = Store(folder)
    filters = {
        name.removeprefix("is."): value
        for name, value in wanted.items()
        if name.startswith("is.") and value
    }
    y, kind = wanted.get("y", "goodput_bps"), wanted.get("kind", "line")
    where = " and ".join(_fits(store, filters, view_of(y, kind == "pareto"), sweep))
    request = Request(
        y,
        x=wanted.get("x") or None,
        by=wanted.get("by") or None,
        facet=wanted.get("facet") or None,
        kind=kind,
        where=where or None,
        sweep=sweep,
    )
    grid = make_chart(store, request)
    heat = grid.panels[0].heat
    x_values = heat.x_keys if heat else [text for _, text in grid.panels[0].x_ticks]
    return {
        **grid_figure_of(grid),
        "panels": [panel.key for panel in grid.panels],
        "places": list(x_values),
        "rows": list(heat.y_keys) if heat else [],
    }


def cell(
    folder: Path,
    wanted: dict[str, Any],
    trusted: Sequence[Path] = (),
    sweep: str | None = None,
) -> dict[str, Any]:
    """A cell of a sweep: its axes, its scenario, and its runs' rows. `wanted`: values of axes as
    they are shown, or `cell`: the `id` of an earlier answer. Of several cells that fit it is the
    first, and `alike` says how many they are. `refused`: why its scenario cannot be run, such as
    code in a file that is not `trusted`.

    Raises UserError if there is no such cell."""
    store = Store(folder)
    if "cell" in wanted:
        where = f"{CELL} = {sql_text(str(wanted['cell']))}"
    else:
        where = " and ".join(_fits(store, wanted, "cells", sweep)) or "true"
    table = ask(
        store,
        f"select *, {CELL} as id, count(*) over () as alike from cells where {where} "
        "order by sweep, cell limit 1",
        sweep=sweep,
    )
    if not table.num_rows:
        raise UserError("no cell there")
    row = table.to_pylist()[0]
    rows = ask(
        store,
        "select asked.seed, r.flow, r.goodput_bps, r.share, r.retransmit_ratio, r.rtt_p50_us "
        "from asked join flows_rows r using (key) "
        f"where sweep = {sql_text(row['sweep'])} and cell = {row['cell']} "
        "order by asked.seed, r.flow_id limit 200",
        sweep=row["sweep"],
    )
    scenario, refused = None, "this store does not say what its scenarios are"
    with from_outside(trusted):
        try:
            scenario = document(store, row["sweep"], row["cell"])
        except UserError as error:
            refused = str(error)
    axes = _axes([name for name in table.column_names if name in _axis_names(store, sweep)])
    return {
        "id": row["id"],
        "cell": row["cell"],
        "alike": row["alike"],
        "axes": {name: str(row[name]) for name in axes if row[name] is not None},
        "rows": rows.to_pylist(),
        "document": scenario,
        "refused": "" if scenario else refused,
    }


def _asked(store: Store, sweep: str | None) -> dict[str, pa.Table]:
    """What the sweeps that are shown ask for; nothing yet in a store without one."""
    sweeps = store.sweeps()
    return (
        {entry.id: sweeps[entry.id] for entry in chosen(store.listing(), sweep)} if sweeps else {}
    )


def _axis_names(store: Store, sweep: str | None) -> set[str]:
    asked = _asked(store, sweep).values()
    return {name for rows in asked for name in axis_columns(rows.column_names)}


def _fits(store: Store, wanted: Mapping[str, Any], view: str, sweep: str | None) -> list[str]:
    """Conditions on a view that axes have these values, as written or as numbers in base units.

    Raises UserError if a name is no axis."""
    columns = _axis_names(store, sweep)
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
        scenario = store.scenarios(sweep).get(str(cell))
        return scenario if isinstance(scenario, dict) else None
    definition = read_sweep(parse_toml(text), "sweep")
    cells = cells_of(definition)
    return scenario_of(definition, cells[cell])[0] if cell < len(cells) else None
