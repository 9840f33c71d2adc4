"""A grid of scenarios: axes with explicit values, and templates that they fill.

Text such as `"{rate}"` in a scenario becomes the value of the axis (a number stays a number),
`"{path.rtt}"` a field of an axis whose values are tables, `"{buffer*1.024}bdp"` a multiple. A flow
whose count becomes 0 is left out. Knows nothing of metrics or engines.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.errors import UserError
from fullpipe.scenario import Scenario, make_scenario

MAX_CELLS = 2000

Axes = Mapping[str, Sequence[Any]]
_HOLE = re.compile(r"\{([a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)?)(?:\*([0-9.]+))?\}")


@dataclass(frozen=True)
class Cell:
    """One point of the grid. `axes`: name -> what stands for its value (a table's `label`);
    `fields`: every name that templates and filters may use -> its value."""

    axes: dict[str, Any]
    fields: dict[str, Any]
    document: dict[str, Any]
    scenario: Scenario

    @property
    def label(self) -> str:
        """The values in the order of the axes, such as `rate 100mbit, n 4`."""
        return ", ".join(f"{name} {value}" for name, value in self.axes.items()) or "the only cell"


def cells_of(grids: Sequence[Axes], template: Mapping[str, Any], source: str) -> list[Cell]:
    """All cells of the union of the grids, in order, none twice.

    Raises UserError naming source, cell and key for what is no scenario."""
    cells: dict[tuple[str, ...], Cell] = {}
    for grid in grids or [{}]:
        for values in itertools.product(*grid.values()):
            axes = {
                name: value["label"] if isinstance(value, Mapping) else value
                for name, value in zip(grid, values, strict=True)
            }
            key = tuple(str(value) for value in axes.values())
            if key not in cells:
                cells[key] = _cell(axes, dict(zip(grid, values, strict=True)), template, source)
            if len(cells) > MAX_CELLS:
                raise UserError(f"{source}: grid: more than {MAX_CELLS} cells")
    return list(cells.values())


def fill(value: Any, fields: Mapping[str, Any], source: str) -> Any:
    """The template with its holes filled, tables, their keys and lists included.

    Raises UserError naming an unknown hole and the known ones."""
    if isinstance(value, Mapping):
        return {
            str(fill(key, fields, source)): fill(item, fields, f"{source}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [fill(item, fields, f"{source}.{index}") for index, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    whole = _HOLE.fullmatch(value)
    if whole:
        return _filled(whole, fields, source)
    return _HOLE.sub(lambda hole: _text(_filled(hole, fields, source)), value)


def _cell(
    axes: dict[str, Any], values: Mapping[str, Any], template: Mapping[str, Any], source: str
) -> Cell:
    fields = dict(axes)
    for name, value in values.items():
        if isinstance(value, Mapping):
            fields |= {f"{name}.{key}": item for key, item in value.items()}
    document = fill(template, fields, f"{source}: scenario")
    if isinstance(document.get("flow"), list):
        document["flow"] = [
            flow
            for flow in document["flow"]
            if not isinstance(flow, Mapping) or flow.get("count") != 0
        ]
    where = ", ".join(f"{name} {value}" for name, value in axes.items())
    scenario = make_scenario(document, f"{source}: scenario" + (f" at {where}" if where else ""))
    return Cell(axes, fields, document, scenario)


def _filled(hole: re.Match[str], fields: Mapping[str, Any], source: str) -> Any:
    if hole[1] not in fields:
        known = ", ".join(fields) or "none, for want of a grid"
        raise UserError(f"{source}: {hole[0]} is no axis; known are {known}")
    value = fields[hole[1]]
    if hole[2] is None:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{source}: {hole[0]}: {value!r} is no number to multiply")
    return value * float(hole[2])


def _text(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)
