"""One figure with all that a run is judged by, one panel below the other over the same time, as
Flent's `all_scaled` has them: throughput, RTT, ping, queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fullpipe.plots.model import Grid, Plot

_PANELS = ("throughput", "rtt", "ping", "page_time", "queue", "queue_delay")


def combined(plots: Sequence[Plot]) -> Grid | None:
    """The figure of these plots over time; None where there are fewer than two of its panels."""
    of_key = {plot.key: plot for plot in plots}
    panels = [of_key[key] for key in _PANELS if key in of_key]
    if len(panels) < 2:
        return None
    last = len(panels) - 1
    shown = [
        panel if index == last else replace(panel, x_title="") for index, panel in enumerate(panels)
    ]
    return Grid("", shown, most_columns=1, share_y=False)
