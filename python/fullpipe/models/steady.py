"""Steady-state model of BBRv1 against loss-based flows.

R. Ware, M. Mukerjee, S. Seshan, J. Sherry, "Modeling BBR's Interactions with Loss-Based Congestion
Control", IMC 2019; equation numbers as in its authors' follow-up code. Closed form, no engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from fullpipe.models.domain import Caution, Contest

#: The paper's packet.
PACKET_BITS = 12_000
#: BBRv1: packets a flow keeps in ProbeRTT, how long it holds them and how often.
PROBE_RTT_PACKETS = 4
PROBE_RTT_HOLD_S = 0.2
PROBE_RTT_INTERVAL_S = 10.0


@dataclass(frozen=True)
class SteadyState:
    """What the model predicts.

    `share`: the BBR aggregate's share of capacity, 0 to 1. `loss_based_raw`: equation (9) before
    it is cut off at 0. `loss_based`: after. `probe_time`: part of the time that goes to ProbeRTT,
    equation (11) over d."""

    share: float
    loss_based_raw: float
    loss_based: float
    probe_time: float
    cautions: tuple[Caution, ...]


def bbr1_share(contest: Contest, packet_bits: int = PACKET_BITS) -> SteadyState:
    """Share of capacity of BBRv1 flows against loss-based ones, equations (9) to (11)."""
    capacity_pps = contest.rate_bps / packet_bits
    buffer_packets = contest.buffer_bdp * capacity_pps * contest.rtt_s
    raw = (
        0.5 - 1 / (2 * contest.buffer_bdp) - PROBE_RTT_PACKETS * contest.flows / buffer_packets
    )  # (9)
    loss_based = max(0.0, raw)
    drain_s = buffer_packets / capacity_pps
    probe_time = (drain_s + PROBE_RTT_HOLD_S + contest.rtt_s) / PROBE_RTT_INTERVAL_S  # (11)
    share = (1 - loss_based) * max(0.0, 1 - probe_time)  # (10)
    return SteadyState(share, raw, loss_based, probe_time, _cautions(contest, raw, probe_time))


def _cautions(contest: Contest, raw: float, probe_time: float) -> tuple[Caution, ...]:
    cautions = []
    if contest.buffer_bdp < 1:
        cautions.append(
            Caution(
                "full_queue",
                "the queue is taken as full most of the time, which needs a buffer of "
                f"at least 1 BDP; here it is {contest.buffer_bdp:g}",
            )
        )
    if raw < 0:
        cautions.append(
            Caution(
                "loss_based_window",
                "equation (9) leaves less than nothing for the loss-based flows "
                f"({raw:.3f}); their share before ProbeRTT is set to 0",
            )
        )
    if probe_time >= 1:
        cautions.append(
            Caution(
                "probe_rtt_fits",
                "draining the queue and ProbeRTT take longer than the 10 s between "
                "two of them; the share is set to 0",
            )
        )
    if contest.against_flows > 1:
        cautions.append(
            Caution(
                "one_loss_based_flow",
                "the number of loss-based flows does not enter the equations; "
                "the model was validated against one",
            )
        )
    return tuple(cautions)
