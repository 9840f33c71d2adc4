"""What waited: backlog, queueing delay, ping."""

from __future__ import annotations

import numpy as np

from fullpipe.metrics.view import Floats, View


def queue_bytes(view: View) -> Floats:
    """Backlog of the bottleneck at each sample, in bytes on the wire."""
    return view.queue(view.main_queue)["queue_bytes"]


def queue_delay_s(view: View) -> Floats:
    """Queueing delay at each sample: backlog over bottleneck rate (bless2025, section III)."""
    return queue_bytes(view) * 8 / view.rate_bps


def queue_delay_rttmin(view: View) -> Floats:
    """Queueing delay at each sample, in base RTTs."""
    return queue_delay_s(view) / view.rtt_min_s


def ping_ms(view: View) -> Floats:
    """Round-trip times of the probes' requests within the window; lost ones are left out."""
    times = view.samples("ping_samples")["rtt_us"] / 1000
    return np.asarray(times[~np.isnan(times)])
