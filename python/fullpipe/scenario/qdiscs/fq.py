"""Fair queueing: sch_fq."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fullpipe.scenario.fields import Time
from fullpipe.scenario.host import KernelName
from fullpipe.scenario.qdiscs.options import Options, Port, Size32, set_only


class Fq(Options):
    """Fair queueing by flow (sch_fq)."""

    quantum: Size32 | None = Field(
        None, description="bytes that a flow may send per round; default: two full packets"
    )
    flow_limit: int = Field(100, ge=1, le=10**6, description="packets that one flow may queue")
    ce_threshold: Time | None = Field(
        None, description="packets that leave later than this after they might have left are "
        "marked; default: never"
    )  # fmt: skip
    kernel: KernelName | None = Field(
        None, description="Linux release whose fq it is; default: the newest; before 6.7 it has no "
        "bands, behind which new flows wait"
    )  # fmt: skip

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "quantum_bytes": self.quantum or 2 * port.packet_bytes,
            "flow_limit_packets": self.flow_limit,
            **set_only(ce_threshold_ns=self.ce_threshold, kernel=self.kernel),
        }
