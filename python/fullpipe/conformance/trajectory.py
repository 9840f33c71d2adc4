"""BBR's variables over time, from a recording's samples of one flow: its phases, and the values at
their start and end.

Changes between two samples are not visible, so items that measure phases sample often. Must never
know an item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fullpipe.base.packets import mss_bytes, wire_bytes
from fullpipe.metrics.view import Floats, View
from fullpipe.recording.recording import Recording

#: BBR's bursts: 1 ms at the pacing rate (rate >> 10), at most 64 KB, 2 packets at least; three of
#: them are always allowed in flight (draft-ietf-ccwg-bbr, sections "BBR.offload_budget" and "send
#: quantum"; cc/bbr3_model.h).
_BURST_SHIFT, _BURST_MAX_BYTES, _BURST_LEAST, _BURSTS = 10, 65215, 2, 3
_MIN_PIPE_CWND = 4


@dataclass(frozen=True)
class Visit:
    """A stay in a phase: indices of its first and last sample, and the phase that came after
    (empty at the end of the run)."""

    phase: str
    first: int
    last: int
    next: str


class Trajectory:
    """The samples of a run's first flow.

    Columns are one value a sample; bounds that are not set are infinite."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        view = View(recording, start_s=-1.0)
        samples = view.samples("cc_samples")
        keep = samples["flow_id"] == 0
        flow = view.flow_samples(0)
        common = np.isin(flow["t_us"], samples["t_us"][keep])
        keep &= np.isin(samples["t_us"], flow["t_us"])
        plan = view.plan
        self.rate_bps = view.rate_bps
        self.rtt_s = view.rtt_min_s
        medium = plan["links"][0]["medium"]
        steps = (medium.get("forward") or {}).get("rate_steps") or []
        #: When the first link's rate changes, and to what.
        self.rate_steps = [(at / 1e9, float(rate)) for at, rate in steps]
        mtu = plan["access"]["mtu_bytes"]
        self.mss_bytes = mss_bytes(mtu)
        #: Share of a link's rate that is payload.
        self.payload = self.mss_bytes / wire_bytes(mtu)
        self.t_s: Floats = samples["t_us"][keep] / 1e6
        self.phase: npt.NDArray[np.object_] = samples["phase"][keep]
        self.round: Floats = samples["round_count"][keep]
        self.max_bw_bps: Floats = samples["max_bw_bps"][keep]
        self.bw_shortterm_bps = _unset(samples["bw_shortterm_bps"][keep])
        self.pacing_gain: Floats = samples["pacing_gain"][keep]
        self.longterm = _unset(samples["inflight_longterm_packets"][keep])
        self.shortterm = _unset(samples["inflight_shortterm_packets"][keep])
        self.extra_acked: Floats = samples["extra_acked_packets"][keep]
        self.min_rtt_us: Floats = samples["min_rtt_us"][keep]
        self.cwnd: Floats = flow["cwnd_packets"][common]
        self.inflight: Floats = flow["inflight_packets"][common]
        self.lost: Floats = flow["packets_lost"][common]
        self.delivered_bytes: Floats = flow["bytes_delivered"][common]
        self.pacing_bps: Floats = flow["pacing_rate_bps"][common]
        self.undos = float(view.flows["undos"][0])
        self.recoveries = float(view.flows["recoveries"][0])
        self.timeouts = float(view.flows["timeouts"][0])

    @property
    def has_estimates(self) -> bool:
        """Whether the algorithm published max_bw, min_rtt and its rounds at all."""
        estimates = (self.max_bw_bps, self.min_rtt_us)
        return all(bool(np.isfinite(estimate).any()) for estimate in estimates) and bool(
            self.round.any()
        )

    @property
    def bdp(self) -> float:
        """The path's, in packets: payload rate x base RTT."""
        return float(self.rate_bps * self.payload * self.rtt_s / 8 / self.mss_bytes)

    @cached_property
    def visits(self) -> list[Visit]:
        """The phases in their order."""
        if not self.phase.size:
            return []
        edges = np.flatnonzero(self.phase[1:] != self.phase[:-1]) + 1
        firsts = [0, *edges.tolist()]
        lasts = [*(edges - 1).tolist(), self.phase.size - 1]
        names = [str(self.phase[first]) for first in firsts]
        return [
            Visit(name, first, last, after)
            for name, first, last, after in zip(names, firsts, lasts, [*names[1:], ""], strict=True)
        ]

    def visit(self, phase: str, number: int = 1) -> Visit | None:
        """The `number`-th stay in a phase; None if there was none."""
        visits = [visit for visit in self.visits if visit.phase == phase]
        return visits[number - 1] if len(visits) >= number else None

    def estimate(self, index: int, rate_bps: float | None = None) -> float:
        """max_bw at a sample over what the link carries of payload."""
        carried_bps = float((rate_bps or self.rate_bps) * self.payload)
        return float(self.max_bw_bps[index]) / carried_bps

    def bdp_packets(self, index: int) -> float:
        """BBR's own estimate: max_bw x min_rtt, rounded up to packets; NaN before there is one."""
        bits = float(self.max_bw_bps[index]) * float(self.min_rtt_us[index]) / 1e6
        return float(np.ceil(bits / 8 / self.mss_bytes - 1e-9))

    def target_packets(self, index: int) -> float:
        """BBRInflight(1.0) at a sample: the BDP, and what bursts need."""
        bursts = _BURSTS * self.burst_packets(index)
        return float(np.max([self.bdp_packets(index), bursts, _MIN_PIPE_CWND]))

    def burst_packets(self, index: int) -> float:
        """Packets sent at once at a sample's pacing rate; NaN where there is none."""
        volume = np.minimum(self.pacing_bps[index] / 8 / 2**_BURST_SHIFT, _BURST_MAX_BYTES)
        return float(np.maximum(np.floor(volume / self.mss_bytes), _BURST_LEAST))

    def rounds(self, visit: Visit) -> float:
        """Round trips that a stay lasted."""
        end = min(visit.last + 1, self.round.size - 1)
        return float(self.round[end] - self.round[visit.first])

    def seconds(self, visit: Visit) -> float:
        """How long a stay lasted, to a sample."""
        end = min(visit.last + 1, self.t_s.size - 1)
        return float(self.t_s[end] - self.t_s[visit.first])

    def at(self, t_s: float) -> int:
        """The index of the first sample not before a time; the last where there is none."""
        return min(int(np.searchsorted(self.t_s, t_s - 1e-9)), self.t_s.size - 1)

    def utilisation(self, first: int, last: int) -> float:
        """Payload delivered between two samples over what the link carries."""
        seconds = float(self.t_s[last] - self.t_s[first])
        volume = float(self.delivered_bytes[last] - self.delivered_bytes[first]) * 8
        carried = float(seconds * self.rate_bps * self.payload)
        return volume / carried if seconds > 0 else math.nan


def _unset(values: Floats) -> Floats:
    return np.asarray(np.where(np.isnan(values), np.inf, values))
