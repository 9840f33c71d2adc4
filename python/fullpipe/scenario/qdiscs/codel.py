"""Controlled delay: sch_codel (RFC 8289)."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fullpipe.scenario.fields import Duration, Time
from fullpipe.scenario.host import KernelName
from fullpipe.scenario.qdiscs.options import MS, Options, Port, set_only


class Codel(Options):
    """Controlled delay (sch_codel, RFC 8289)."""

    target: Duration = Field(5 * MS, description="acceptable standing queueing delay")
    interval: Duration = Field(
        100 * MS, description="how long the delay must exceed the target before packets are dropped"
    )
    ce_threshold: Time | None = Field(
        None, description="packets that waited longer are marked if they can carry a mark, with or "
        "without path.ecn; default: never"
    )  # fmt: skip
    kernel: KernelName | None = Field(
        None, description="Linux release whose CoDel it is; default: the newest; those from before "
        "March 2026 drop packets of flows that pause"
    )  # fmt: skip

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "target_ns": self.target,
            "interval_ns": self.interval,
            "ecn": port.ecn,
            **set_only(ce_threshold_ns=self.ce_threshold, kernel=self.kernel),
        }
