"""One run over time: throughput, window, RTT, queue, rates, phases, pings.

Rates of throughput are bytes delivered in a window of time, never averages of samples.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fullpipe.base.packets import LINK_HEADER_BYTES
from fullpipe.base.units import KIB, format_size
from fullpipe.metrics import View, smooth_throughput_over_time
from fullpipe.metrics.carrying import Carrying
from fullpipe.metrics.queue import queue_delay_s
from fullpipe.metrics.view import Columns, Floats
from fullpipe.plan.bottleneck import Bottleneck, Capacity
from fullpipe.plots import style
from fullpipe.plots.model import MAX_POINTS, Plot, Spans, Trace, thin
from fullpipe.report.hosts import host_plots
from fullpipe.report.pages import page_plots
from fullpipe.report.runs import Path, Run
from fullpipe.report.traffic import flows_at_once, sampled_windows
from fullpipe.report.variables import variable_plots

#: More flows than this in one plot cannot be told apart.
MAX_FLOWS = 16
#: More flows than this, and a second line for each hides the first.
MAX_FLOWS_OF_TWO_LINES = 6
#: More queues than this in one plot cannot be told apart.
MAX_QUEUES = 8
#: More marks of one kind than this hide the lines.
MAX_MARKS = 150
#: Events that say nothing of congestion.
_QUIET_EVENTS = {"start", "established", "finish", "recovery_end"}
_EVENT_MARKS = {
    "recovery": ("x", style.NEUTRAL, "recovery entered"),
    "rto": ("triangle", style.ALARM, "retransmission timeout"),
}


class _Flow:
    """A flow that is drawn: its name, and how its lines look."""

    def __init__(self, view: View, flow_id: int, position: int) -> None:
        self.id = flow_id
        self.name = str(view.flows["flow"][flow_id])
        self.colour = style.cc_colour(str(view.flows["cc"][flow_id]))
        self.dash, self.opacity = style.dash(position), style.opacity(position)

    def trace(self, x: Floats, y: Floats, shape: str = "linear") -> Trace:
        x, y = thin(x, y)
        return Trace(self.name, self.colour, x, y, self.dash, 1.5, self.opacity, shape)

    def second(self, quantity: str, x: Floats, y: Floats) -> Trace:
        x, y = thin(x, y)
        return Trace(f"{self.name} {quantity}", self.colour, x, y, "dot", 1.0, 0.6)


def time_plots(run: Run) -> list[Plot]:
    """Every plot over time that the recording has data for."""
    view = View(run.recording, start_s=0.0)
    flows = _chosen(view)
    plots = [
        _throughput(run, view, flows),
        _cwnd(view, flows),
        _rtt(view, flows),
        _queue(run, view),
        _queue_delay(view),
        _rates(run, view, flows),
        _phases(view, flows),
        _ping(view),
        *variable_plots(view, run.metadata.variables, flows),
        flows_at_once(run, view),
        sampled_windows(view),
        *page_plots(view),
        *host_plots(view),
    ]
    warmup_s = min(run.metadata.warmup_ns / 1e9, view.end_s)
    return [
        replace(plot, warmup_s=warmup_s) if plot.over_time else plot
        for plot in plots
        if not plot.empty
    ]


def _chosen(view: View) -> list[_Flow]:
    """At most MAX_FLOWS flows, round robin over congestion controls, so that none is missing."""
    members: dict[str, list[int]] = {}
    for flow_id, cc in enumerate(view.flows["cc"]):
        members.setdefault(str(cc), []).append(flow_id)
    turns = [
        (position, flow_id) for ids in members.values() for position, flow_id in enumerate(ids)
    ]
    chosen = sorted(turns)[:MAX_FLOWS]
    return [_Flow(view, flow_id, position) for position, flow_id in sorted(chosen, key=_by_id)]


def _by_id(turn: tuple[int, int]) -> int:
    return turn[1]


def window_s(run: Run, view: View) -> float:
    """A round window of about a 200th of the run, at least two RTTs, in whole samples."""
    sample_s = run.metadata.plan.sample_interval_ns / 1e9
    if not sample_s:
        steps = np.diff(np.unique(view.samples("flow_samples")["t_us"]))
        sample_s = float(np.median(steps)) / 1e6 if steps.size else 0.1
    rtt_s = 0.0 if math.isnan(view.rtt_min_s) else view.rtt_min_s
    least = max((view.end_s - view.start_s) / 200, 2 * rtt_s, sample_s, 1e-6)
    decade = 10.0 ** math.floor(math.log10(least))
    window = next(decade * step for step in (1, 2, 5, 10) if decade * step >= least * (1 - 1e-9))
    return math.ceil(window / sample_s - 1e-9) * sample_s


def _throughput(run: Run, view: View, flows: list[_Flow]) -> Plot:
    window = window_s(run, view)
    ends, rates = smooth_throughput_over_time(view, window)
    traces = [flow.trace(ends, rates[flow.id] / 1e6, "before") for flow in flows]
    of_flows = np.array([str(direction) for direction in view.flows["direction"]])
    directions = sorted(set(of_flows), reverse=True)  # up before down
    for position, direction in enumerate(directions):
        selected = of_flows == direction
        if selected.sum() > 1 and ends.size:
            x, y = thin(ends, rates[selected].sum(axis=0) / 1e6)
            name = f"all {direction}loads" if len(directions) > 1 else "all flows"
            dash = style.dash(position)
            traces.append(Trace(name, style.NEUTRAL, x, y, dash, 1.0, shape="before"))
    traces += _bottleneck_rates(view, window) if traces else []
    return Plot(
        "throughput",
        "Throughput",
        x_title="time (s)",
        y_title="goodput (Mbit/s)",
        traces=traces,
        over_time=True,
        note=f"payload of the packets delivered in each window of {window:g} s, over the window",
    )


def _cwnd(view: View, flows: list[_Flow]) -> Plot:
    traces = []
    for flow in flows:
        samples = view.flow_samples(flow.id)
        times = samples["t_us"] / 1e6
        traces.append(flow.trace(times, samples["cwnd_packets"]))
        if len(flows) <= MAX_FLOWS_OF_TWO_LINES and _any_valid(samples["inflight_packets"]):
            traces.append(flow.second("inflight", times, samples["inflight_packets"]))
    marks, note = _events(view, flows)
    return Plot(
        "cwnd",
        "Congestion window and data in flight",
        x_title="time (s)",
        y_title="packets",
        traces=traces + marks,
        note=note,
        over_time=True,
    )


def _events(view: View, flows: list[_Flow]) -> tuple[list[Trace], str]:
    """Marks of congestion events, on the window of the flow that they happened to; and a sentence
    about those that are too many to mark."""
    events = view.samples("events")
    drawn = {flow.id: view.flow_samples(flow.id) for flow in flows}
    traces, unmarked = [], []
    for kind in sorted({str(event) for event in events["event"]} - _QUIET_EVENTS)[:6]:
        mark, colour, title = _EVENT_MARKS.get(kind, ("circle", style.REFERENCE, kind))
        xs, ys = [], []
        for flow_id, samples in drawn.items():
            selected = (events["event"] == kind) & (events["flow_id"] == flow_id)
            times = events["t_us"][selected]
            if times.size and samples["t_us"].size:
                before = np.searchsorted(samples["t_us"], times, side="right") - 1
                xs.append(times / 1e6)
                ys.append(samples["cwnd_packets"][np.maximum(before, 0)])
        if xs:
            x, y = np.concatenate(xs), np.concatenate(ys)
            if x.size > MAX_MARKS:
                unmarked.append(f"{x.size} times: {title}")
            else:
                traces.append(Trace(f"{title} ({x.size})", colour, x, y, mark=mark))
    return traces, f"not marked, {'; '.join(unmarked)}" if unmarked else ""


def _rtt(view: View, flows: list[_Flow]) -> Plot:
    traces = []
    for flow in flows:
        samples = view.flow_samples(flow.id)
        traces.append(flow.trace(samples["t_us"] / 1e6, samples["srtt_us"] / 1e3))
    for base in sorted({float(base) for base in view.flows["base_rtt_us"] if base > 0})[:4]:
        traces.append(_reference(f"base RTT {base / 1e3:g} ms", view, base / 1e3))
    return Plot("rtt", "Smoothed RTT", "time (s)", "RTT (ms)", traces, over_time=True)


def _queue(run: Run, view: View) -> Plot:
    traces, y = [], np.empty(0)
    for position, (name, queue) in enumerate(_queues(view)):
        samples = view.queue(queue)
        x, backlog = thin(samples["t_us"] / 1e6, samples["queue_bytes"] / KIB)
        traces.append(Trace(name, style.NEUTRAL, x, backlog, style.dash(position), 1.2))
        y = np.concatenate((y, backlog))
    note, right = "", None
    path = run.metadata.plan.path
    if path is not None:
        bottlenecks = _bottlenecks(view)
        delays_ms = {
            direction: 8e3 * KIB / bottleneck.capacity.rates[0][1]
            for direction, bottleneck in bottlenecks.items()
            if bottleneck.capacity.is_constant
        }
        if len(delays_ms) == len(bottlenecks) == 1:
            (delay_ms,) = delays_ms.values()
            right = (f"delay (ms; RTTmin = {view.rtt_min_s * 1e3:g} ms)", delay_ms)
            if view.rtt_min_s > 0:
                right = ("delay (RTTmin)", delay_ms / view.rtt_min_s / 1e3)
        is_each = ", ".join(
            f"{ms:.3g} ms {direction}".strip() for direction, ms in delays_ms.items()
        )
        note = f"1 KiB is {is_each} at the bottleneck's rate; " if is_each else ""
        note += f"RTTmin is {view.rtt_min_s * 1e3:g} ms"
        peak = float(np.nanmax(y)) if _any_valid(y) else 0.0
        for direction, limit in _limits(path, view).items():
            if limit / KIB < 3 * peak:
                traces.append(_reference("limit", view, limit / KIB, direction))
            note += f"; limit {direction}".rstrip() + f" {format_size(limit)}"
    return Plot(
        "queue",
        "Bottleneck queue",
        x_title="time (s)",
        y_title="backlog (KiB)",
        traces=traces,
        right=right,
        note=note,
        over_time=True,
    )


def _queue_delay(view: View) -> Plot:
    """The queueing delay where no scale beside the backlog gives it: behind rates that change."""
    traces = []
    for direction, bottleneck in _bottlenecks(view).items():
        if not bottleneck.capacity.is_constant:
            x, y = thin(view.queue(bottleneck.queue)["t_us"] / 1e6, queue_delay_s(view, bottleneck))
            dash = "dash" if direction == "down" else "solid"
            traces.append(
                Trace(_of_direction("queue", direction), style.NEUTRAL, x, y * 1e3, dash, 1.2)
            )
    rtt_ms = view.rtt_min_s * 1e3
    return Plot(
        "queue_delay",
        "Queueing delay",
        x_title="time (s)",
        y_title="delay (ms)",
        traces=traces,
        right=("delay (RTTmin)", 1 / rtt_ms) if rtt_ms > 0 else None,
        over_time=True,
        note="the time that the bottleneck takes for its backlog, at the rates that follow; "
        f"RTTmin is {rtt_ms:g} ms",
    )


def _queues(view: View) -> list[tuple[str, str]]:
    """(what it is called, its name in the recording) of the queues that are drawn: the one that
    the data goes through, in either direction if it does; or, where a path has links with names,
    each that ever held anything."""
    samples = view.samples("queue_samples")
    named = sorted({str(name) for name in samples["queue"]} - {"forward", "reverse"})
    if not named:
        limited = {
            direction: bottleneck
            for direction, bottleneck in view.bottlenecks.items()
            if bottleneck.rate_bps
        }
        if len(limited) < 2:
            return [("queue", view.main_queue)]
        return [
            (_of_direction("queue", direction), bottleneck.queue)
            for direction, bottleneck in limited.items()
        ]
    held = [name for name in named if (view.queue(name)["queue_bytes"] > 0).any()]
    return [(name, name) for name in (held or named)[:MAX_QUEUES]]


def _limits(path: Path, view: View) -> dict[str, float]:
    """Limits of the queues in bytes, by direction where there are two; of a row of links that of
    the slowest one up."""
    queues = {"up": path.qdisc, "down": path.reverse_qdisc}
    limits: dict[str, float] = {}
    for direction, bottleneck in view.bottlenecks.items():
        qdisc = queues[direction]
        if qdisc is None or bottleneck.queue.endswith(".reverse"):
            continue
        limit = qdisc.limit_bytes
        if limit is None and qdisc.limit_packets is not None:
            limit = qdisc.limit_packets * (path.mtu_bytes + LINK_HEADER_BYTES)
        if limit is not None:
            limits[direction if len(view.bottlenecks) > 1 else ""] = limit
    return limits


def _rates(run: Run, view: View, flows: list[_Flow]) -> Plot:
    estimates, traces = view.samples("cc_samples"), []
    for flow in flows:
        samples = view.flow_samples(flow.id)
        paced = samples["pacing_rate_bps"]
        estimate = _of(estimates, flow.id, "bw_bps")
        modelled = _any_valid(estimate)
        if _any_valid(paced):
            line = flow.trace(samples["t_us"] / 1e6, paced / 1e6)
            traces.append(line)
        if modelled and len(flows) <= MAX_FLOWS_OF_TWO_LINES:
            times = _of(estimates, flow.id, "t_us") / 1e6
            traces.append(flow.second("bandwidth estimate", times, estimate / 1e6))
    traces += _bottleneck_rates(view, window_s(run, view)) if traces else []
    return Plot(
        "rates",
        "Pacing rate and the algorithm's bandwidth estimate",
        x_title="time (s)",
        y_title="rate (Mbit/s)",
        traces=traces,
        over_time=True,
    )


def _phases(view: View, flows: list[_Flow]) -> Plot:
    samples = view.samples("cc_samples")
    parts: dict[str, list[tuple[int, Floats, Floats]]] = {}
    rows: list[str] = []
    for flow in flows:
        times = _of(samples, flow.id, "t_us") / 1e6
        names = _of(samples, flow.id, "phase").astype(str)
        keep = (names != "") & (names != "None")
        if not keep.any():
            continue
        starts, ends, kinds = _stretches(times[keep], names[keep])
        for name in set(kinds):
            of_kind = kinds == name
            parts.setdefault(str(name), []).append((len(rows), starts[of_kind], ends[of_kind]))
        rows.append(flow.name)
    spans = [
        Spans(
            name,
            style.phase_colour(name),
            rows=np.concatenate(
                [np.full(starts.size, float(row)) for row, starts, _ in parts[name]]
            ),
            starts=np.concatenate([starts for _, starts, _ in parts[name]]),
            ends=np.concatenate([ends for _, _, ends in parts[name]]),
        )
        for name in style.phase_order(set(parts))
    ]
    return Plot(
        "phases",
        "Phases of the algorithms",
        x_title="time (s)",
        y_title="",
        spans=spans,
        rows=tuple(rows),
        note="as seen at the samples; a phase that begins and ends between two is not seen",
        over_time=True,
    )


def _stretches(times: Floats, names: Floats) -> tuple[Floats, Floats, Floats]:
    """(starts, ends, names) of equal phases in a row; a sample stands for the time since the one
    before. Where there are too many to draw, the phase that holds longest in each of equal
    pieces of the time stands for the piece."""
    step = float(np.median(np.diff(times))) if times.size > 1 else 0.1
    starts = np.concatenate(([times[0] - step], times[:-1]))
    first = np.flatnonzero(np.concatenate(([True], names[1:] != names[:-1])))
    if first.size > MAX_POINTS // 3:
        pieces = np.array_split(np.arange(times.size), MAX_POINTS // 3)
        starts = np.array([starts[piece[0]] for piece in pieces])
        ends = np.array([times[piece[-1]] for piece in pieces])
        kinds = []
        for piece in pieces:
            phases, counts = np.unique(names[piece], return_counts=True)
            kinds.append(phases[counts.argmax()])
        return starts, ends, np.array(kinds)
    last = np.concatenate((first[1:], [times.size])) - 1
    return starts[first], times[last], names[first]


def _ping(view: View) -> Plot:
    samples = view.samples("ping_samples")
    traces = []
    for position, name in enumerate(sorted({str(probe) for probe in samples["probe"]})[:MAX_FLOWS]):
        of_probe = samples["probe"] == name
        x, y = thin(samples["t_us"][of_probe] / 1e6, samples["rtt_us"][of_probe] / 1e3)
        traces.append(Trace(name, style.NEUTRAL, x, y, style.dash(position), 1.2))
    return Plot("ping", "Ping", "time (s)", "RTT (ms)", traces, over_time=True)


def _bottleneck_rates(view: View, window_s: float) -> list[Trace]:
    """What the bottleneck could carry, a line for each direction where they differ: its rate, in
    steps where it changes; of a trace the mean over each window."""
    return [
        _capacity_line(view, direction, bottleneck.capacity, window_s)
        for direction, bottleneck in _bottlenecks(view).items()
    ]


def _capacity_line(view: View, direction: str, planned: Capacity, window_s: float) -> Trace:
    name = "bottleneck rate"
    if planned.is_constant:
        return _reference(name, view, planned.rates[0][1] / 1e6, direction)
    if planned.trace:
        count = max(1, math.floor((view.end_s - view.start_s) / window_s + 1e-9))
        edges = view.start_s + window_s * np.arange(count + 1, dtype=np.float64)
        x, y = thin(edges[1:], Carrying(planned).rates_bps(edges) / 1e6)
        return replace(_reference(name, view, 0, direction), x=x, y=y, shape="before")
    times, rates = np.array(planned.rates).T
    x = np.append(times[times < view.end_s], view.end_s)
    y = np.append(rates[: x.size - 1], rates[x.size - 2]) / 1e6
    return replace(_reference(name, view, 0, direction), x=x, y=y, shape="after")


def _bottlenecks(view: View) -> dict[str, Bottleneck]:
    """The bottlenecks whose capacity is known, by the directions in which data goes; by "" where
    all carry the same."""
    bottlenecks = {
        str(direction): bottleneck
        for direction, bottleneck in view.bottlenecks.items()
        if bottleneck.capacity != Capacity()
    }
    if len({bottleneck.capacity for bottleneck in bottlenecks.values()}) == 1:
        return {"": next(iter(bottlenecks.values()))}
    return bottlenecks


def _of_direction(name: str, direction: str) -> str:
    return f"{name}, {direction}" if direction else name


def _reference(name: str, view: View, value: float, direction: str = "") -> Trace:
    """A line across the plot; of the direction `direction`, where each has its own."""
    x, y = np.array([view.start_s, view.end_s]), np.array([value, value])
    dash = "dashdot" if direction == "down" else "dash"
    name = _of_direction(name, direction)
    return Trace(name, style.REFERENCE, x, y, dash, 1.0, is_reference=True)


def _of(samples: Columns, flow_id: int, column: str) -> Floats:
    values: Floats = samples[column][samples["flow_id"] == flow_id]
    return values


def _any_valid(values: Floats) -> bool:
    return bool((~np.isnan(values)).any())
