"""Series of a run over time that figures draw.

Rows of a series lie one after another, and its times are named `..._s`. This module must not know
entries, plots or engines.
"""

from __future__ import annotations

import numpy as np

from fullpipe import metrics
from fullpipe.metrics import View
from fullpipe.metrics.view import Floats
from fullpipe.plots.model import thin

#: Flent's step: of the windows over which goodputs are taken.
WINDOW_S = 0.2
#: Figures show at most so many consecutive runs of BBR's jitter, and of goodputs and estimates; and
#: quartiles of at most so many runs.
CONSECUTIVE_RUNS, SHOWN_RUNS, QUARTILE_RUNS = 10, 3, 30
#: At most so many points of a series over time, and so many flows.
_MOST_POINTS, _MOST_FLOWS = 600, 16
#: Points of a series that is kept of several runs.
_FEW_POINTS = 120
#: Prefix of the names of series.
OVER_TIME = "over_time_"


def percentiles(values: Floats) -> list[float]:
    """Percentiles 0 to 100 of the known values; empty without any."""
    valid = values[~np.isnan(values)]
    if not valid.size:
        return []
    return _rounded(np.quantile(valid, np.linspace(0, 1, 101)), 5)


def series_of(view: View) -> dict[str, list[float]]:
    """Series by name:

    - `queue_delay_rttmin`, `ping_ms`, `page_s` (at its start) and `backlog_bytes QUEUE`, at their
      samples;
    - `inflight_packets` of the first flow: in flight, congestion window, long-term and short-term
      bound (NaN: unset), and the packets lost since the sample before;
    - `phase PHASE`: the times at which the first flow begins a phase.

    And `stream_goodput_mbps`, flow after flow: percentiles 0 to 100 of each flow's goodput in
    windows of 0.2 s of its life."""
    queue, pings = view.queue(view.main_queue), view.samples("ping_samples")
    by_name = {
        "queue_delay_rttmin": _thinned(queue["t_us"] / 1e6, metrics.queue_delay_rttmin(view)),
        "ping_ms": _thinned(pings["t_us"] / 1e6, pings["rtt_us"] / 1e3),
        "inflight_packets": _inflight(view),
    }
    by_name |= {
        f"page_s {loads.name}": (loads.start_s, loads.time_s) for loads in metrics.page_loads(view)
    }
    for name in np.unique(view.samples("queue_samples")["queue"]):
        samples = view.queue(str(name))
        by_name[f"backlog_bytes {name}"] = _thinned(samples["t_us"] / 1e6, samples["queue_bytes"])
    data = {}
    for name, (times, values) in by_name.items():
        data[f"{OVER_TIME}{name}_s"] = _rounded(times, 4)
        data[f"{OVER_TIME}{name}"] = _rounded(values, 4)
    starts = {f"{OVER_TIME}phase {name}": _rounded(at, 4) for name, at in _phases(view).items()}
    return data | starts | {"stream_goodput_mbps": _streams(view)}


