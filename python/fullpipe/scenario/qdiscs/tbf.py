"""Token bucket filter over a FIFO: sch_tbf."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fullpipe.scenario.qdiscs.options import Options, Port, Size32

#: Of a kernel's timer, in each of which tbf must be able to send (tc-tbf(8)).
_TICKS_PER_S = 250


class Tbf(Options):
    """Token bucket filter over a FIFO (sch_tbf)."""

    burst: Size32 | None = Field(
        None, description="size of the bucket; default: what the rate carries in 4ms, at least two "
        "full packets"
    )  # fmt: skip

    @property
    def keeps_rate(self) -> bool:
        return True

    def parameters(self, port: Port) -> dict[str, Any]:
        least = max(2 * port.packet_bytes, port.rate_bps // 8 // _TICKS_PER_S)
        return {"burst_bytes": self.burst or least}
