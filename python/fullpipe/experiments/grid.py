"""A grid of scenarios: axes with explicit values that fill templates (`fullpipe.sweep.templates`).

This module must not know metrics; of engines it knows only whether they run a kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.scenario.model import Scenario, make_scenario
from fullpipe.sweep.cells import own_flows
from fullpipe.sweep.runs import scenario_at
from fullpipe.sweep.templates import fields_of

MAX_CELLS = 2000

Axes = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Cell:
    """One point of the grid. `axes`: name -> value, or the `label` of a table; `fields`: every name
    that templates and filters may use -> its value; `own_flows`: as of a sweep's cell."""

    axes: dict[str, Any]
    fields: dict[str, Any]
    document: dict[str, Any]
    scenario: Scenario
    own_flows: dict[str, list[int]]

    @property
    def label(self) -> str:
        """The values in the order of the axes, such as `rate 100mbit, n 4`."""
        return ", ".join(f"{name} {value}" for name, value in self.axes.items()) or "the only cell"

    def on(self, engine: str) -> Cell:
        """The cell for an engine. `host.tcp` is for the simulator only: other engines have their
        kernel's TCP."""
        host = self.document.get("host", {})
        if engine == "sim" or "tcp" not in host:
            return self
        own = {key: value for key, value in host.items() if key != "tcp"}
        document = {**self.document, "host": own}
        return replace(self, document=document, scenario=make_scenario(document))


def cells_of(
    grids: Sequence[Axes], template: Mapping[str, Any], source: str, folder: Path = Path()
) -> list[Cell]:
    """All cells of the union of the grids, in order, each once. Files in them are relative to
    `folder`.

    Raises UserError naming source, cell and key of an invalid scenario."""
    cells: dict[tuple[str, ...], Cell] = {}
    for grid in grids or [{}]:
        for values in itertools.product(*grid.values()):
            axes = {
                name: value["label"] if isinstance(value, Mapping) else value
                for name, value in zip(grid, values, strict=True)
            }
            key = tuple(str(value) for value in axes.values())
            if key not in cells:
                fields = fields_of(dict(zip(grid, values, strict=True)))
                cells[key] = _cell(axes, fields, template, source, folder)
            if len(cells) > MAX_CELLS:
                raise UserError(f"{source}: grid: more than {MAX_CELLS} cells")
    return list(cells.values())


def _cell(
    axes: dict[str, Any],
    fields: dict[str, Any],
    template: Mapping[str, Any],
    source: str,
    folder: Path,
) -> Cell:
    document, scenario = scenario_at(template, fields, source, folder)
    return Cell(axes, fields, document, scenario, own_flows(template, fields))
