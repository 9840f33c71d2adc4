"""CHOKe: sch_choke."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fullpipe.scenario.fields import Ratio
from fullpipe.scenario.qdiscs.options import Options, Port


class Choke(Options):
    """CHOKe (sch_choke): drops an arriving packet and one of the same flow from the queue."""

    max_probability: Ratio = Field(0.02, description="probability of a drop just below max")

    def parameters(self, port: Port) -> dict[str, Any]:
        largest = max((port.limit_packets or 4) // 4, 2)
        return {
            "min_packets": max(largest // 3, 1),
            "max_packets": largest,
            "max_probability_ppm": round(self.max_probability * 1e6),
            "wlog": 4,
            "ecn": port.ecn,
        }
