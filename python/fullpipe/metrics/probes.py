"""Probes: what of their requests came back, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fullpipe.metrics.flows import spread


def probes(pings: Mapping[str, npt.NDArray[Any]], end_s: float) -> list[dict[str, Any]]:
    """Of each probe, from its requests within a window (`ping_samples`): `sent`, `loss_ratio` and
    `rtt_ms` (mean, p50, p95, p99, max; None without an answer). Left out are requests without an
    answer that may have been under way when the run ended (`end_s`), less than the probe's largest
    RTT later."""
    summaries = []
    names = pings["probe"]
    for name in dict.fromkeys(map(str, names)):
        sent_us, rtt_us = pings["t_us"][names == name], pings["rtt_us"][names == name]
        answered = ~np.isnan(rtt_us)
        largest_us = rtt_us[answered].max() if answered.any() else 0.0
        times = rtt_us[answered | (sent_us + largest_us < 1e6 * end_s)] / 1e3
        summary = {
            "probe": name,
            "sent": int(times.size),
            "loss_ratio": float(np.isnan(times).mean()),
            "rtt_ms": spread(times, ("mean", "p50", "p95", "p99", "max")),
        }
        summaries.append(summary)
    return summaries
