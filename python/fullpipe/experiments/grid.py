"""The cells of an experiment: points of its grids (`fullpipe.sweep.axes`), which fill templates.

This module must not know metrics; of engines it knows only whether they run a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.scenario.model import Scenario, make_scenario
from fullpipe.sweep.axes import Axis, grid
from fullpipe.sweep.cells import own_flows
from fullpipe.sweep.runs import scenario_at
from fullpipe.sweep.templates import fields_of

MAX_CELLS = 2000


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
        without_tcp = {key: value for key, value in host.items() if key != "tcp"}
        document = {**self.document, "host": without_tcp}
        return replace(self, document=document, scenario=make_scenario(document))


def cells_of(
    grids: Sequence[Sequence[Axis]], template: Mapping[str, Any], source: str, folder: Path = Path()
) -> list[Cell]:
    """All cells of the union of the grids, in order, each once. Files in them are relative to
    `folder`.

    Raises UserError naming source, cell and key of an invalid scenario."""
    cells: dict[tuple[str, ...], Cell] = {}
    for axes in grids or [[]]:
        for point in grid(axes, []):
            labels = {name: label_of(value) for name, value in point.items()}
            key = tuple(str(label) for label in labels.values())
            if key not in cells:
                cells[key] = _cell(labels, fields_of(point), template, source, folder)
            if len(cells) > MAX_CELLS:
                raise UserError(f"{source}: axis: more than {MAX_CELLS} cells")
    return list(cells.values())


def label_of(value: Any) -> Any:
    """What stands for a value of an axis in tables and filters: of a table, its label."""
    return value["label"] if isinstance(value, Mapping) else value


def _cell(
    axes: dict[str, Any],
    fields: dict[str, Any],
    template: Mapping[str, Any],
    source: str,
    folder: Path,
) -> Cell:
    document, scenario = scenario_at(template, fields, source, folder)
    return Cell(axes, fields, document, scenario, own_flows(template, fields))
