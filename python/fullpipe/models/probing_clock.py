"""Steady-state model of BBRv3 against loss-based flows: BBR's probing clock sets the time between
two overflows, and that time sets the loss-based window. Derived in docs/models.md; no constant is
fitted. No engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from fullpipe.models.domain import FRAME_BYTES, PAYLOAD_BYTES, Caution, Contest

#: BBRv3: wait between probes in s and in rounds, least window, ProbeRTT.
PROBE_WAIT_S = 2.0
PROBE_WAIT_SPREAD_S = 1.0
PROBE_WAIT_ROUNDS = 63
WINDOW_MIN = 4
PROBE_RTT_GAIN = 0.5
PROBE_RTT_HOLD_S = 0.2
PROBE_RTT_INTERVAL_S = 5.0
#: Rounds from the end of the wait to the loss-based flow's reaction: REFILL, UP to the old bound,
#: a precautionary DOWN, REFILL, UP beyond it, feedback of the loss.
PROBE_ROUNDS = 6
#: CUBIC (RFC 9438): part kept at a loss, scale of the curve in packets/s^3, Reno-friendly growth.
CUBIC_KEPT = 0.7
CUBIC_SCALE = 0.4
CUBIC_FRIENDLY = 3 * (1 - CUBIC_KEPT) / (1 + CUBIC_KEPT)
RENO_KEPT = 0.5


@dataclass(frozen=True)
class ProbingClock:
    """What the model predicts.

    `share`: the BBR aggregate's goodput over capacity, 0 to 1. `wire_share`: with headers.
    `loss_based`: the loss-based part of what is in flight at an overflow. `period_s`: time
    between two overflows."""

    share: float
    wire_share: float
    loss_based: float
    period_s: float
    cautions: tuple[Caution, ...]


def bbr3_share(contest: Contest, rounds: float = PROBE_ROUNDS) -> ProbingClock:
    """Share of capacity of BBRv3 flows against loss-based ones.

    `rounds` replaces the derived number of rounds in a probe, for checks of it."""
    path = _Path(contest)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if path.loss_based(path.period_s(middle, rounds)) > middle:
            low = middle
        else:
            high = middle
    fixed_point = (low + high) / 2
    floor = min(1.0, WINDOW_MIN * contest.flows / path.full)
    loss_based = min(fixed_point, 1 - floor)
    probe_s = path.full_rtt_s + PROBE_RTT_HOLD_S
    present = 1 - (1 - PROBE_RTT_GAIN) * probe_s / (PROBE_RTT_INTERVAL_S + probe_s)
    bbr = (1 - loss_based) * present
    wire_share = bbr / (bbr + loss_based)
    return ProbingClock(
        wire_share * PAYLOAD_BYTES / FRAME_BYTES,
        wire_share,
        loss_based,
        path.period_s(fixed_point, rounds),
        _cautions(contest, path, fixed_point, floor),
    )


class _Path:
    """Volumes in frames, times in s; `full`: what is in flight when the buffer is full."""

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self.capacity = contest.rate_bps / (8 * FRAME_BYTES)
        self.bdp = self.capacity * contest.rtt_s
        self.full = (contest.buffer_bdp + 1) * self.bdp
        self.full_rtt_s = self.full / self.capacity

    def min_rtt_s(self, loss_based: float) -> float:
        """RTT in ProbeRTT: the loss-based flow's mean window, and what BBR keeps in flight."""
        kept = RENO_KEPT if self.contest.against == "reno" else CUBIC_KEPT
        window = (1 + kept) / 2 * loss_based * self.full
        bbr = max(WINDOW_MIN * self.contest.flows, PROBE_RTT_GAIN * (1 - loss_based) * self.bdp)
        return max(self.contest.rtt_s, (window + bbr) / self.capacity)

    def period_s(self, loss_based: float, rounds: float) -> float:
        """Time between two overflows: the wait of the first of the flows, and its probe."""
        flows = self.contest.flows
        target = (1 - loss_based) * self.capacity * self.min_rtt_s(loss_based) / flows
        wait_rounds = min(PROBE_WAIT_ROUNDS, max(WINDOW_MIN, target))
        wait_s = PROBE_WAIT_S + PROBE_WAIT_SPREAD_S / (flows + 1)
        return min(wait_s, wait_rounds * self.full_rtt_s) + rounds * self.full_rtt_s

    def loss_based(self, period_s: float) -> float:
        """Loss-based part of `full` that grows back from its cut in this period, less the round
        of the recovery."""
        growth_s = max(period_s - self.full_rtt_s, self.full_rtt_s)
        rounds = growth_s / self.full_rtt_s
        if self.contest.against == "reno":
            window = rounds / (1 - RENO_KEPT)
        else:
            curve = CUBIC_SCALE * growth_s**3 / (1 - CUBIC_KEPT)
            window = max(curve, CUBIC_FRIENDLY * rounds / (1 - CUBIC_KEPT))
        return self.contest.against_flows * window / self.full


def _cautions(
    contest: Contest, path: _Path, fixed_point: float, floor: float
) -> tuple[Caution, ...]:
    found = []
    if contest.buffer_bdp < 1:
        found.append(Caution(
            "overflow_by_probes", "overflows are taken as made by BBR's probes, which needs a "
            f"buffer of at least 1 BDP; here it is {contest.buffer_bdp:g}",
        ))  # fmt: skip
    if fixed_point >= 1 - 1e-9:
        found.append(Caution(
            "probe_before_loss_based_overflow", "the loss-based flows fill the buffer by "
            "themselves before BBR's clock lets it probe; only BBR's least window is left to it",
        ))  # fmt: skip
    elif floor > 1 - fixed_point:
        found.append(Caution(
            "bound_above_least_window", "the bound would be below BBR's least window of four "
            "segments a flow, which then decides the share",
        ))  # fmt: skip
    if 2 * path.full_rtt_s > PROBE_RTT_INTERVAL_S:
        found.append(Caution(
            "probe_rtt_fits", "a full buffer takes so long to drain that ProbeRTT interrupts "
            f"every probe (RTT {path.full_rtt_s:.2f} s)",
        ))  # fmt: skip
    return tuple(found)
