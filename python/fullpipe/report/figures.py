"""Static figures for papers: PDF, SVG and PNG, the same bytes for the same recordings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.plots.look import Look, unknown_labels
from fullpipe.plots.matplotlib_renderer import write
from fullpipe.plots.model import Plot
from fullpipe.recording.recording import Recording
from fullpipe.report.distributions import box_plots, cdf_plots
from fullpipe.report.predictions import compare
from fullpipe.report.repetitions import group_plots
from fullpipe.report.runs import Group, grouped, read_run

_DEFAULT = Look()


def write_figures(
    recordings: Sequence[Recording], folder: Path, look: Look = _DEFAULT
) -> list[Path]:
    """Writes every group over time, the distributions of all runs and the models' predictions as
    PDF, SVG and PNG; returns the paths. Files are called after what they show:
    `bbr3_throughput.pdf`.

    Raises UserError where there is nothing to draw, a label names nothing, or the folder cannot be
    written."""
    if not recordings:
        raise UserError("figures: no recordings given")
    groups = grouped([read_run(recording) for recording in recordings])
    drawn: list[tuple[str, Plot, str]] = []
    for name, group in zip(_names(groups), groups, strict=True):
        drawn += [(f"{name}_{plot.key}", plot, group.alarm) for plot in group_plots(group)]
        predicted = compare(group)
        if predicted is not None:
            drawn.append((f"{name}_{predicted.plot.key}", predicted.plot, group.alarm))
    alarm = "; ".join(group.alarm for group in groups if group.alarm)
    drawn += [(plot.key, plot, alarm) for plot in [*cdf_plots(groups), *box_plots(groups)]]
    if unknown := unknown_labels([plot for _, plot, _ in drawn], look):
        raise UserError(f"--label {unknown[0]}: nothing in the figures has this name")
    return [path for key, plot, alarm in drawn for path in write(plot, folder / key, alarm, look)]


def _names(groups: Sequence[Group]) -> list[str]:
    """A name for each group that a file may have: its congestion controls where these tell groups
    apart, else its label."""
    found = ["_".join(group.ccs) for group in groups]
    if len(set(found)) < len(groups) or not all(found):
        found = [group.label for group in groups]
    names = [re.sub(r"[^A-Za-z0-9.+-]+", "_", name).strip("_.") or "run" for name in found]
    return [
        name if names.count(name) == 1 else f"{name}_{names[: index + 1].count(name)}"
        for index, name in enumerate(names)
    ]
