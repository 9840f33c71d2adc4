"""`[[traffic]]`: flows that come and go, and what engines get of them
(crates/fullpipe-plan/src/traffic.rs)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from fullpipe.base.errors import UserError
from fullpipe.scenario.fields import Duration, Rate, Size, Time
from fullpipe.scenario.route import Routed
from fullpipe.scenario.traffic import sizes

#: Name of the generated trace (crates/fullpipe-workload/src/backbone.rs).
MAWI = "mawi"
#: Of one group; each is a host.
MAX_SENDERS = 256
MAX_ARRIVALS_PER_S = 10**7
#: Of one group; each has a row every `sample_interval`.
MAX_SAMPLED = 1000


class Traffic(Routed):
    """Flows that come and go, by the hundred thousand: drawn at random (`load` or `flows_per_s`,
    and `sizes`), or those of a `trace`. Tables hold one row for each flow."""

    cc: str = Field(min_length=1, max_length=500, description="congestion control, as of a flow")
    direction: Literal["up", "down"] = Field(
        "up", description="direction of the data; up: forward, down: reverse"
    )
    load: float | None = Field(
        None,
        gt=0,
        le=10,
        allow_inf_nan=False,
        description="share of the bottleneck's rate that the flows need, headers included; the "
        "arrival rate follows from it",
    )
    flows_per_s: float | None = Field(
        None,
        gt=0,
        le=MAX_ARRIVALS_PER_S,
        allow_inf_nan=False,
        description="arrival rate, in flows per second",
    )
    arrivals: Literal["poisson", "lognormal"] = Field(
        "poisson",
        description="distribution of the intervals between arrivals; poisson: exponential",
    )
    sigma: float = Field(
        1.0,
        gt=0,
        le=5,
        allow_inf_nan=False,
        description="lognormal: standard deviation of an interval's logarithm",
    )
    sizes: str | None = Field(
        None,
        max_length=1000,
        description="flow sizes: one such as 100KB; websearch, vl2 or pareto; or a CSV file of "
        "equally likely sizes in bytes, or of sizes and the share of flows that are no larger",
    )
    pareto_shape: float = Field(
        1.2, ge=0.1, le=10, allow_inf_nan=False, description="pareto: shape parameter"
    )
    pareto_min: Size = Field(1024, description="pareto: smallest size")
    pareto_max: Size = Field(100 * 2**20, description="pareto: largest size")
    trace: str | None = Field(
        None,
        max_length=1000,
        description="file of flows, CSV or Parquet; or mawi: generated to match the published "
        "figures of bless2025's capture",
    )
    configuration: Literal["replay", "collapsed", "synthetic"] = Field(
        "replay",
        description="how a trace is used; replay: chunks and pauses as they are; collapsed: each "
        "flow without its pauses; synthetic: intervals and sizes of collapsed flows, drawn "
        "independently",
    )
    trace_length: Time = Field(900 * 10**9, description="mawi: time over which flows arrive")
    trace_rate: Rate = Field(1_250_000_000, description="mawi: mean rate of the payload")
    trace_seed: int = Field(
        1,
        ge=0,
        le=2**32,
        description="mawi: seed of the trace, which the seed of a run does not change",
    )
    senders: int = Field(1, ge=1, le=MAX_SENDERS, description="hosts that take turns in sending")
    rtts: list[Duration] = Field(
        [],
        max_length=MAX_SENDERS,
        description="base RTTs of the senders, one for all or one each; default: the path's",
    )
    stop: Time | None = Field(
        None, description="when arrivals stop; flows that have started go on; default: at the end"
    )
    ecn: bool | None = Field(None, description="negotiates ECN; default: as the path says")
    samples: list[Annotated[int, Field(ge=0, lt=2**32)]] = Field(
        [],
        max_length=MAX_SAMPLED,
        description="numbers of the flows, 0 the first to arrive, whose window, RTT and progress "
        "are sampled like those of [[flow]]",
    )

    @field_validator("sizes")
    @classmethod
    def _known_sizes(cls, text: str | None) -> str | None:
        if text is not None:
            sizes.check_name(text)
        return text

    @model_validator(mode="after")
    def _consistent(self) -> Traffic:
        if self.trace is not None:
            for key in ("load", "flows_per_s", "sizes"):
                if getattr(self, key) is not None:
                    raise ValueError(f"{key}: excludes trace, which has its own")
        elif self.sizes is None:
            raise ValueError("sizes: is missing; or name a trace")
        elif (self.load is None) == (self.flows_per_s is None):
            raise ValueError("load: give either load or flows_per_s")
        if self.pareto_min >= self.pareto_max:
            raise ValueError("pareto_min: must be below pareto_max")
        if self.stop is not None and self.stop <= self.start:
            raise ValueError("stop: must be after start")
        if len(self.rtts) not in (0, 1, self.senders):
            raise ValueError(
                f"rtts: {len(self.rtts)} for {self.senders} senders; give one, or one each"
            )
        return self

    def rtt_of(self, sender: int) -> int | None:
        """Base RTT of a sender in ns; None: the path's."""
        if not self.rtts:
            return None
        return self.rtts[sender if len(self.rtts) > 1 else 0]


def resolve_source(traffic: Traffic, rate_bps: int, mtu_bytes: int) -> dict[str, Any]:
    """The group's `source` in the plan; `rate_bps` is that of the bottleneck.

    Raises UserError where a file cannot be read, or what is in it is no distribution or trace."""
    if traffic.trace == MAWI:
        return {
            "kind": "backbone",
            "seed": traffic.trace_seed,
            "duration_ns": traffic.trace_length,
            "rate_bps": traffic.trace_rate,
            "configuration": traffic.configuration,
        }
    if traffic.trace is not None:
        from fullpipe.scenario.traffic.traces import fingerprint

        return {
            "kind": "file",
            "file": traffic.trace,
            "sha256": fingerprint(traffic.trace),
            "configuration": traffic.configuration,
        }
    if traffic.sizes is None:
        raise UserError("sizes: is missing; or name a trace")
    drawn = sizes.resolve(
        traffic.sizes, traffic.pareto_shape, traffic.pareto_min, traffic.pareto_max
    )
    per_s = traffic.flows_per_s
    if per_s is None:
        per_s = (traffic.load or 0) * rate_bps / 8 / sizes.mean_wire_bytes(drawn, mtu_bytes)
    interval_ps = round(1e12 / per_s)
    if per_s > MAX_ARRIVALS_PER_S:
        raise UserError(f"load: {per_s:.3g} flows a second; at most {MAX_ARRIVALS_PER_S}")
    shape: dict[str, Any] = {"kind": traffic.arrivals}
    if traffic.arrivals == "lognormal":
        shape["sigma_milli"] = max(1, round(1000 * traffic.sigma))
    return {"kind": "drawn", "arrivals": shape, "mean_interval_ps": interval_ps, "sizes": drawn}
