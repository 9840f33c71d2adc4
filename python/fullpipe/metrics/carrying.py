"""What a link could carry, for arrays of times (crates/fullpipe-metrics/src/capacity.rs)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fullpipe import _native
from fullpipe.plan.bottleneck import Capacity

Floats = npt.NDArray[np.float64]


class Carrying:
    """One direction of a link."""

    def __init__(self, planned: Capacity) -> None:
        self.planned = planned
        self._native = _native.metrics.Capacity(planned)

    def drain_s(self, at_s: Floats, volume_bytes: Floats) -> Floats:
        """How long the link takes from each time on for so many bytes of full packets, at the rates
        that follow; NaN where those are not known, or it never carries them."""
        times_s = np.frombuffer(self._native.drain_s(_bytes(at_s), _bytes(volume_bytes)))
        return np.where(np.isfinite(times_s), times_s, np.nan)

    def in_full_packets(self, volume_bytes: Floats, packets: Floats) -> Floats:
        """So many packets, of so many bytes together, as the bytes of full packets that the link
        could carry instead: its layer adds to each packet. NaN for packets that are not counted."""
        return np.frombuffer(self._native.in_full_packets(_bytes(volume_bytes), _bytes(packets)))

    def bits(self, edges_s: Floats) -> Floats:
        """What the link can carry between each time and the next; NaN where that is not known."""
        return np.frombuffer(self._native.bits(_bytes(edges_s)))

    def rates_bps(self, edges_s: Floats) -> Floats:
        """The same over the time between, which is above 0."""
        return self.bits(edges_s) / np.diff(edges_s)


def _bytes(values: Floats) -> bytes:
    return np.ascontiguousarray(values, dtype=np.float64).tobytes()