def repeated(view: View, seed: int) -> dict[str, list[float]]:
    """Series of several runs of a cell:

    - `bbr_jitter_ms`, flow after flow: BBR's extra_acked over its goodput (bless2025, section V);
    - `estimate_mbps`, flow after flow: BBR's bandwidth estimates; and `goodput_mbps`, flow after
      flow, in windows that end at `goodput_mbps_s`;
    - `course queue_delay_rttmin`: the queueing delay at few points."""
    data: dict[str, list[float]] = {}
    if seed <= CONSECUTIVE_RUNS:
        data |= _of_algorithm(view, "bbr_jitter_ms", "extra_acked_packets", _FEW_POINTS)
    if seed <= SHOWN_RUNS:
        data |= _of_algorithm(view, "estimate_mbps", "max_bw_bps", _MOST_POINTS // 2)
        times, rates = _goodputs(view)
        data[f"{OVER_TIME}goodput_mbps_s"] = _rounded(times, 4)
        data[f"{OVER_TIME}goodput_mbps"] = _rounded(rates, 4)
    if seed <= QUARTILE_RUNS:
        queue = view.queue(view.main_queue)
        picked = np.unique(np.linspace(0, queue["t_us"].size - 1, _FEW_POINTS).astype(int))
        if queue["t_us"].size:
            name = f"{OVER_TIME}course queue_delay_rttmin"
            data[f"{name}_s"] = _rounded(queue["t_us"][picked] / 1e6, 4)
            data[name] = _rounded(metrics.queue_delay_rttmin(view)[picked], 4)
    return data


def _of_algorithm(view: View, name: str, column: str, points: int) -> dict[str, list[float]]:
    """A variable of the algorithm over time, of the flows that have it. Empty without any."""
    samples, rows = view.samples("cc_samples"), []
    times: Floats = np.empty(0)
    for flow, rate in enumerate(metrics.goodput_bps(view)[:_MOST_FLOWS]):
        of_flow = samples["flow_id"] == flow
        values = samples[column][of_flow]
        if rate > 0 and np.nan_to_num(values).any():
            seconds = samples["t_us"][of_flow] / 1e6
            if not times.size:
                times = seconds[np.unique(np.linspace(0, seconds.size - 1, points).astype(int))]
            mss = float(view.flows["mss_bytes"][flow])
            scale = 1e-6 if column == "max_bw_bps" else mss * 8 / rate * 1e3
            rows.append(np.interp(times, seconds, values * scale, left=np.nan))
    if not rows:
        return {}
    return {
        f"{OVER_TIME}{name}_s": _rounded(times, 4),
        f"{OVER_TIME}{name}": _rounded(np.concatenate(rows), 4),
    }


def _goodputs(view: View) -> tuple[Floats, Floats]:
    length = max(WINDOW_S, WINDOW_S * np.ceil((view.end_s - view.start_s) / 300 / WINDOW_S))
    ends, rates = metrics.throughput_over_time(view, float(length))
    return ends, rates[:_MOST_FLOWS].ravel() / 1e6


def _streams(view: View) -> list[float]:
    ends, rates = metrics.throughput_over_time(view, WINDOW_S)
    begin, end = view.flows["start_us"] / 1e6, view.flows["completion_us"] / 1e6
    goodputs: list[float] = []
    for flow in range(min(len(rates), _MOST_FLOWS)):
        alive = ends - WINDOW_S >= begin[flow]
        if not np.isnan(end[flow]):
            alive &= ends <= end[flow]
        goodputs += percentiles(rates[flow][alive] / 1e6) or [np.nan] * 101
    return goodputs


def _inflight(view: View) -> tuple[Floats, Floats]:
    flow = view.flow_samples(0) if view.flows["flow_id"].size else {}
    if not flow or not flow["t_us"].size:
        return np.empty(0), np.empty(0)
    times, samples = flow["t_us"] / 1e6, view.samples("cc_samples")
    picked = np.unique(np.linspace(0, times.size - 1, _MOST_POINTS).astype(int))
    rows = [flow["inflight_packets"], flow["cwnd_packets"]]
    of_flow = samples["flow_id"] == 0
    at = np.searchsorted(samples["t_us"][of_flow], flow["t_us"]).clip(max=max(of_flow.sum() - 1, 0))
    for name in ("inflight_longterm_packets", "inflight_shortterm_packets"):
        recorded = of_flow.any() and name in samples
        rows.append(samples[name][of_flow][at] if recorded else np.full(times.size, np.nan))
    lost = np.diff(flow["packets_lost"][picked], prepend=flow["packets_lost"][:1])
    return times[picked], np.concatenate([*(row[picked] for row in rows), lost])


def _phases(view: View) -> dict[str, Floats]:
    samples = view.samples("cc_samples")
    of_flow = samples["flow_id"] == 0
    phases, times = samples["phase"][of_flow], samples["t_us"][of_flow] / 1e6
    begins = np.flatnonzero(phases[1:] != phases[:-1]) + 1
    by_phase = {str(name): times[begins][phases[begins] == name] for name in np.unique(phases)}
    return {name: at[:_MOST_POINTS] for name, at in by_phase.items()}


def _thinned(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    return thin(times, values, _MOST_POINTS)


def _rounded(values: Floats, digits: int) -> list[float]:
    return [round(float(x), digits) for x in values]
