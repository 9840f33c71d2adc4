"""Fair queueing with PIE in each queue: sch_fq_pie."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fullpipe.scenario.fields import Ratio
from fullpipe.scenario.qdiscs.options import Port, Size32
from fullpipe.scenario.qdiscs.pie import Pie


class FqPie(Pie):
    """Fair queueing with PIE in each queue (sch_fq_pie)."""

    quantum: Size32 | None = Field(
        None, description="bytes that a flow may send per round; default: one full packet"
    )
    flows: int = Field(1024, ge=1, le=65536, description="number of queues")
    ecn_up_to: Ratio = Field(
        0.1, description="marks packets up to this drop probability, and drops them above it"
    )

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            **super().parameters(port),
            "quantum_bytes": self.quantum or port.packet_bytes,
            "flows": self.flows,
            "ecn_percent": round(self.ecn_up_to * 100),
        }
