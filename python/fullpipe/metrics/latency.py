"""Latency as a user beside the flows sees it: probes while the path was loaded, and what the load
added to them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fullpipe.metrics.view import Columns, Floats, View


def latency_under_load_ms(view: View) -> Floats:
    """Round-trip times in ms of the probes' requests that were sent within the window while at
    least one flow was at work; lost ones are left out."""
    pings = view.samples("ping_samples")
    times = pings["rtt_us"][_loaded(view, pings)] / 1e3
    return np.asarray(times[~np.isnan(times)])


def idle_latency_ms(view: View) -> float:
    """What a probe takes without load: the median round-trip time in ms of requests, within the
    whole recording, before the first flow; the path's base RTT where there were none."""
    pings = view._all("ping_samples")
    first = view.flows["start_us"].min() if view.flows["start_us"].size else np.inf
    before = pings["rtt_us"][pings["t_us"] < first] / 1e3
    before = before[~np.isnan(before)]
    return float(np.median(before)) if before.size else view.rtt_min_s * 1e3


def added_latency_ms(view: View) -> Floats:
    """Latency under load less that without: what the flows cost others, in ms."""
    return latency_under_load_ms(view) - idle_latency_ms(view)


def _loaded(view: View, pings: Columns) -> npt.NDArray[np.bool_]:
    sent = pings["t_us"] / 1e6
    loaded = np.zeros(sent.size, dtype=bool)
    for flow in range(view.flows["flow_id"].size):
        start, end = view.active_s(flow)
        loaded |= (sent >= start - 1e-9) & (sent < end - 1e-9)
    return loaded
