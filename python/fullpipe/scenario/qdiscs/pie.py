"""Proportional integral controller enhanced: sch_pie (RFC 8033)."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from fullpipe.scenario.fields import Duration
from fullpipe.scenario.qdiscs.options import MS, Options, Port, Update

#: The kernel counts a gain in sixteenths of a Hz.
_GAIN_UNITS_PER_HZ = 16


class Pie(Options):
    """Proportional integral controller enhanced (sch_pie, RFC 8033)."""

    target: Duration = Field(15 * MS, description="acceptable queueing delay")
    update: Update = Field(
        15 * MS, description="what the timer of the drop probability is set to; the kernel counts "
        "in ticks of 4ms and never fires early, so 15ms is 20ms"
    )  # fmt: skip
    alpha: float = Field(0.125, ge=0, le=100, description="weight of the delay, in Hz")
    beta: float = Field(1.25, ge=0, le=100, description="weight of the delay's change, in Hz")
    byte_mode: bool = Field(False, description="drops small packets less often")
    departure_rate: bool = Field(
        False, description="estimates the delay from the departure rate instead of timestamps"
    )

    def parameters(self, port: Port) -> dict[str, Any]:
        return {
            "target_ns": self.target,
            "update_ns": self.update,
            "alpha": round(self.alpha * _GAIN_UNITS_PER_HZ),
            "beta": round(self.beta * _GAIN_UNITS_PER_HZ),
            "ecn": port.ecn,
            "byte_mode": self.byte_mode,
            "rate_estimator": self.departure_rate,
        }
