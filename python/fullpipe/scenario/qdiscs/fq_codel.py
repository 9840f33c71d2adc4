"""Fair queueing with CoDel in each queue: sch_fq_codel (RFC 8290)."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fullpipe.scenario.fields import Size
from fullpipe.scenario.qdiscs.codel import Codel
from fullpipe.scenario.qdiscs.options import Port, Size32


class FqCodel(Codel):
    """Fair queueing with CoDel in each queue (sch_fq_codel, RFC 8290)."""

    quantum: Size32 | None = Field(
        None, description="bytes that a flow may send per round; default: one full packet"
    )
    flows: int = Field(1024, ge=1, le=65536, description="number of queues")
    memory_limit: Size = Field(32 * 2**20, description="kernel memory that all queues may take")

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            **super().parameters(port),
            "quantum_bytes": self.quantum or port.packet_bytes,
            "flows": self.flows,
            "memory_limit_bytes": self.memory_limit,
        }
