"""What flows got: goodput, shares, completion, time per phase."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fullpipe.base.packets import wire_bytes
from fullpipe.metrics.view import Floats, View

_QUANTILES = {"min": 0.0, "p5": 0.05, "p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def goodput_bps(view: View) -> Floats:
    """Payload bit/s of each flow over the time that it was active within the window; NaN for a flow
    that was not."""
    return np.array([metrics["goodput_bps"] for metrics in view.flow_metrics])


def delivered_bytes(view: View) -> Floats:
    """Payload bytes that reached the receiver within the window, one a flow."""
    return np.array([metrics["delivered_bytes"] for metrics in view.flow_metrics])


def link_share(view: View, cc: str) -> float:
    """Goodput of all flows of a congestion control over what the bottleneck could carry
    (sarpkaya2025)."""
    flows = np.flatnonzero(view.flows["cc"] == cc).tolist()
    return view.group_metrics(flows)["goodput_all_bps"] / view.mean_rate_bps


def completion_s(view: View) -> Floats:
    """Seconds from start to the last acknowledged byte; NaN for a flow that did not finish."""
    return np.array([metrics["completion_s"] for metrics in view.flow_metrics])


def slowdown(view: View) -> Floats:
    """Completion time over the ideal: what the link takes for the amount from the flow's start on,
    plus one base RTT for the connection and half for the data (Zapletal and Kuipers, HotNets 2023).
    NaN where a flow did not finish."""
    flows = view.flows
    wire = wire_bytes(view.plan["path"]["mtu_bytes"])
    volume_bytes = flows["bytes_delivered"] * wire / flows["mss_bytes"]
    work_s = view.carrying.drain_s(flows["start_us"] / 1e6, volume_bytes)
    return completion_s(view) / (work_s + 1.5 * flows["base_rtt_us"] / 1e6)


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


def spread(values: Floats, keys: Sequence[str]) -> dict[str, float | None]:
    """What the keys name ("mean", "min", "p5", "p50", "p95", "p99", "max") of the values that are
    not NaN; None where there are none."""
    valid = values[~np.isnan(values)]
    if not valid.size:
        return dict.fromkeys(keys)
    points = [key for key in keys if key != "mean"]
    quantiles = np.quantile(valid, [_QUANTILES[key] for key in points]).tolist()
    figures = {"mean": float(valid.mean()), **dict(zip(points, quantiles, strict=True))}
    return {key: figures[key] for key in keys}


def finite(value: float) -> float | None:
    """The value, or None where it is not a number (JSON has no NaN)."""
    return value if math.isfinite(value) else None
