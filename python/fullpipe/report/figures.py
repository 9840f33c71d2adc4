"""Static figures for papers: PDF, SVG and PNG, the same bytes for the same recordings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.plots.look import Look, unknown_labels
from fullpipe.plots.matplotlib_renderer import write
from fullpipe.plots.model import Grid, Plot
from fullpipe.recording.recording import Recording
from fullpipe.report.combined import combined
from fullpipe.report.distributions import box_plots, cdf_plots
from fullpipe.report.overlay import overlaid
from fullpipe.report.predictions import compare, together
from fullpipe.report.runs import Group, grouped, read_run
from fullpipe.report.tradeoff import tradeoff

_DEFAULT = Look()


def write_figures(
    recordings: Sequence[Recording], folder: Path, look: Look = _DEFAULT
) -> list[Path]:
    """Writes the groups over time, the distributions of all runs and the models' predictions as
    PDF, SVG and PNG; returns the paths. All groups are in one figure a metric, `throughput.pdf`;
    figures of one group are called after it, too: `bbr3_throughput.pdf`.

    Raises UserError where there is nothing to draw, a label names nothing, or the folder cannot be
    written."""
    if not recordings:
        raise UserError("figures: no recordings given")
    groups = grouped([read_run(recording) for recording in recordings])
    alarm = "; ".join(group.alarm for group in groups if group.alarm)
    prefix = f"{_name(groups[0])}_" if len(groups) == 1 else ""
    compared = [(group.label, comparison) for group in groups if (comparison := compare(group))]
    predicted = [together(compared)] if compared else []
    over_time = overlaid(groups)
    panels = combined(over_time)
    drawn: list[tuple[str, Plot | Grid]] = [
        (f"{prefix}{plot.key}", plot) for plot in [*over_time, *predicted]
    ]
    drawn += [(f"{prefix}combined", panels)] if panels else []
    against = tradeoff(groups)
    drawn += [(against.key, against)] if not against.empty else []
    drawn += [(plot.key, plot) for plot in [*cdf_plots(groups), *box_plots(groups)]]
    if unknown := unknown_labels([plot for _, plot in drawn], look):
        raise UserError(f"--label {unknown[0]}: nothing in the figures has this name")
    return [path for key, plot in drawn for path in write(plot, folder / key, alarm, look)]


def _name(group: Group) -> str:
    """A name for the group that a file may have: its congestion controls, else its label."""
    name = "_".join(group.ccs) or group.label
    return re.sub(r"[^A-Za-z0-9.+-]+", "_", name).strip("_.") or "run"
