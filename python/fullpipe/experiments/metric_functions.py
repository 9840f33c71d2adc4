"""What one run gives: the functions that the metric language knows.

A group of flows is named by their congestion control, by a flow's name, or by the part of their
names before the last dot. Every function takes a recording's view and gives one number, NaN where
there is nothing to measure. Must never know an engine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from fullpipe import _native, metrics
from fullpipe.expr.language import ExpressionError
from fullpipe.metrics import View
from fullpipe.metrics.view import Floats

Measure = Callable[..., float]

#: Phases as recordings name them (the registry of crates/fullpipe-cc).
PHASES = (
    "startup",
    "drain",
    "probe_rtt",
    "up",
    "down",
    "cruise",
    "refill",
    "slow_start",
    "avoidance",
)


def _flows(view: View, group: str) -> list[int]:
    """Indices of the flows of a group; all for the empty name. A congestion control's name also
    stands for it with changed constants."""
    flows = view.flows
    names = zip(flows["flow"], flows["cc"], strict=True)
    indices = [
        index
        for index, (name, cc) in enumerate(names)
        if group in ("", name, cc, str(cc).partition("[")[0], str(name).rpartition(".")[0])
    ]
    if not indices:
        flow_names = ", ".join(sorted({str(name) for name in flows["flow"]}))
        raise ExpressionError(f"no flow belongs to {group!r}; flows are {flow_names}")
    return indices


def _spread(values: Floats, at: str | float) -> float:
    """A quantile (0 to 1), or "mean", "min", "median", "max" of the known values."""
    valid = values[~np.isnan(values)]
    if not valid.size:
        return math.nan
    if at == "mean":
        return float(valid.mean())
    points = {"min": 0.0, "median": 0.5, "max": 1.0}
    point = points.get(at) if isinstance(at, str) else at
    if point is None or not 0 <= point <= 1:
        raise ExpressionError(f"{at!r} is not mean, min, median, max or a quantile from 0 to 1")
    return float(np.quantile(valid, point))


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan


def _group(view: View, group: str) -> metrics.Row:
    return view.group_metrics(_flows(view, group))


def goodput_mbps(view: View, group: str = "") -> float:
    """Payload of a group's flows over the whole window."""
    return _group(view, group)["goodput_all_bps"] / 1e6


def goodput_between_mbps(view: View, group: str, start_s: float, end_s: float) -> float:
    """Payload of a group's flows from one time of the run to another."""
    return goodput_mbps(view.between(start_s, end_s), group)


def flow_goodput_mbps(view: View, group: str = "", at: str | float = "mean") -> float:
    """Of the flows' goodputs, each over the time that it was at work."""
    return _spread(metrics.goodput_bps(view)[_flows(view, group)] / 1e6, at)


def window_goodput_mbps(
    view: View, group: str = "", at: str | float = "median", window_s: float = 0.2
) -> float:
    """Of the sum of a group's goodputs in windows, as Flent's box plots have it; its step is 0.2 s
    unless told otherwise."""
    rates = metrics.throughput_over_time(view, window_s)[1][_flows(view, group)]
    return _spread(rates.sum(axis=0) / 1e6, at)


def share(view: View, group: str) -> float:
    """Payload of a group over that of all flows in the same direction."""
    return _group(view, group)["share"]


def link_share(view: View, group: str = "") -> float:
    """Goodput of a group over what the bottleneck could carry (sarpkaya2025)."""
    return goodput_mbps(view, group) * 1e6 / view.mean_rate_bps


def queue_delay_rttmin(view: View, at: str | float = "median") -> float:
    """Of the queueing delay at the samples, in base RTTs."""
    return _spread(metrics.queue_delay_rttmin(view), at)


def queue_delay_ms(view: View, at: str | float = "median") -> float:
    """Of the queueing delay at the samples."""
    return _spread(metrics.queue_delay_rttmin(view), at) * view.rtt_min_s * 1e3


def queue_delay_above(view: View, rttmin: float) -> float:
    """Share of the samples whose queueing delay exceeds so many base RTTs."""
    values = metrics.queue_delay_rttmin(view)
    return float((values > rttmin).mean()) if values.size else math.nan


def queue_delay_whisker_rttmin(view: View) -> float:
    """The upper whisker of a box plot: the largest sample within 1.5 interquartile ranges of the
    box."""
    values = metrics.queue_delay_rttmin(view)
    if not values.size:
        return math.nan
    low, high = np.quantile(values, [0.25, 0.75])
    return float(values[values <= high + 1.5 * (high - low)].max())


