"""What a user may write in `[[traffic]]`, and the group of the plan that it becomes
(crates/fullpipe-plan/src/traffic.rs)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from fullpipe.base.errors import UserError
from fullpipe.scenario.fields import Dscp, Rate, Section, Size, Time
from fullpipe.scenario.traffic import sizes

#: Name of the generated trace (crates/fullpipe-workload/src/backbone.rs).
MAWI = "mawi"
#: Of one group; each is a host.
MAX_SENDERS = 256
#: A trace is held in memory while it runs.
MAX_ARRIVALS_PER_S = 10**7
#: Of one group; each has a row every `sample_interval`.
MAX_SAMPLED = 1000


class Traffic(Section):
    """Flows that come and go, by the hundred thousand: drawn (`load` or `flows_per_s`, and
    `sizes`), or those of a `trace`. Tables hold one row a flow."""

    cc: str = Field(min_length=1, max_length=500, description="congestion control, as of a flow")
    name: str | None = Field(
        None, min_length=1, max_length=60, pattern=r"^[A-Za-z0-9._+:-]+$",
        description="name in tables and plots; the congestion control and a number",
    )  # fmt: skip
    direction: Literal["up", "down"] = Field("up", description="up: through the bottleneck")
    load: float | None = Field(
        None, gt=0, le=10, allow_inf_nan=False, description="share of the bottleneck's rate that "
        "the flows need, headers included; the rate at which they come follows from it"
    )  # fmt: skip
    flows_per_s: float | None = Field(
        None, gt=0, le=MAX_ARRIVALS_PER_S, allow_inf_nan=False, description="how many come a second"
    )
    arrivals: Literal["poisson", "lognormal"] = Field(
        "poisson", description="shape of the intervals between them"
    )
    sigma: float = Field(
        1.0, gt=0, le=5, allow_inf_nan=False,
        description="lognormal: deviation of an interval's logarithm",
    )  # fmt: skip
    sizes: str | None = Field(
        None, max_length=1000, description="what each sends: a size such as 100KB, websearch, vl2, "
        "pareto, or a CSV file: of sizes in bytes, each as likely, or of sizes and the share of "
        "flows that are no larger"
    )  # fmt: skip
    pareto_shape: float = Field(
        1.2, ge=0.1, le=10, allow_inf_nan=False, description="pareto: its shape"
    )
    pareto_min: Size = Field(1024, description="pareto: the least size")
    pareto_max: Size = Field(100 * 2**20, description="pareto: the largest")
    trace: str | None = Field(
        None, max_length=1000, description="flows of a CSV or Parquet file (docs/traffic.md), or "
        "mawi: made to meet the published facts of bless2025's capture"
    )  # fmt: skip
    configuration: Literal["replay", "collapsed", "synthetic"] = Field(
        "replay", description="trace: replay: its chunks and pauses; collapsed: each flow without "
        "pauses; synthetic: intervals and sizes of collapsed flows, drawn independently"
    )  # fmt: skip
    trace_length: Time = Field(900 * 10**9, description="mawi: how long flows come")
    trace_rate: Rate = Field(1_250_000_000, description="mawi: payload over that time")
    trace_seed: int = Field(
        1, ge=0, le=2**32, description="mawi: other flows; seeds of runs leave them as they are"
    )
    senders: int = Field(
        1, ge=1, le=MAX_SENDERS, description="hosts that send, in turns; each is one of `host`"
    )
    rtts: list[Time] = Field(
        default=[], max_length=MAX_SENDERS, description="base RTTs of the senders, one for all or "
        "one for each; the path's"
    )  # fmt: skip
    start: Time = Field(0, description="when flows begin to come")
    stop: Time | None = Field(None, description="when they cease to; those under way go on")
    ecn: bool | None = Field(None, description="negotiate ECN; as the path says")
    dscp: Dscp = Field(0, description="DSCP of their packets, ACKs included")
    station: str | None = Field(
        None, description="with Wi-Fi: the station that its senders are at, by name; the first"
    )
    enter: str | None = Field(None, description="the link where their route begins; the first")
    leave: str | None = Field(None, description="the link where their route ends; the last")
    samples: list[Annotated[int, Field(ge=0, lt=2**32)]] = Field(
        default=[], max_length=MAX_SAMPLED, description="numbers of flows (0: the first to come) "
        "whose window, RTT and progress are sampled, as those of [[flow]] are"
    )  # fmt: skip

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
                    raise ValueError(f"{key}: a trace has its own; leave out this key or trace")
        elif self.sizes is None:
            raise ValueError("sizes: is missing; or name a trace")
        elif (self.load is None) == (self.flows_per_s is None):
            raise ValueError("load: give either load or flows_per_s")
        if self.pareto_min >= self.pareto_max:
            raise ValueError("pareto_min: must be below pareto_max")
        if self.stop is not None and self.stop <= self.start:
            raise ValueError("stop: must be after start")
        if 0 in self.rtts:
            raise ValueError("rtts: each must be above 0, such as 40ms")
        if len(self.rtts) not in (0, 1, self.senders):
            raise ValueError(
                f"rtts: {len(self.rtts)} for {self.senders} senders; give one, or one for each"
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
            "kind": "backbone", "seed": traffic.trace_seed, "duration_ns": traffic.trace_length,
            "rate_bps": traffic.trace_rate, "configuration": traffic.configuration,
        }  # fmt: skip
    if traffic.trace is not None:
        from fullpipe.scenario.traffic.traces import fingerprint

        return {
            "kind": "file", "file": traffic.trace, "sha256": fingerprint(traffic.trace),
            "configuration": traffic.configuration,
        }  # fmt: skip
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
