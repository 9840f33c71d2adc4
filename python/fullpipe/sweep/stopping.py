"""Whether a cell has enough seeds: a metric's 95 % interval over its runs is narrow enough. And
whether its runs were long enough: they had settled.

Must never run anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from fullpipe.base.errors import UserError
from fullpipe.base.lengthening import longer
from fullpipe.statistics.intervals import half_width
from fullpipe.sweep.cells import Cell, Planned, plan_runs, scenario_of
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.tables import SCHEMAS


def check_metric(name: str, where: str) -> None:
    """Raises UserError unless this is a metric of every run."""
    if _table_of(name) is None:
        metrics = sorted(
            {
                field.name
                for schema in SCHEMAS.values()
                for field in schema
                if pa.types.is_floating(field.type)
            }
        )
        raise UserError(f"{where}: {name!r} is no metric; known are {', '.join(metrics)}")


def widths(
    metric: str, cells: Mapping[int, Sequence[str]], tables: Mapping[str, pa.Table]
) -> dict[int, float]:
    """For each cell (index -> keys of its runs), the width of the metric's 95 % interval (Student's
    t over runs); for metrics of flows, the widest of the groups with one congestion control.
    Infinite below two runs."""
    table = _table_of(metric)
    assert table is not None
    columns = tables[table]
    groups = columns.column("cc").to_pylist() if table == "flows" else [""] * columns.num_rows
    keys = columns.column("key").to_pylist()
    values = columns.column(metric).to_pylist()
    by_run: dict[str, dict[str, list[float]]] = {}
    for key, group, value in zip(keys, groups, values, strict=True):
        if value is not None:
            by_run.setdefault(key, {}).setdefault(group, []).append(value)
    result = {}
    for cell, runs in cells.items():
        per_group: dict[str, list[float]] = {}
        for key in runs:
            for group, several in by_run.get(key, {}).items():
                per_group.setdefault(group, []).append(float(np.mean(several)))
        result[cell] = max((2 * half_width(values) for values in per_group.values()), default=0.0)
    return result


def unsettled_cells(cells: Mapping[int, Sequence[str]], runs: pa.Table) -> list[int]:
    """The cells (index -> keys of its runs) whose runs had not settled or are too short to tell."""
    from fullpipe.metrics.settling import goes_on, stored_summary

    words = dict(zip(runs["key"].to_pylist(), runs["unsettled"].to_pylist(), strict=True))
    return [
        index
        for index, keys in cells.items()
        if goes_on([stored_summary(words[key]) for key in keys if key in words])
    ]


def longer_runs(sweep: Sweep, cell: Cell) -> list[Planned]:
    """The runs of a cell that had not settled, twice as long; they take the place of those. None
    beyond the bound."""
    _, first = scenario_of(sweep, Cell(cell.index, cell.point))
    _, last = scenario_of(sweep, cell)
    times = longer(last.duration, first.duration)
    if times is None:
        return []
    count, cell.keys, cell.times = len(cell.keys), [], times
    return plan_runs(sweep, [cell], count)


def _table_of(metric: str) -> str | None:
    for name in ("flows", "path", "runs"):
        schema = SCHEMAS[name]
        if metric in schema.names and pa.types.is_floating(schema.field(metric).type):
            return name
    return None
