"""What flows got: goodput, shares, completion, time per phase."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fullpipe.metrics.view import Floats, View

_QUANTILES = {"min": 0.0, "p5": 0.05, "p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def delivered_bytes(view: View) -> Floats:
    """Payload bytes that reached the receiver within the window, one a flow."""
    return np.array([
        view.counter(flow, "bytes_delivered", view.end_s)
        - view.counter(flow, "bytes_delivered", view.start_s)
        for flow in range(view.flows["flow_id"].size)
    ])  # fmt: skip


def goodput_bps(view: View) -> Floats:
    """Payload bit/s of each flow over the time that it was at work within the window; NaN for a
    flow that was not."""
    rates = []
    for flow, volume in enumerate(delivered_bytes(view)):
        start, end = view.active_s(flow)
        rates.append(8 * volume / (end - start) if end > start else math.nan)
    return np.array(rates)


def group_goodput_bps(view: View) -> dict[str, float]:
    """Payload bit/s of all flows of a congestion control together, over the whole window."""
    seconds = view.end_s - view.start_s
    groups: dict[str, float] = {}
    for name, volume in zip(view.flows["cc"], delivered_bytes(view), strict=True):
        groups[name] = groups.get(name, 0.0) + (8 * volume / seconds if seconds > 0 else 0.0)
    return groups


def link_share(view: View, cc: str) -> float:
    """Goodput of all flows of a congestion control over the nominal capacity (sarpkaya2025)."""
    return group_goodput_bps(view).get(cc, 0.0) / view.rate_bps


def completion_s(view: View) -> Floats:
    """Seconds from start to the last acknowledged byte; NaN for a flow that did not finish."""
    return (view.flows["completion_us"] - view.flows["start_us"]) / 1e6


def slowdown(view: View) -> Floats:
    """Completion time over the ideal: the amount at the link's payload rate plus one base RTT for
    the connection and half for the data (Zapletal and Kuipers, HotNets 2023). NaN where a flow
    did not finish."""
    flows = view.flows
    wire = view.plan["path"]["mtu_bytes"] + 14
    payload_bps = view.rate_bps * flows["mss_bytes"] / wire
    ideal_s = 8 * flows["bytes_delivered"] / payload_bps + 1.5 * flows["base_rtt_us"] / 1e6
    return np.asarray(completion_s(view) / ideal_s)


def phase_shares(view: View, flow_id: int) -> dict[str, float]:
    """Share of the samples of a flow in each phase of its algorithm; empty where it has none."""
    samples = view.samples("cc_samples")
    phases = samples["phase"][samples["flow_id"] == flow_id]
    if not phases.size:
        return {}
    names, counts = np.unique(phases.astype(str), return_counts=True)
    return {
        str(name): float(count) / phases.size for name, count in zip(names, counts, strict=True)
    }


def quantile(known: Floats, which: Sequence[float]) -> Floats:
    """What `np.quantile` gives for finite values, to the bit; that loads NumPy's masked arrays."""
    places = (known.size - 1) * np.asarray(which, dtype=np.float64)
    below = np.floor(places).astype(np.intp)
    above = np.minimum(below + 1, known.size - 1)
    ordered = np.partition(known, sorted({*below.tolist(), *above.tolist()}))
    low, high, share = ordered[below], ordered[above], places - below
    step = high - low
    return np.where(share >= 0.5, high - step * (1 - share), low + step * share)


def median(known: Floats) -> float:
    """What `np.median` gives for values without NaN; that loads NumPy's masked arrays."""
    middle, first = known.size // 2, (known.size - 1) // 2
    return float(np.partition(known, [first, middle])[first : middle + 1].mean())


def quantiles(values: Floats, which: tuple[float, ...]) -> list[float | None]:
    """Quantiles (linear interpolation, NumPy's default) of the values that are not NaN; None
    where there are none."""
    known = values[~np.isnan(values)]
    if not known.size:
        return [None for _ in which]
    return [float(value) for value in quantile(known, which)]


def spread(values: Floats, keys: Sequence[str]) -> dict[str, float | None]:
    """What the keys name ("mean", "min", "p5", "p50", "p95", "p99", "max") of the values that are
    not NaN; None where there are none."""
    known = values[~np.isnan(values)]
    if not known.size:
        return dict.fromkeys(keys)
    points = [key for key in keys if key != "mean"]
    found = quantile(known, [_QUANTILES[key] for key in points])
    figures = {"mean": float(known.mean()), **dict(zip(points, map(float, found), strict=True))}
    return {key: figures[key] for key in keys}


def mean(values: Floats) -> float | None:
    """Mean of the values that are not NaN; None where there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def finite(value: float) -> float | None:
    """The value, or None where it is not a number (JSON has no NaN)."""
    return value if math.isfinite(value) else None
