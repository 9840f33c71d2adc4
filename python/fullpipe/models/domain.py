"""The input of every model, and the cautions for assumptions that do not hold.

Knows no model and no engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.base.packets import mss_bytes, wire_bytes

#: The MTU of all models.
MTU_BYTES = 1500
#: Frame of a full-sized segment on Ethernet: what htb and bfifo count.
FRAME_BYTES = wire_bytes(MTU_BYTES)
#: Payload of such a segment with TCP timestamps: what goodput counts.
PAYLOAD_BYTES = mss_bytes(MTU_BYTES)

#: Loss-based congestion controls that the models know.
LOSS_BASED = ("cubic", "reno")

MAX_FLOWS = 1000
MAX_RATE_BPS = 1e12
MAX_RTT_S = 60.0
MAX_BUFFER_BDP = 1e6


@dataclass(frozen=True)
class Caution:
    """An assumption of a model that the input violates: its name, and the consequence."""

    assumption: str
    text: str

    def __str__(self) -> str:
        return f"{self.assumption}: {self.text}"


@dataclass(frozen=True)
class Contest:
    """`flows` flows of one congestion control against `against_flows` of a loss-based one, over
    one drop-tail bottleneck. All have the same base RTT and start together."""

    cc: str
    flows: int
    against: str
    rate_bps: float
    rtt_s: float
    buffer_bdp: float
    against_flows: int = 1

    def __post_init__(self) -> None:
        if self.against not in LOSS_BASED:
            names = " or ".join(LOSS_BASED)
            raise UserError(f"against: {self.against!r} is no loss-based control: {names}")
        _flows("n", self.flows)
        _flows("against_n", self.against_flows)
        within("rate", self.rate_bps, MAX_RATE_BPS, "bit/s")
        within("rtt", self.rtt_s, MAX_RTT_S, "s")
        within("buffer", self.buffer_bdp, MAX_BUFFER_BDP, "BDP")

    @property
    def bdp_bytes(self) -> float:
        """Capacity x base RTT."""
        return self.rate_bps * self.rtt_s / 8


def within(name: str, value: float, most: float, unit: str) -> None:
    """Raises UserError unless 0 < value <= most."""
    if not (math.isfinite(value) and 0 < value <= most):
        raise UserError(f"{name}: {value:g} is out of range: above 0, at most {most:g} {unit}")


def _flows(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_FLOWS:
        raise UserError(f"{name}: {value!r} is out of range: a number of flows, 1 to {MAX_FLOWS}")


def as_json(cautions: Iterable[Caution]) -> list[dict[str, Any]]:
    """The cautions as JSON carries them."""
    return [asdict(caution) for caution in cautions]
