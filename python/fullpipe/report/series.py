"""What the page and the figures plot: series over time and distributions over runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fullpipe.metrics import View, goodput_bps, ping_ms, queue_delay_rttmin, throughput_over_time
from fullpipe.metrics.view import Floats
from fullpipe.recording import Recording
from fullpipe.report.style import PHASES

#: More points than this in one line cannot be seen; extremes are kept.
MAX_POINTS = 3000
#: More flows than this in one plot cannot be told apart.
MAX_FLOWS = 16


@dataclass(frozen=True)
class Line:
    """One line of a plot: `group` chooses the colour, `position` the dashes."""

    name: str
    group: str
    position: int
    x: Floats
    y: Floats


@dataclass(frozen=True)
class Plot:
    """A plot of lines with the titles of its axes."""

    key: str
    title: str
    x_title: str
    y_title: str
    lines: list[Line]
    categories: tuple[str, ...] = ()


def time_plots(recording: Recording) -> list[Plot]:
    """Everything over time of one run: throughput, cwnd, RTT, queue, bandwidth, phase."""
    view = View(recording, start_s=0.0)
    plots = [_throughput(view)]
    for key, title, y_title, column, unit in (
        ("cwnd", "Congestion window", "packets", "cwnd_packets", 1.0),
        ("rtt", "Smoothed RTT", "ms", "srtt_us", 1e3),
        ("pacing", "Pacing rate", "Mbit/s", "pacing_rate_bps", 1e6),
    ):
        plots.append(_flow_plot(view, key, title, y_title, column, unit))
    plots += [_queue(view), _ping(view), _bandwidth(view), _phase(view)]
    return [plot for plot in plots if any(line.y.size for line in plot.lines)]


def cdf_plots(recordings: Sequence[Recording]) -> list[Plot]:
    """Distributions over all runs of each scenario: queueing delay and ping."""
    groups = by_scenario(recordings)
    plots = []
    for key, title, x_title, values in (
        ("queue-cdf", "Queueing delay, distribution", "RTTmin", queue_delay_rttmin),
        ("ping-cdf", "Ping, distribution", "ms", ping_ms),
    ):
        lines = []
        for position, (name, runs) in enumerate(groups.items()):
            pooled = np.concatenate([values(View(run)) for run in runs])
            pooled = np.sort(pooled[~np.isnan(pooled)])
            if not pooled.size:
                continue
            share = np.arange(1, pooled.size + 1) / pooled.size
            x, y = thin(pooled, share)
            main = str(View(runs[0]).flows["cc"][0])
            lines.append(Line(f"{name} (n = {len(runs)})", main, position, x, y))
        if lines:
            plots.append(Plot(key, title, x_title, "share of samples", lines))
    return plots


def goodput_boxes(recordings: Sequence[Recording]) -> list[tuple[str, str, list[float]]]:
    """(label with n, congestion control, Mbit/s of each flow of each run) for box plots."""
    boxes: dict[tuple[str, str], list[float]] = {}
    runs: dict[str, int] = {}
    for name, group in by_scenario(recordings).items():
        runs[name] = len(group)
        for recording in group:
            view = View(recording)
            for cc, rate in zip(view.flows["cc"], goodput_bps(view), strict=True):
                boxes.setdefault((name, str(cc)), []).append(float(rate) / 1e6)
    return [
        (f"{cc}, {name} (n = {runs[name]})" if len(runs) > 1 else f"{cc} (n = {runs[name]})", cc, v)
        for (name, cc), v in boxes.items()
    ]


def by_scenario(recordings: Sequence[Recording]) -> dict[str, list[Recording]]:
    """Recordings grouped by the name of their scenario, in order."""
    groups: dict[str, list[Recording]] = {}
    for recording in recordings:
        name = str(recording.metadata.get("plan", {}).get("name") or recording.path.name)
        groups.setdefault(name, []).append(recording)
    return groups


def thin(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """At most MAX_POINTS points: of each stretch the first, the least and the largest."""
    if x.size <= MAX_POINTS:
        return x, y
    keep: list[int] = []
    for chunk in np.array_split(np.arange(x.size), MAX_POINTS // 3):
        values = np.where(np.isnan(y[chunk]), 0.0, y[chunk])
        chosen = {int(chunk[0]), int(chunk[values.argmin()]), int(chunk[values.argmax()])}
        keep += sorted(chosen)
    return x[keep], y[keep]


def _flows(view: View) -> list[tuple[int, str, str, int]]:
    seen: dict[str, int] = {}
    result = []
    for flow in range(min(view.flows["flow_id"].size, MAX_FLOWS)):
        cc = str(view.flows["cc"][flow])
        seen[cc] = seen.get(cc, -1) + 1
        result.append((flow, str(view.flows["flow"][flow]), cc, seen[cc]))
    return result


def _throughput(view: View) -> Plot:
    length = view.end_s - view.start_s
    window = 1.0 if length >= 20 else max(length / 20, 0.2)
    ends, rates = throughput_over_time(view, window)
    lines = []
    for flow, name, cc, position in _flows(view):
        x, y = thin(ends, rates[flow] / 1e6)
        lines.append(Line(name, cc, position, x, y))
    title = f"Goodput, bytes delivered in windows of {window:g} s"
    return Plot("throughput", title, "time (s)", "Mbit/s", lines)


def _flow_plot(view: View, key: str, title: str, y_title: str, column: str, unit: float) -> Plot:
    lines = []
    for flow, name, cc, position in _flows(view):
        samples = view.flow_samples(flow)
        if np.isnan(samples[column]).all():
            continue
        x, y = thin(samples["t_us"] / 1e6, samples[column] / unit)
        lines.append(Line(name, cc, position, x, y))
    return Plot(key, title, "time (s)", y_title, lines)


def _queue(view: View) -> Plot:
    queue = view.queue(view.main_queue)
    delay = queue["queue_bytes"] * 8 / view.rate_bps / view.rtt_min_s
    x, y = thin(queue["t_us"] / 1e6, delay)
    return Plot("queue", "Queueing delay", "time (s)", "RTTmin", [Line("queue", "queue", 0, x, y)])


def _ping(view: View) -> Plot:
    samples = view.samples("ping_samples")
    lines = []
    for position, name in enumerate(dict.fromkeys(samples["probe"])):
        mine = samples["probe"] == name
        x, y = thin(samples["t_us"][mine] / 1e6, samples["rtt_us"][mine] / 1e3)
        lines.append(Line(str(name), "ping", position, x, y))
    return Plot("ping", "Ping", "time (s)", "ms", lines)


def _bandwidth(view: View) -> Plot:
    samples = view.samples("cc_samples")
    lines = []
    for flow, name, cc, position in _flows(view):
        mine = samples["flow_id"] == flow
        if not mine.any() or np.isnan(samples["bw_bps"][mine]).all():
            continue
        x, y = thin(samples["t_us"][mine] / 1e6, samples["bw_bps"][mine] / 1e6)
        lines.append(Line(name, cc, position, x, y))
    return Plot("bandwidth", "Bandwidth estimate of the model", "time (s)", "Mbit/s", lines)


def _phase(view: View) -> Plot:
    samples = view.samples("cc_samples")
    lines = []
    for flow, name, cc, position in _flows(view):
        mine = samples["flow_id"] == flow
        phases = samples["phase"][mine]
        known = np.isin(phases.astype(str), PHASES) if phases.size else np.array([], bool)
        if not known.any():
            continue
        levels = np.array([PHASES.index(str(phase)) for phase in phases[known]], dtype=float)
        times = samples["t_us"][mine][known] / 1e6
        changed = np.flatnonzero(np.diff(levels, prepend=-1.0, append=-1.0) != 0)
        keep = np.unique(np.clip(np.concatenate([changed, changed - 1]), 0, levels.size - 1))
        lines.append(Line(name, cc, position, times[keep], levels[keep]))
    return Plot("phase", "Phase of the algorithm", "time (s)", "", lines, tuple(PHASES))
