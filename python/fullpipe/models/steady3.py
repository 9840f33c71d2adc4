"""Steady-state model of BBRv3 against loss-based flows, in closed form.

Two conditions bound the loss-based share: Ware's balance of windows, with BBRv3's ProbeRTT, and the
interval between BBR's probes, in which a loss-based window grows back. Derived in
docs/background/models.md; no constant is fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fullpipe.models.domain import FRAME_BYTES, PAYLOAD_BYTES, Caution, Contest

#: BBRv3: gain of the window, wait between probes in s and in rounds, least window, ProbeRTT.
WINDOW_GAIN = 2.0
PROBE_WAIT_S = 2.0
PROBE_WAIT_SPREAD_S = 1.0
PROBE_WAIT_ROUNDS = 63
WINDOW_MIN = 4
PROBE_RTT_GAIN = 0.5
PROBE_RTT_HOLD_S = 0.2
PROBE_RTT_INTERVAL_S = 5.0
#: Segments that a window holds beyond its gain: those of one delayed ACK and of one burst.
WINDOW_EXTRA = 4
#: Rounds from the end of the wait to the loss-based flow's reaction: REFILL, UP to the old bound,
#: a precautionary DOWN, REFILL, UP beyond it, feedback of the loss.
PROBE_ROUNDS = 6
#: CUBIC (RFC 9438): part kept at a loss, scale of the curve in packets/s^3, Reno-friendly growth.
CUBIC_KEPT = 0.7
CUBIC_SCALE = 0.4
CUBIC_FRIENDLY = 3 * (1 - CUBIC_KEPT) / (1 + CUBIC_KEPT)
RENO_KEPT = 0.5


@dataclass(frozen=True)
class SteadyState3:
    """What the model predicts.

    `share`: the BBR aggregate's goodput over capacity, 0 to 1. `wire_share`: with headers.
    `by_window`, `by_clock`: the loss-based part of the data in flight at an overflow if only the
    balance of windows, or only the interval between probes, decided; `loss_based`: the larger of
    the two. `period_s`: time between two overflows that probes cause."""

    share: float
    wire_share: float
    by_window: float
    by_clock: float
    loss_based: float
    period_s: float
    cautions: tuple[Caution, ...]


def bbr3_share(contest: Contest, rounds: float = PROBE_ROUNDS) -> SteadyState3:
    """Share of capacity of BBRv3 flows against loss-based ones.

    `rounds` replaces the derived number of rounds in a probe, for checks of it."""
    path = _Path(contest)
    by_window = _root(lambda part: path.window(part) < (1 - part) * path.full)
    by_clock = _root(lambda part: path.regrown(path.period_s(part, rounds)) > part * path.full)
    floor = min(1.0, WINDOW_MIN * contest.flows / path.full)
    loss_based = min(max(by_window, by_clock), 1 - floor)
    probe_s = path.full_rtt_s + PROBE_RTT_HOLD_S
    present = 1 - (1 - PROBE_RTT_GAIN) * probe_s / (PROBE_RTT_INTERVAL_S + probe_s)
    bbr = (1 - loss_based) * present
    wire_share = bbr / (bbr + loss_based)
    return SteadyState3(
        wire_share * PAYLOAD_BYTES / FRAME_BYTES,
        wire_share,
        by_window,
        by_clock,
        loss_based,
        path.period_s(by_clock, rounds),
        _cautions(contest, path, max(by_window, by_clock), floor, rounds),
    )


def _root(must_grow: Callable[[float], bool]) -> float:
    """The largest part in [0, 1] for which a condition holds that holds for all smaller parts."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if must_grow(middle) else (low, middle)
    return (low + high) / 2


class _Path:
    """Volumes in frames, times in s. `part`: the loss-based part of the data in flight; `full`: the
    data in flight when the buffer is full."""

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self.capacity = contest.rate_bps / (8 * FRAME_BYTES)
        self.bdp = self.capacity * contest.rtt_s
        self.full = (contest.buffer_bdp + 1) * self.bdp
        self.full_rtt_s = self.full / self.capacity

    def min_rtt_s(self, part: float) -> float:
        """RTT in ProbeRTT: the loss-based window plus BBR's, which is half of its estimated BDP
        (computed with this RTT) or four segments a flow."""
        window_s = part * self.full / self.capacity
        at_half = window_s / (1 - PROBE_RTT_GAIN * (1 - part))
        at_least = window_s + WINDOW_MIN * self.contest.flows / self.capacity
        return max(self.contest.rtt_s, at_half, at_least)

    def window(self, part: float) -> float:
        """Window of all BBR flows: twice the estimated BDP, and room for ACKs and bursts."""
        bdp = (1 - part) * self.capacity * self.min_rtt_s(part)
        return WINDOW_GAIN * bdp + WINDOW_EXTRA * self.contest.flows

    def period_s(self, part: float, rounds: float) -> float:
        """Time between two overflows: the shortest wait of any BBR flow, plus its probe."""
        flows = self.contest.flows
        target = (1 - part) * self.capacity * self.min_rtt_s(part) / flows
        wait_rounds = min(PROBE_WAIT_ROUNDS, max(WINDOW_MIN, target))
        wait_s = PROBE_WAIT_S + PROBE_WAIT_SPREAD_S / (flows + 1)
        return min(wait_s, wait_rounds * self.full_rtt_s) + rounds * self.full_rtt_s

    def regrown(self, period_s: float) -> float:
        """The sum of the loss-based windows at which growth in this period, without the round of
        recovery, makes up for the reduction."""
        growth_s = max(period_s - self.full_rtt_s, self.full_rtt_s)
        rounds = growth_s / self.full_rtt_s
        if self.contest.against == "reno":
            window = rounds / (1 - RENO_KEPT)
        else:
            curve = CUBIC_SCALE * growth_s**3 / (1 - CUBIC_KEPT)
            window = max(curve, CUBIC_FRIENDLY * rounds / (1 - CUBIC_KEPT))
        return self.contest.against_flows * window


def _cautions(
    contest: Contest, path: _Path, part: float, floor: float, rounds: float
) -> tuple[Caution, ...]:
    cautions = []
    if contest.buffer_bdp < 1:
        cautions.append(
            Caution(
                "overflow_by_probes",
                "overflows are taken as made by BBR's probes, which needs a "
                f"buffer of at least 1 BDP; here it is {contest.buffer_bdp:g}",
            )
        )
    if part >= 1 - 1e-9:
        cautions.append(
            Caution(
                "probe_before_loss_based_overflow",
                "the loss-based flows fill the buffer by themselves before BBR's clock lets it "
                "probe; only BBR's least window is left to it",
            )
        )
    elif floor > 1 - part:
        cautions.append(
            Caution(
                "more_than_least_window",
                "what is left to BBR is below its least window of four "
                "segments a flow, which then decides the share",
            )
        )
    period_s = path.period_s(part, rounds)
    if contest.flows > 1 and period_s < 2 * rounds * path.full_rtt_s:
        cautions.append(
            Caution(
                "one_probe_at_a_time",
                "BBR flows probe for longer than they wait, so that their "
                "probes overlap and interrupt the loss-based flows more often than the model says; "
                "with many flows BBR's share is then larger",
            )
        )
    if period_s > PROBE_RTT_INTERVAL_S:
        cautions.append(
            Caution(
                "probe_rtt_fits",
                f"a probe and the wait for it take {period_s:.1f} s, longer than the "
                f"{PROBE_RTT_INTERVAL_S:g} s after which ProbeRTT interrupts them",
            )
        )
    return tuple(cautions)
