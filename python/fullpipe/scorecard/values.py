"""The numbers of an item's runs: one for each measure, cell and seed, from the store's tables.

Must never judge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from fullpipe.metrics.harm import harm
from fullpipe.scorecard.items import Item, Measure
from fullpipe.sweep.cells import Cell
from fullpipe.sweep.store import Store
from fullpipe.sweep.templates import fields_of

#: Values of one measure: cell -> one for each seed.
Values = list[list[float]]


@dataclass(frozen=True)
class Rows:
    """Rows of a store's runs by key: one of `runs` and `path`, those of all flows."""

    runs: Mapping[str, Mapping[str, Any]]
    path: Mapping[str, Mapping[str, Any]]
    flows: Mapping[str, Sequence[Mapping[str, Any]]]


def rows_of(store: Store, keys: set[str]) -> Rows:
    """The rows of these runs."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in ("runs", "path", "flows"):
        table = store.table(name)
        wanted = pc.is_in(table["key"], value_set=pc.cast(list(keys), table["key"].type))
        rows[name] = table.filter(wanted).to_pylist()
    flows: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(rows["flows"], key=lambda row: row["flow_id"]):
        flows.setdefault(row["key"], []).append(row)
    return Rows(
        {row["key"]: row for row in rows["runs"]}, {row["key"]: row for row in rows["path"]}, flows
    )


def values_of(
    item: Item, measure: Measure, cells: Sequence[Cell], alone: Sequence[Cell] | None, rows: Rows
) -> Values:
    """A measure in each cell, seed by seed; NaN where a run failed or has nothing to measure."""
    harms = []
    for index, cell in enumerate(cells):
        values = [_value(measure, key, rows) for key in cell.keys]
        if measure.harm and alone is not None and measure.better:
            base = [_value(measure, key, rows) for key in alone[index].keys]
            values = [
                harm(alone, with_it, measure.better)
                for alone, with_it in zip(base, values, strict=True)
            ]
        harms.append(values)
    return harms


def cell_labels(cells: Sequence[Cell]) -> list[str]:
    """A label for each cell: its axes without the subject."""
    texts = []
    for cell in cells:
        fields = fields_of({name: v for name, v in cell.point.items() if name != "cc"})
        texts.append(", ".join(f"{name} {v}" for name, v in fields.items() if "." not in name))
    return texts


def _value(measure: Measure, key: str, rows: Rows) -> float:
    table, _, column = measure.column.partition(".")
    if table == "flows":
        return _of_flows(measure, column, rows.flows.get(key, ()))
    row = (rows.runs if table == "runs" else rows.path).get(key)
    if row is None:
        return math.nan
    if column == "offered":  # what was sent, dropped or not
        sent, lost = _number(row["utilisation"]), _number(row["loss_ratio"])
        return sent / (1 - lost) if lost < 1 else math.nan
    return _number(row[column]) * measure.scale


def _of_flows(measure: Measure, column: str, flows: Sequence[Mapping[str, Any]]) -> float:
    group = measure.group
    group_rows = [
        row for row in flows if row["flow"] == group or row["flow"].startswith(f"{group}.")
    ]
    if not group_rows:
        return math.nan
    # The duration of a download that does not end is infinite.
    never = math.inf if column == "completion_s" else math.nan
    numbers = [never if row[column] is None else float(row[column]) for row in group_rows]
    values = np.array(numbers) * measure.scale
    if measure.at == "min_times_count":
        return float(values.min() * len(flows))
    if measure.at == "p95":
        return math.inf if np.isinf(values).mean() > 0.05 else float(np.quantile(values, 0.95))
    if measure.at == "min":
        return float(values.min())
    return float(values.max() if measure.at == "max" else values.mean())


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
