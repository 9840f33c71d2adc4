"""A flow's congestion window over time, from a recording's samples: its reductions, and what lies
between them. It needs nothing of the algorithm itself, so it reads any host's flows.

Must never know an item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fullpipe.base.packets import FRAME_HEADERS_BYTES
from fullpipe.metrics.view import Floats, View
from fullpipe.recording.recording import Recording

#: A fall below this share of the last peak is a reduction: RFC 9438 leaves 0.7, RFC 5681 half.
_FALL = 0.95
#: Round trips after which recovery has set the window.
_SETTLED_ROUNDS = 2.5


@dataclass(frozen=True)
class Reduction:
    """A reduction of the window. `at`: index of the first sample below; `settled`: of the sample
    when recovery is over; `before`, `after`: windows in packets, before it and when settled."""

    at: int
    settled: int
    before: float
    after: float


class Windows:
    """The samples of a run's first flow; columns are one value a sample."""

    has_estimates = True

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        view = View(recording, start_s=-1.0)
        flow = view.flow_samples(0)
        self.rate_bps = view.rate_bps
        self.rtt_s = view.rtt_min_s
        self.t_s: Floats = flow["t_us"] / 1e6
        self.cwnd: Floats = flow["cwnd_packets"]
        self.srtt_s: Floats = np.nan_to_num(flow["srtt_us"] / 1e6, nan=self.rtt_s)
        self.lost: Floats = flow["packets_lost"]
        self.delivered: Floats = flow["packets_delivered"]
        self.mss_bytes = float(view.flows["mss_bytes"][0])
        self.timeouts = float(view.flows["timeouts"][0])
        self.undos = float(view.flows["undos"][0])

    @property
    def bdp(self) -> float:
        """The path's, in packets: payload rate x base RTT."""
        return float(self.rate_bps * self.rtt_s / 8 / (self.mss_bytes + FRAME_HEADERS_BYTES))

    @cached_property
    def reductions(self) -> list[Reduction]:
        """The reductions after which the flow was seen for a few round trips, in their order.
        Recovery may lower the window packet by packet, so a fall is one below the last peak."""
        reductions: list[Reduction] = []
        peak = 0
        index = 1
        while index < self.t_s.size:
            if self.cwnd[index] >= self.cwnd[peak]:
                peak = index
            elif self.cwnd[index] < _FALL * self.cwnd[peak]:
                begin = peak + 1
                end_s = float(self.t_s[begin]) + _SETTLED_ROUNDS * float(self.srtt_s[begin])
                if end_s > self.t_s[-1]:
                    break
                settled = self.at(end_s)
                before, after = float(self.cwnd[peak]), float(self.cwnd[settled])
                reductions.append(Reduction(begin, settled, before, after))
                peak = index = settled
            index += 1
        return reductions

    def at(self, t_s: float) -> int:
        """The index of the first sample not before a time; the last where there is none."""
        return min(int(np.searchsorted(self.t_s, t_s - 1e-9)), self.t_s.size - 1)

    def window_at(self, t_s: float) -> float:
        """The window at a time, between samples by a line; NaN after the end."""
        if t_s > self.t_s[-1]:
            return math.nan
        return float(np.interp(t_s, self.t_s, self.cwnd))
