"""Coupled dual queue for L4S: sch_dualpi2 (RFC 9332)."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fullpipe.scenario.fields import Duration, Ratio, Time
from fullpipe.scenario.qdiscs.options import MS, Options, Port, Update, set_only

#: The kernel counts a gain in 256ths of a Hz.
_GAIN_UNITS_PER_HZ = 256


class DualPi2(Options):
    """Coupled dual queue for L4S (sch_dualpi2, RFC 9332)."""

    target: Duration = Field(15 * MS, description="acceptable queueing delay of classic packets")
    update: Update = Field(16 * MS, description="interval at which the base probability is updated")
    alpha: float = Field(0.16, ge=0, le=100, description="weight of the delay, in Hz")
    beta: float = Field(3.2, ge=0, le=100, description="weight of the delay's change, in Hz")
    step: Time = Field(1 * MS, description="L4S packets that queued for longer are marked")
    min_qlen_step: int = Field(
        0, ge=0, le=10**6, description="packets in the L queue below which an arriving packet is "
        "not held to `step`"
    )  # fmt: skip
    coupling: int = Field(
        2, ge=1, le=255, description="the base probability times this marks L4S packets"
    )
    classic_share: Ratio = Field(
        0.1, description="share of the rate that classic packets get while both kinds queue"
    )
    drop_on_overload: bool = Field(True, description="drops L4S packets too in overload")

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "target_ns": self.target,
            "update_ns": self.update,
            "alpha": round(self.alpha * _GAIN_UNITS_PER_HZ),
            "beta": round(self.beta * _GAIN_UNITS_PER_HZ),
            "step_ns": self.step,
            "coupling": self.coupling,
            "classic_percent": round(self.classic_share * 100),
            "drop_overload": self.drop_on_overload,
            **set_only(min_qlen_step_packets=self.min_qlen_step or None),
        }