def queue_delay_peaks_rttmin(view: View, window_s: float = 5.0) -> float:
    """Median over windows of the largest queueing delay in each."""
    queue = view.queue(view.main_queue)
    delays = metrics.queue_delay_rttmin(view)
    window = ((queue["t_us"] / 1e6 - view.start_s) // window_s).astype(int)
    peaks = [delays[window == index].max() for index in np.unique(window)]
    return float(np.median(peaks)) if peaks else math.nan


def queue_delay_between_rttmin(
    view: View, start_s: float, end_s: float, at: str | float = "median"
) -> float:
    """Of the queueing delay at the samples from one time of the run to another."""
    seconds = view.queue(view.main_queue)["t_us"] / 1e6
    delays = metrics.queue_delay_rttmin(view)
    return _spread(delays[(seconds > start_s) & (seconds <= end_s)], at)


def queue_delay_in_phase_rttmin(
    view: View, group: str, phase: str, at: str | float = "median"
) -> float:
    """Of the queueing delay at the samples in which a flow of the group is in a phase."""
    samples = view.samples("cc_samples")
    of_group = np.isin(samples["flow_id"], _flows(view, group))
    times = samples["t_us"][of_group & (samples["phase"] == phase)]
    in_phase = np.isin(view.queue(view.main_queue)["t_us"], times)
    return _spread(metrics.queue_delay_rttmin(view)[in_phase], at)


def _queue_bytes(view: View, queue: str) -> Floats:
    """Backlog of a queue at the samples, by its name in recordings; the bottleneck's for none."""
    if not queue:
        return metrics.queue_bytes(view)
    values = view.queue(queue)["queue_bytes"]
    if not values.size:
        names = ", ".join(sorted({str(name) for name in view.samples("queue_samples")["queue"]}))
        raise ExpressionError(f"no queue is called {queue!r}; queues are {names}")
    return values


def backlog_bytes(view: View, at: str | float = "mean", queue: str = "") -> float:
    """Of a queue's backlog at the samples; the bottleneck's, unless one is named."""
    return _spread(_queue_bytes(view, queue), at)


def backlog_nonzero(view: View, queue: str = "") -> float:
    """Share of the samples with a backlog."""
    values = _queue_bytes(view, queue)
    return float((values > 0).mean()) if values.size else math.nan


def occupancy(view: View) -> float:
    """Mean backlog over the queue's limit in bytes; NaN for a limit in packets."""
    limit = view.main_qdisc["limit_bytes"]
    return _spread(metrics.queue_bytes(view), "mean") / limit if limit else math.nan


def loss(view: View) -> float:
    """Packets dropped by the queue or by random loss, over packets offered."""
    return view.path_metrics["loss_ratio"]


def marks(view: View) -> float:
    """Packets marked CE, by the queue or at random, over packets sent."""
    return view.path_metrics["mark_ratio"]


def retransmits(view: View, group: str = "") -> float:
    """Packets of a group sent again over packets sent."""
    return _group(view, group)["retransmit_ratio"]


def jain(view: View, group: str = "") -> float:
    """Jain's index of a group's flows over the whole window."""
    return metrics.jain(metrics.goodput_bps(view)[_flows(view, group)])


def jain_between(view: View, one: str, other: str) -> float:
    """Jain's index of the mean goodputs of two groups."""
    rates = metrics.goodput_bps(view)
    groups = [np.nanmean(rates[_flows(view, group)]) for group in (one, other)]
    return metrics.jain(np.array(groups))


def jain_windows(view: View, at: str | float = "median", window_s: float = 1.0) -> float:
    """Of Jain's index of windows (instantaneous fairness)."""
    return _spread(metrics.jain_over_time(view, window_s)[1], at)


def convergence_s(view: View, threshold: float = 0.9) -> float:
    """Seconds from the last start until Jain's index of 1 s windows stays above the threshold;
    infinite where it does not."""
    time_s = metrics.convergence_time_s(view, threshold)
    return math.inf if time_s is None else time_s


def cov(view: View, group: str = "", window_s: float = 1.0, at: str | float = "mean") -> float:
    """Of the flows' coefficients of variation (ahsan2025b)."""
    return _spread(metrics.coefficient_of_variation(view, window_s)[_flows(view, group)], at)


def rate_sd_mbps(view: View, group: str = "", window_s: float = 1.0) -> float:
    """Mean standard deviation of the flows' window rates: coefficient of variation x mean."""
    index = _flows(view, group)
    relative = metrics.coefficient_of_variation(view, window_s)[index]
    return float(np.mean(relative * metrics.goodput_bps(view)[index] / 1e6))


def ping_ms(view: View, at: str | float = "median", probe: str = "") -> float:
    """Of the probes' round-trip times; of one probe, where it is named."""
    if not probe:
        return _spread(metrics.ping_ms(view), at)
    names = [str(planned["name"]) for planned in view.plan.get("probes", [])]
    if probe not in names:
        raise ExpressionError(f"no probe is called {probe!r}; probes are {', '.join(names)}")
    pings = view.samples("ping_samples")
    return _spread(pings["rtt_us"][pings["probe"] == probe] / 1e3, at)


def _loads(view: View, page: str) -> Floats:
    """Times of a page's loads in seconds; of all pages', for the empty name. NaN: not finished."""
    pages = metrics.page_loads(view)
    if page and page not in (names := [loads.name for loads in pages]):
        raise ExpressionError(f"no page is called {page!r}; pages are {', '.join(names)}")
    times = [loads.time_s for loads in pages if page in ("", loads.name)]
    return np.concatenate(times) if times else np.empty(0)


def page_s(view: View, page: str = "", at: str | float = "mean") -> float:
    """Of the times of a page's loads that finished, as http-getter counts them."""
    return _spread(_loads(view, page), at)


def page_loads(view: View, page: str = "") -> float:
    """How many loads of a page finished."""
    return float((~np.isnan(_loads(view, page))).sum())


def rtt_ms(view: View, group: str = "", at: str | float = "median") -> float:
    """Of the smoothed RTTs of a group's flows at the samples."""
    values = [view.flow_samples(flow)["srtt_us"] for flow in _flows(view, group)]
    return _spread(np.concatenate(values), at) / 1e3


def cwnd_packets(view: View, group: str = "", at: str | float = "mean") -> float:
    """Of the congestion windows of a group's flows at the samples."""
    values = [view.flow_samples(flow)["cwnd_packets"] for flow in _flows(view, group)]
    return _spread(np.concatenate(values), at)


def completion_s(view: View, group: str = "", at: str | float = "mean") -> float:
    """Of the flows' completion times; NaN where none finished."""
    return _spread(metrics.completion_s(view)[_flows(view, group)], at)


def slowdown(view: View, group: str = "", at: str | float = "mean") -> float:
    """Of the flows' completion times over the ideal."""
    return _spread(metrics.slowdown(view)[_flows(view, group)], at)


def phase_share(view: View, group: str, phase: str) -> float:
    """Mean share of the samples that a group's flows spend in a phase of their algorithm."""
    shares = [metrics.phase_shares(view, flow).get(phase, 0.0) for flow in _flows(view, group)]
    return float(np.mean(shares))


def phase_interval_s(view: View, group: str, phase: str, at: str | float = "median") -> float:
    """Of the times between two entries of one flow into a phase of its algorithm, to a sample."""
    gaps = []
    for flow in _flows(view, group):
        samples = view.samples("cc_samples")
        of_flow = samples["flow_id"] == flow
        inside = samples["phase"][of_flow] == phase
        entries = samples["t_us"][of_flow][1:][inside[1:] & ~inside[:-1]]
        gaps.append(np.diff(entries) / 1e6)
    return _spread(np.concatenate(gaps), at)


def _stays(view: View, group: str) -> list[tuple[str, float, str]]:
    """(phase, seconds, next phase) of every stay of a group's flows in a phase of their algorithm,
    to a sample; not the last stay of a flow, whose end is not seen."""
    samples, stays = view.samples("cc_samples"), []
    for flow in _flows(view, group):
        of_flow = samples["flow_id"] == flow
        phases, times = samples["phase"][of_flow], samples["t_us"][of_flow] / 1e6
        changes = np.flatnonzero(phases[1:] != phases[:-1]) + 1
        for start, end in itertools.pairwise([0, *changes.tolist()]):
            stays.append((str(phases[start]), float(times[end] - times[start]), str(phases[end])))
    return stays


def phase_stay_s(view: View, group: str, phase: str, at: str | float = "median") -> float:
    """Of the times that a group's flows stay in a phase before they leave it, to a sample."""
    return _spread(np.array([s for name, s, _ in _stays(view, group) if name == phase]), at)


def phase_followed(view: View, group: str, phase: str, successor: str) -> float:
    """Share of a group's stays in a phase that another one follows at once, to a sample."""
    followers = [after for name, _, after in _stays(view, group) if name == phase]
    return _ratio(float(followers.count(successor)), float(len(followers)))


def phase_together(view: View, phase: str) -> float:
    """Mean share of the flows that are in a phase, over the samples in which any is."""
    samples = view.samples("cc_samples")
    times, position = np.unique(samples["t_us"], return_inverse=True)
    inside = np.bincount(position, samples["phase"] == phase, times.size)
    return _ratio(float(inside.sum()), float((inside > 0).sum()) * len(_flows(view, "")))


def estimates_over_rate(
    view: View, at: str | float = "median", start_s: float = 0.0, end_s: float = math.inf
) -> float:
    """Of the sum of all flows' bandwidth estimates over the bottleneck's rate, at the samples
    (those from one time of the run to another, where given), but in an outage."""
    samples = view.samples("cc_samples")
    times, position = np.unique(samples["t_us"], return_inverse=True)
    estimates = np.nan_to_num(samples["max_bw_bps"])
    rates = view.carrying.rates_bps(np.append(view.start_s, times / 1e6))
    counts = (times > start_s * 1e6) & (times <= end_s * 1e6) & (rates > 0)
    sums = np.bincount(position, estimates, times.size)
    return _spread(sums[counts] / rates[counts], at)


def min_rtt_over_base(view: View, group: str, phase: str = "", at: str | float = "median") -> float:
    """Of the flows' own estimates of the least RTT over the path's base RTT, at the samples (those
    in a phase, where one is named)."""
    samples = view.samples("cc_samples")
    selected = np.isin(samples["flow_id"], _flows(view, group))
    if phase:
        selected &= samples["phase"] == phase
    return _spread(samples["min_rtt_us"][selected] / (view.rtt_min_s * 1e6), at)


def bbr_jitter_ms(view: View, group: str, at: str | float = "median") -> float:
    """Of BBR's extra_acked over goodput, the jitter it allows for (bless2025, section V)."""
    values = []
    for flow in _flows(view, group):
        samples = view.samples("cc_samples")
        extra = samples["extra_acked_packets"][samples["flow_id"] == flow]
        rate = float(metrics.goodput_bps(view)[flow])
        if rate > 0:
            values.append(extra * float(view.flows["mss_bytes"][flow]) * 8 / rate * 1e3)
    return _spread(np.concatenate(values), at) if values else math.nan


def _traffic(view: View, group: str) -> list[metrics.TrafficFlows]:
    """The groups of `[[traffic]]` of a name or congestion control; all for the empty name."""
    groups = metrics.traffic_flows(view)
    matching = [flows for flows in groups if group in ("", flows.name, flows.cc)]
    if not matching:
        names = ", ".join(flows.name for flows in groups) or "none"
        raise ExpressionError(f"no traffic belongs to {group!r}; groups are {names}")
    return matching


def traffic_slowdown(view: View, group: str = "", at: str | float = "mean") -> float:
    """Of the slowdowns of traffic's flows: completion over size / rate + RTT."""
    return _spread(np.concatenate([flows.slowdown for flows in _traffic(view, group)]), at)


def traffic_slowdown_connected(view: View, group: str = "", at: str | float = "mean") -> float:
    """The same with half an RTT more in the ideal, for the handshake (Zapletal and Kuipers)."""
    values = [flows.slowdown_connected for flows in _traffic(view, group)]
    return _spread(np.concatenate(values), at)


def traffic_completion_ms(view: View, group: str = "", at: str | float = "mean") -> float:
    """Of the completion times of traffic's flows, those that finished."""
    values = np.concatenate([flows.completion_s for flows in _traffic(view, group)])
    return _spread(values[~np.isnan(values)] * 1e3, at)


def traffic_slowdown_under(view: View, discipline: str, group: str = "") -> float:
    """Mean slowdown of traffic's flows, those that finished, if the bottleneck were a fluid that
    served the same arrivals by "srpt" or "ps"."""
    if discipline not in ("srpt", "ps"):
        raise ExpressionError(f"{discipline!r} is not srpt or ps")
    values = [
        flows.slowdown_under(discipline)[~np.isnan(flows.end_s)] for flows in _traffic(view, group)
    ]
    return _spread(np.concatenate(values), "mean")


def traffic_at_once(view: View, group: str = "", at: str = "max") -> float:
    """How many flows of traffic there were at once: "max", or "mean" over time."""
    if at not in ("max", "mean"):
        raise ExpressionError(f"{at!r} is not max or mean")
    until_s = view.plan["duration_ns"] / 1e9
    groups = _traffic(view, group)
    if at == "mean":
        return sum(metrics.mean_at_once(flows, view.start_s, until_s) for flows in groups)
    counts = metrics.at_once_together(groups, until_s)[1]
    return float(counts.max()) if counts.size else math.nan


def traffic_offered_mbps(view: View, group: str = "") -> float:
    """Payload that traffic's flows brought along, over the window."""
    total = sum(float(flows.size_bytes.sum()) for flows in _traffic(view, group))
    return _ratio(8 * total / 1e6, view.end_s - view.start_s)


def traffic_flows_above(view: View, size_bytes: float, group: str = "") -> float:
    """Share of traffic's flows that are larger."""
    sizes = np.concatenate([flows.size_bytes for flows in _traffic(view, group)])
    return _ratio(float((sizes > size_bytes).sum()), float(sizes.size))


def traffic_bytes_above(view: View, size_bytes: float, group: str = "") -> float:
    """Share of traffic's bytes that belong to flows that are larger."""
    sizes = np.concatenate([flows.size_bytes for flows in _traffic(view, group)])
    return _ratio(float(sizes[sizes > size_bytes].sum()), float(sizes.sum()))


def _of_run(name: str) -> Measure:
    return lambda view: view.run_metrics[name]


def _of_path(name: str) -> Measure:
    return lambda view: view.path_metrics[name]


def _of_group(name: str) -> Measure:
    return lambda view, group="": _group(view, group)[name]


def _defined() -> dict[str, Measure]:
    """A function for each metric of crates/fullpipe-metrics (docs/reference/metrics.md)."""
    kinds = {"run": _of_run, "queue": _of_path, "group": _of_group}
    return {
        name: make(name)
        for table, make in kinds.items()
        for name, _, _ in _native.metrics.TABLES[table]
    }


#: Functions of what begins and ends, of a stated part of the run, or of a path's properties. The
#: others are means over the window, which say something of a run that had settled.
NO_MEANS_OVER_TIME = frozenset(
    {
        "goodput_between_mbps",
        "queue_delay_between_rttmin",
        "convergence_s",
        "completion_s",
        "slowdown",
        "traffic_completion_ms",
        "traffic_slowdown",
        "traffic_slowdown_connected",
        "traffic_slowdown_under",
        "traffic_flows_above",
        "traffic_bytes_above",
        "min_rtt_over_base",
    }
)
#: Name in the metric language -> function; the docstrings are the reference
#: (docs/reference/metric_functions.md).
FUNCTIONS: dict[str, Measure] = _defined() | {
    function.__name__: function
    for function in (
        goodput_mbps,
        goodput_between_mbps,
        flow_goodput_mbps,
        window_goodput_mbps,
        share,
        link_share,
        queue_delay_rttmin,
        queue_delay_ms,
        queue_delay_above,
        queue_delay_whisker_rttmin,
        queue_delay_peaks_rttmin,
        queue_delay_between_rttmin,
        queue_delay_in_phase_rttmin,
        backlog_bytes,
        backlog_nonzero,
        occupancy,
        loss,
        marks,
        retransmits,
        jain,
        jain_between,
        jain_windows,
        convergence_s,
        cov,
        rate_sd_mbps,
        ping_ms,
        rtt_ms,
        cwnd_packets,
        completion_s,
        slowdown,
        phase_share,
        phase_interval_s,
        phase_stay_s,
        phase_followed,
        phase_together,
        estimates_over_rate,
        min_rtt_over_base,
        bbr_jitter_ms,
        page_s,
        page_loads,
        traffic_completion_ms,
        traffic_slowdown,
        traffic_slowdown_connected,
        traffic_slowdown_under,
        traffic_at_once,
        traffic_offered_mbps,
        traffic_flows_above,
        traffic_bytes_above,
    )
}
