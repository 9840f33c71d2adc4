"""Static figures for papers: PNG and SVG, the same bytes for the same recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.plots.matplotlib_renderer import write
from fullpipe.plots.model import Plot
from fullpipe.recording.recording import Recording
from fullpipe.report.distributions import box_plots, cdf_plots
from fullpipe.report.predictions import compare
from fullpipe.report.runs import grouped, read_run
from fullpipe.report.timeline import time_plots


def write_figures(recordings: Sequence[Recording], folder: Path) -> list[Path]:
    """Writes PNG and SVG of the first run of every group over time, of all runs' distributions and
    of the models' predictions; returns the paths.

    Raises UserError where there is nothing to draw or the folder cannot be written."""
    if not recordings:
        raise UserError("figures: no recordings given")
    groups = grouped([read_run(recording) for recording in recordings])
    drawn: list[tuple[str, Plot, str]] = []
    for index, group in enumerate(groups):
        prefix = f"run{index + 1}_" if len(groups) > 1 else ""
        alarm = "; ".join(group.runs[0].warnings)
        drawn += [(prefix + plot.key, plot, alarm) for plot in time_plots(group.runs[0])]
        predicted = compare(group)
        if predicted is not None:
            drawn.append((prefix + predicted.plot.key, predicted.plot, group.alarm))
    alarm = "; ".join(group.alarm for group in groups if group.alarm)
    drawn += [(plot.key, plot, alarm) for plot in [*cdf_plots(groups), *box_plots(groups)]]
    return [path for key, plot, alarm in drawn for path in write(plot, folder / key, alarm)]
