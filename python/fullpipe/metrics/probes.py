"""Probes: what of their requests came back, and how long it took."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fullpipe.metrics.flows import spread


def probes(names: npt.NDArray[Any], rtt_us: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
    """Of each probe, from its requests within a window (NaN: no answer): `sent`, `loss_ratio` and
    `rtt_ms` (mean, p50, p95, p99, max; None without an answer)."""
    found = []
    for name in dict.fromkeys(map(str, names)):
        times = rtt_us[names == name] / 1e3
        found.append({
            "probe": name,
            "sent": int(times.size),
            "loss_ratio": float(np.isnan(times).mean()),
            "rtt_ms": spread(times, ("mean", "p50", "p95", "p99", "max")),
        })  # fmt: skip
    return found
