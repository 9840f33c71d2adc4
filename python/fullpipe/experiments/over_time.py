"""Lines of figures over time, from the series that runs keep (`series`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fullpipe.experiments.entry import Plot
from fullpipe.experiments.run_store import StoredRun
from fullpipe.experiments.series import OVER_TIME
from fullpipe.plots import style
from fullpipe.plots.model import Floats, Trace

_WIDTH = 1.4
#: Rows of `inflight_packets`: label, colour, dash.
_INFLIGHT = (
    ("in flight", "#12819b", "solid"),
    ("congestion window", "#7f7f7f", "dash"),
    ("long-term bound", "#e69f00", "solid"),
    ("short-term bound", "#8e44ad", "solid"),
)


def name_of(plot: Plot) -> str:
    """The name of the series that a plot over time draws."""
    of = "estimate_mbps" if plot.of == "estimates_mbps" else plot.of
    kind = "course " if plot.quartiles else ""
    return f"{OVER_TIME}{kind}{of} {plot.part}".rstrip()


def traces(plot: Plot, runs: Sequence[StoredRun], label: str, colour: str) -> list[Trace]:
    """The lines of the first run that has the series, or of several runs one after another.
    `label`: what the runs have in common; empty if they are all of the figure's."""
    name, offset = name_of(plot), 0.0
    parts: list[tuple[Floats, Floats]] = []
    for run in runs:
        times = np.asarray(run.distributions.get(f"{name}_s", []), dtype=float)
        values = np.asarray(run.distributions.get(name, []), dtype=float)
        if not (times.size and values.size):
            continue
        parts.append((times - plot.consecutive * times[0] + offset, values.reshape(-1, times.size)))
        offset += plot.consecutive * float(times[-1] - times[0])
        if not (plot.consecutive or plot.quartiles):
            break
    if not parts:
        return []
    if plot.quartiles:
        return [_quartiles(parts, label, colour)]
    least = min(len(rows) for _, rows in parts)
    whole = np.concatenate([times for times, _ in parts])
    rows = np.concatenate([rows[:least] for _, rows in parts], axis=1)
    if plot.between_s is not None:
        within = (whole >= plot.between_s[0]) & (whole <= plot.between_s[1])
        whole, rows = whole[within], rows[:, within]
    if plot.of == "inflight_packets":
        return _inflight(whole, rows)
    if plot.of == "estimates_mbps":
        return [Trace(label or "sum", colour, whole, rows.sum(axis=0), width=_WIDTH)]
    if plot.flow is not None:
        rows = rows[plot.flow - 1 : plot.flow]
    return [_line(number, len(rows), whole, row, label, colour) for number, row in enumerate(rows)]


def _line(number: int, count: int, times: Floats, values: Floats, label: str, colour: str) -> Trace:
    name = label
    if count > 1:
        name = f"{label}, flow {number + 1}" if label else f"flow {number + 1}"
        colour = style.line_colour(number)
    return Trace(name or "runs", colour, times, values, width=_WIDTH)


def _quartiles(parts: Sequence[tuple[Floats, Floats]], label: str, colour: str) -> Trace:
    """The median of the runs at each time, with their quartiles as a band."""
    times = parts[0][0]
    every = np.array([np.interp(times, run_times, rows[0]) for run_times, rows in parts])
    low, middle, high = np.quantile(every, (0.25, 0.5, 0.75), axis=0)
    return Trace(label or "runs", colour, times, middle, width=_WIDTH, band=(low, high))


def _inflight(times: Floats, rows: Floats) -> list[Trace]:
    lines = [
        Trace(label, colour, times, row, dash, width=_WIDTH)
        for (label, colour, dash), row in zip(_INFLIGHT, rows, strict=False)
        if np.isfinite(row).any()
    ]
    lost = rows[-1] > 0
    if lost.any():
        lines.append(Trace("packets lost", style.ALARM, times[lost], rows[0][lost], mark="x"))
    return lines


def phases(plot: Plot, runs: Sequence[StoredRun], drawn: Sequence[Trace]) -> list[Trace]:
    """Vertical lines at the beginnings of phases, as high as what is drawn."""
    heights = [float(np.nanmax(trace.y)) for trace in drawn if np.isfinite(trace.y).any()]
    run = next((run for run in runs if f"{name_of(plot)}_s" in run.distributions), None)
    if not heights or run is None:
        return []
    low = min(float(trace.x.min()) for trace in drawn if trace.x.size)
    high = max(float(trace.x.max()) for trace in drawn if trace.x.size)
    lines = []
    for phase in plot.phases:
        begins = np.asarray(run.distributions.get(f"{OVER_TIME}phase {phase}", []), dtype=float)
        begins = begins[(begins >= low) & (begins <= high)]
        if begins.size:
            x = np.repeat(begins, 3)
            y = np.tile([0.0, max(heights), np.nan], begins.size)
            name = f"{phase.upper()} begins"
            lines.append(Trace(name, style.phase_colour(phase), x, y, "dash", width=0.9))
    return lines
