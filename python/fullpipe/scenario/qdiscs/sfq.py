"""Stochastic fairness queueing: sch_sfq."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from fullpipe.scenario.qdiscs.options import Options, Port, Size32


class Sfq(Options):
    """Stochastic fairness queueing (sch_sfq)."""

    quantum: Size32 | None = Field(
        None, description="bytes that a flow may send per round; default: one full packet"
    )
    flows: int = Field(128, ge=1, le=65536, description="flows that may queue at once")
    flow_limit: int = Field(127, ge=1, le=10**6, description="packets that one flow may queue")
    buckets: int = Field(1024, ge=1, le=65536, description="hash buckets, a power of two")
    head_drop: bool = Field(False, description="a full flow loses its oldest packet")

    @model_validator(mode="after")
    def _hashable(self) -> Sfq:
        if self.buckets & (self.buckets - 1):
            raise ValueError("buckets: must be a power of two, such as 1024")
        return self

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "quantum_bytes": self.quantum or port.packet_bytes,
            "flows": self.flows,
            "depth_packets": self.flow_limit,
            "buckets": self.buckets,
            "head_drop": self.head_drop,
        }
