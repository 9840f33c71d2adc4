"""What waited: backlog, queueing delay, ping."""

from __future__ import annotations

import numpy as np

from fullpipe.metrics.carrying import Carrying
from fullpipe.metrics.view import Floats, View
from fullpipe.plan.bottleneck import Bottleneck


def queue_bytes(view: View) -> Floats:
    """Backlog of the bottleneck at each sample, in bytes on the wire."""
    return view.queue(view.main_queue)["queue_bytes"]


def queue_delay_s(view: View, bottleneck: Bottleneck | None = None) -> Floats:
    """Queueing delay at each sample, of the bottleneck that the data goes through or of another:
    the time that its link takes for the backlog at the rates of the plan from then on. At one rate
    it is backlog over rate (bless2025, section III). NaN where the rates are not known, or the
    backlog never drains."""
    samples = view.queue(bottleneck.queue if bottleneck else view.main_queue)
    carrying = Carrying(bottleneck.capacity) if bottleneck else view.carrying
    volume_bytes = carrying.in_full_packets(samples["queue_bytes"], samples["queue_packets"])
    return carrying.drain_s(samples["t_us"] / 1e6, volume_bytes)


def queue_delay_rttmin(view: View) -> Floats:
    """Queueing delay at each sample, in base RTTs."""
    return queue_delay_s(view) / view.rtt_min_s


def ping_ms(view: View) -> Floats:
    """Round-trip times of the probes' requests within the window; lost ones are left out."""
    times = view.samples("ping_samples")["rtt_us"] / 1000
    return np.asarray(times[~np.isnan(times)])
