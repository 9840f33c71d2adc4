"""What a reward is computed from, and the default one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, SupportsFloat

from fullpipe.base.errors import UserError

#: Costs in the default reward: of a second with one base RTT of queueing delay, in seconds of a
#: full link; and of a lost packet, in packets.
_DELAY_COST, _LOSS_COST, _MAX_DELAY = 0.5, 5.0, 4.0


class FlowStep(NamedTuple):
    """A flow's measurements in a step, from which rewards are computed."""

    elapsed_s: float  #: length of the step
    delivered: int  #: packets
    lost: int  #: packets
    marked: int  #: packets with CE
    timeouts: int  #: retransmission timeouts
    rtt_s: float  #: mean RTT of the step's ACKs; the smoothed one where none had a sample
    base_rtt_s: float  #: of the empty path, when the acknowledged packets left
    packet_s: float  #: how long a full packet took at the bottleneck, while it had a rate
    cwnd: float  #: window in packets before the decision that follows


def default_reward(flows: Sequence[FlowStep]) -> float:
    """Seconds of full link: of each flow the time that the bottleneck takes for what was delivered
    less that of five times what was lost, less half the step's length for each base RTT of queueing
    (four at most). An episode that fills the link without a queue gets its length in seconds, less
    the time of outages."""
    return sum(flow_reward(flow, len(flows)) for flow in flows)


def flow_reward(flow: FlowStep, flows: int) -> float:
    """What one of so many flows adds to the default reward."""
    delay = flow.rtt_s / flow.base_rtt_s - 1.0 if flow.rtt_s else 0.0
    earned = flow.packet_s * (flow.delivered - _LOSS_COST * flow.lost)
    return earned - _DELAY_COST * flow.elapsed_s * min(max(delay, 0.0), _MAX_DELAY) / flows


def finite(reward: SupportsFloat) -> float:
    """What a function of rewards returned. Raises UserError for no finite number."""
    try:
        value = float(reward)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"reward: returned {reward!r}; must return a finite number")
    return value
