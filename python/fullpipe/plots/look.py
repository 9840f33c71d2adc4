"""How a plot is dressed for where it will stand: size, title, scales, names.

A `Look` says it, `dressed` applies what concerns the plot itself; the renderer does the rest. This
module must not know a recording or a drawing library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from fullpipe.plots.model import Grid, Plot

Legend = Literal["auto", "right", "below", "none"]


@dataclass(frozen=True)
class Look:
    """The look of a static figure. `width_in`: its width in inches, None for the default.
    `font_pt`: size of the text. `title`: whether the title is drawn; papers have captions.
    `legend`: auto puts it below narrow figures. `labels`: other texts for titles of axes and
    plots, and for names in legends."""

    width_in: float | None = None
    font_pt: float = 9.0
    title: bool = True
    log_x: bool = False
    log_y: bool = False
    legend: Legend = "auto"
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def dressed(plot: Plot | Grid, look: Look) -> Plot | Grid:
    """The plot with the look's title, scales and names."""
    if isinstance(plot, Grid):
        panels = [_dressed(panel, look) for panel in plot.panels]
        title = look.labels.get(plot.title, plot.title) if look.title else ""
        return replace(plot, panels=panels, title=title)
    made = _dressed(plot, look)
    return made if look.title else replace(made, title="")


def unknown_labels(plots: list[Plot | Grid], look: Look) -> list[str]:
    """Names in `labels` that stand in none of the plots."""
    names: set[str] = set()
    for plot in plots:
        for part in [plot, *(plot.panels if isinstance(plot, Grid) else [])]:
            names.add(part.title)
            if isinstance(part, Plot):
                names |= {part.x_title, part.y_title, *(trace.name for trace in part.traces)}
                names |= {box.label for box in part.boxes} | {spans.name for spans in part.spans}
    return [name for name in look.labels if name not in names]


def _dressed(plot: Plot, look: Look) -> Plot:
    def label(text: str) -> str:
        return look.labels.get(text, text)

    return replace(
        plot,
        title=label(plot.title),
        x_title=label(plot.x_title),
        y_title=label(plot.y_title),
        traces=[replace(trace, name=label(trace.name)) for trace in plot.traces],
        boxes=[replace(box, label=label(box.label)) for box in plot.boxes],
        spans=[replace(spans, name=label(spans.name)) for spans in plot.spans],
        log_x=plot.log_x or (10 if look.log_x and plot.heat is None and not plot.x_ticks else 0),
        log_y=plot.log_y or (look.log_y and plot.heat is None and not plot.rows),
        zero=plot.zero and not look.log_y,
    )
