"""What a link does to packets beside plain loss and delay, and what engines get of it.

docs/reference/links.md describes the elements. The result of `resolve_impairments` is the JSON of
crates/fullpipe-net/src/impair/mod.rs.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from fullpipe.base.packets import wire_bytes
from fullpipe.scenario.delay_distributions import table_of
from fullpipe.scenario.fields import TIME, Duration, Interval, Rate, Ratio, Section, Size


class Gemodel(Section):
    """Bursty loss by a Markov chain with a good and a bad state, which changes with packets (`p`
    and `r`: netem's gemodel) or with time (`good` and `bad`)."""

    p: Ratio | None = Field(
        None, description="probability of going from good to bad, with each packet"
    )
    r: Ratio | None = Field(
        None,
        description="probability of going from bad to good; bad times last 1/r packets on average",
    )
    good: Interval | None = Field(
        None, description="mean duration of good times, instead of p; they are exponential"
    )
    bad: Interval | None = Field(None, description="mean duration of bad times, instead of r")
    loss_bad: Ratio = Field(1.0, description="loss in the bad state; netem's 1-h")
    loss_good: Ratio = Field(0.0, description="loss in the good state; netem's 1-k")

    @model_validator(mode="after")
    def _consistent(self) -> Gemodel:
        times = (self.good, self.bad)
        if times == (None, None):
            for key in ("p", "r"):
                if getattr(self, key) is None:
                    raise ValueError(f"{key}: is missing; write p and r, or good and bad")
            if self.p == self.r == 0:
                raise ValueError("p: p and r are both 0: the state would never change")
            return self
        for key in ("p", "r"):
            if getattr(self, key) is not None:
                raise ValueError(f"{key}: excludes good and bad; p and r are by packet")
        for key in ("good", "bad"):
            if getattr(self, key) is None:
                raise ValueError(f"{key}: is missing, which belongs to the other of good and bad")
        return self

    def planned(self) -> dict[str, Any]:
        """What a plan holds of it (`Params` of crates/fullpipe-net/src/impair/gilbert.rs)."""
        chain: dict[str, Any] = {
            "to_bad_ppm": _ppm(self.p or 0.0),
            "to_good_ppm": _ppm(self.r or 0.0),
            "loss_bad_ppm": _ppm(self.loss_bad),
            "loss_good_ppm": _ppm(self.loss_good),
        }
        if self.good is not None:
            chain["mean_ns"] = [self.good, self.bad]
        return chain


class Policer(Section):
    """A token bucket that drops packets which find too few tokens, and queues none."""

    rate: Rate = Field(description="rate of the tokens, in bits on the wire")
    burst: Size = Field(description="size of the bucket; at least one packet")


class Hold(Section):
    """Packets wait for one another and leave together, as aggregated ACKs and time slots do."""

    time: Duration = Field(description="how long the first packet waits")
    packets: int | None = Field(
        None, ge=1, le=100_000, description="they leave when this many wait; default: any number"
    )


class Impairments(Section):
    """The impairments of one direction of a link."""

    gemodel: Gemodel | None = None
    duplicate: Ratio = Field(
        0.0, description="probability that a packet is duplicated, before the queue"
    )
    duplicate_correlation: Ratio = Field(
        0.0, description="correlation of successive duplications, as netem defines it"
    )
    policer: Policer | None = None
    hold: Hold | None = None
    reorder: Ratio = Field(
        0.0, description="probability that a packet skips the link's delay and overtakes others"
    )
    reorder_correlation: Ratio = Field(
        0.0, description="correlation of successive reorderings, as netem defines it"
    )
    reorder_gap: int = Field(
        1, ge=1, le=1_000_000, description="at most one packet in this many overtakes"
    )
    delay_limit: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="packets that the delay holds at most, as netem's limit does, which is 1000 "
        "where nobody sets it; default: any number",
    )
    delay_jitter: Annotated[int, TIME.between(1, 2_000_000_000)] | None = Field(
        None,
        description="random part of the delay as netem has it: delays about the mean, which "
        "is `delay`; packets overtake",
    )
    delay_distribution: str = Field(
        "uniform",
        min_length=1,
        max_length=4096,
        description="uniform (mean ± delay_jitter), normal, pareto, paretonormal, or a file of "
        "numbers as tc has; relative to the scenario",
    )
    wifi_jitter: Annotated[int, TIME.between(10**6, 85 * 10**6)] | None = Field(
        None, description="random extra delays with about this mean, as picoquic models Wi-Fi"
    )


def resolve_impairments(keys: Impairments) -> dict[str, Any] | None:
    """What engines get; None for no impairments."""
    settings: dict[str, Any] = {}
    if keys.gemodel:
        settings["gemodel"] = keys.gemodel.planned()
    if keys.duplicate:
        settings["duplicate"] = _chance(keys.duplicate, keys.duplicate_correlation)
    if keys.policer:
        settings["policer"] = {"rate_bps": keys.policer.rate, "burst_bytes": keys.policer.burst}
    if keys.hold:
        settings["hold"] = {"time_ns": keys.hold.time, "packets": keys.hold.packets}
    if keys.wifi_jitter is not None:
        settings["wifi_jitter_ns"] = keys.wifi_jitter
    if keys.delay_limit is not None:
        settings["delay_limit_packets"] = keys.delay_limit
    if keys.delay_jitter is not None:
        settings["netem_jitter"] = {
            "jitter_ns": keys.delay_jitter,
            "table": table_of(keys.delay_distribution),
        }
    if keys.reorder:
        chance = _chance(keys.reorder, keys.reorder_correlation)
        settings["reorder"] = {"chance": chance, "gap": keys.reorder_gap}
    return settings or None


def check_impairments(keys: Impairments, delay_ns: int, mtu_bytes: int) -> None:
    """Raises ValueError, beginning with the key, for impairments that contradict each other, the
    delay or the MTU."""
    for key in ("duplicate", "reorder"):
        if getattr(keys, f"{key}_correlation") and not getattr(keys, key):
            raise ValueError(f"{key}_correlation: needs {key} above 0")
    if keys.reorder and delay_ns == 0:
        raise ValueError("reorder: needs a delay, which reordered packets skip")
    if keys.delay_limit is not None and delay_ns == 0:
        raise ValueError("delay_limit: needs a delay, which holds the packets")
    _check_jitter(keys, delay_ns)
    if keys.reorder_gap > 1 and not keys.reorder:
        raise ValueError("reorder_gap: needs reorder above 0")
    if keys.policer and keys.policer.burst < (least := wire_bytes(mtu_bytes)):
        raise ValueError(f"policer.burst: must hold a packet, {least}B on the wire")


def _check_jitter(keys: Impairments, delay_ns: int) -> None:
    if keys.delay_jitter is None:
        if "delay_distribution" in keys.model_fields_set:
            raise ValueError("delay_distribution: needs delay_jitter")
        return
    if delay_ns == 0:
        raise ValueError("delay_jitter: needs a delay, which is its mean")
    for key in ("hold", "wifi_jitter", "delay_steps", "delay_trace"):
        if getattr(keys, key, None):
            raise ValueError(f"delay_jitter: excludes {key}; write two links")
    try:
        table_of(keys.delay_distribution)
    except ValueError as error:
        raise ValueError(f"delay_distribution: {error}") from None


def _chance(probability: float, correlation: float) -> dict[str, int]:
    return {"probability_ppm": _ppm(probability), "correlation_ppm": _ppm(correlation)}


def _ppm(share: float) -> int:
    return round(share * 1e6)
