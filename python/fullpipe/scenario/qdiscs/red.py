"""Random early detection: sch_red."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from fullpipe.scenario.fields import Ratio, Size
from fullpipe.scenario.qdiscs.options import Options, Port, set_only

#: tc's `avpkt`, as tc-red(8) advises for Ethernet.
_AVERAGE_PACKET_BYTES = 1000


class Red(Options):
    """Random early detection (sch_red)."""

    min: Size | None = Field(
        None, description="average queue below which nothing is dropped; default: a third of max"
    )
    max: Size | None = Field(
        None, description="average queue above which every packet is dropped; default: half the "
        "buffer, at least three full packets"
    )  # fmt: skip
    max_probability: Ratio = Field(0.02, description="probability of a drop just below max")
    adaptive: bool = Field(
        False, description="adapts max_probability, from 1% to 50%, so that the average queue "
        "stays in the middle between min and max (Adaptive RED)"
    )  # fmt: skip

    @model_validator(mode="after")
    def _in_order(self) -> Red:
        if self.min and self.max and self.min >= self.max:
            raise ValueError("min: must be below max")
        return self

    def limit_bytes(self, port: Port) -> int:
        return max(port.limit_bytes or 0, self._thresholds_bytes(port)[1])

    def parameters(self, port: Port) -> dict[str, Any]:
        least, largest = self._thresholds_bytes(port)
        return {
            "min_bytes": least,
            "max_bytes": largest,
            "max_probability_ppm": round(self.max_probability * 1e6),
            "avpkt_bytes": _AVERAGE_PACKET_BYTES,
            # tc-red(8): (2 min + max) / (3 avpkt).
            "burst_packets": max(1, (2 * least + largest) // (3 * _AVERAGE_PACKET_BYTES)),
            "ecn": port.ecn,
            **set_only(adaptive=self.adaptive or None),
        }

    def _thresholds_bytes(self, port: Port) -> tuple[int, int]:
        """min and max; tc-red(8): min is about a third of max."""
        largest = self.max or max((port.limit_bytes or 0) // 2, 3 * port.packet_bytes)
        return self.min or max(largest // 3, port.packet_bytes), largest
