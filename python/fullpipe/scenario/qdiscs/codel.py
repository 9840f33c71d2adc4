"""Controlled delay: sch_codel (RFC 8289)."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fullpipe.scenario.fields import Duration
from fullpipe.scenario.qdiscs.options import MS, Options, Port


class Codel(Options):
    """Controlled delay (sch_codel, RFC 8289)."""

    target: Duration = Field(5 * MS, description="acceptable standing queueing delay")
    interval: Duration = Field(
        100 * MS, description="how long the delay must exceed the target before packets are dropped"
    )

    def parameters(self, port: Port) -> dict[str, Any]:
        return {"target_ns": self.target, "interval_ns": self.interval, "ecn": port.ecn}
