"""What waited: backlog, queueing delay, ping."""

from __future__ import annotations

import numpy as np

from fullpipe.metrics.view import Floats, View


def queue_bytes(view: View) -> Floats:
    """Backlog of the bottleneck at each sample, in bytes on the wire."""
    return view.queue(view.main_queue)["queue_bytes"]


def queue_delay_s(view: View) -> Floats:
    """Queueing delay at each sample: the time that the bottleneck takes for its backlog at the
    rates that its plan has from then on (at one rate: backlog over rate, as in bless2025, section
    III). NaN where those are not known, or the backlog never drains."""
    samples = view.queue(view.main_queue)
    times, backlog = (np.ascontiguousarray(samples[name]) for name in ("t_us", "queue_bytes"))
    delays = np.frombuffer(view.capacity.drain_s(times.tobytes(), backlog.tobytes()))
    return np.where(np.isfinite(delays), delays, np.nan)


def queue_delay_rttmin(view: View) -> Floats:
    """Queueing delay at each sample, in base RTTs."""
    return queue_delay_s(view) / view.rtt_min_s


def ping_ms(view: View) -> Floats:
    """Round-trip times of the probes' requests within the window; lost ones are left out."""
    times = view.samples("ping_samples")["rtt_us"] / 1000
    return np.asarray(times[~np.isnan(times)])
