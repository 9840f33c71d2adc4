"""How long the bottleneck's queue was: in bytes, in time, and how often it was there at all.

Samples stand at equal intervals, so a share of samples is a share of time. Flent's "Total" of a
backlog is an integral in KiB s, which papers have quoted as bytes; there is no such number here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fullpipe.metrics.queue import queue_bytes, queue_delay_s
from fullpipe.metrics.view import Floats, View


@dataclass(frozen=True)
class Backlog:
    """The queue's length over the window: maximum and mean in bytes on the wire, and the share of
    time, 0 to 1, in which something waited. NaN where the queue was not sampled."""

    max_bytes: float
    mean_bytes: float
    share_nonzero: float


def backlog(view: View) -> Backlog:
    """The backlog of the bottleneck that the data goes through."""
    values = queue_bytes(view)
    values = values[~np.isnan(values)]
    if not values.size:
        return Backlog(float("nan"), float("nan"), float("nan"))
    return Backlog(float(values.max()), float(values.mean()), float((values > 0).mean()))


def queue_delay_ms(view: View) -> Floats:
    """Queueing delay of the bottleneck at each sample, in ms."""
    return np.asarray(queue_delay_s(view) * 1e3)


def cdf(values: Floats) -> tuple[Floats, Floats]:
    """(distinct values in rising order, the share of values not above each, up to 1): the
    empirical distribution function of the values that are not NaN; empty where there is none."""
    valid = values[~np.isnan(values)]
    points, counts = np.unique(valid, return_counts=True)
    return points, counts.cumsum() / max(valid.size, 1)
