"""Plots of the variables that only some algorithms have, a plot for each unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import numpy as np

from fullpipe.metrics import View
from fullpipe.metrics.view import Floats
from fullpipe.plots import style
from fullpipe.plots.model import Plot, Trace, thin

#: More lines than this in one plot cannot be told apart; of later flows none is drawn.
MAX_LINES = 16
#: What is drawn in another unit than the recording's: unit -> (unit, factor).
_SHOWN = {"us": ("ms", 1e-3), "bit/s": ("Mbit/s", 1e-6)}


class Described(Protocol):
    """A variable, as metadata describes it."""

    @property
    def unit(self) -> str: ...
    @property
    def meaning(self) -> str: ...


class Line(Protocol):
    """A flow that is drawn."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...


def variable_plots(
    view: View, described: Mapping[str, Mapping[str, Described]], flows: Iterable[Line]
) -> list[Plot]:
    """Over time; empty where no algorithm of the run has variables of its own."""
    samples = view.samples("cc_samples") if described else {}
    of_unit: dict[str, list[Callable[[int], Trace]]] = {}
    meanings: dict[str, dict[str, str]] = {}
    for flow in flows:
        of_flow = samples["flow_id"] == flow.id if described else np.empty(0)
        for column, about in described.get(str(view.flows["cc"][flow.id]), {}).items():
            values = samples.get(column, np.empty(0))
            if not values.size or not np.isfinite(values[of_flow]).any():
                continue
            unit, factor = _SHOWN.get(about.unit, (about.unit, 1.0))
            name = column.removesuffix(f"_{_ending(about.unit)}")
            x, y = samples["t_us"][of_flow] / 1e6, values[of_flow] * factor
            of_unit.setdefault(unit, []).append(_line(f"{flow.name} {name}", x, y))
            meanings.setdefault(unit, {})[name] = about.meaning
    return [
        Plot(
            "-".join(["variables", *re.findall(r"[a-z0-9]+", unit.lower())]),
            f"Variables of the algorithms{f', in {unit}' if unit else ''}",
            x_title="time (s)",
            y_title=unit or "value",
            traces=[make(position) for position, make in enumerate(lines[:MAX_LINES])],
            over_time=True,
            note="; ".join(f"{name}: {text}" for name, text in meanings[unit].items()),
        )
        for unit, lines in of_unit.items()
    ]


def _ending(unit: str) -> str:
    return "bps" if unit == "bit/s" else unit


def _line(name: str, x: Floats, y: Floats) -> Callable[[int], Trace]:
    def make(position: int) -> Trace:
        return Trace(name, style.line_colour(position), *thin(x, y), shape="before")

    return make
