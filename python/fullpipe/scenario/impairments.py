"""What a user may write of a link's damage beside plain loss, and what engines get of it.

docs/paths.md describes the elements. The result of `resolve_damage` is the JSON of
crates/fullpipe-plan/src/damage.rs.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from fullpipe.scenario.fields import Rate, Ratio, Section, Size, Time


class Gemodel(Section):
    """Loss in bursts, by a chain of a good and a bad state: netem's gemodel."""

    p: Ratio = Field(description="from good to bad, with each packet")
    r: Ratio = Field(description="from bad to good; bursts last 1/r packets in the mean")
    loss_bad: Ratio = Field(1.0, description="loss while bad; netem's 1-h")
    loss_good: Ratio = Field(0.0, description="loss while good; netem's 1-k")

    @model_validator(mode="after")
    def _consistent(self) -> Gemodel:
        if self.p + self.r == 0:
            raise ValueError("p: p and r are both 0: the state would never change")
        return self


class Policer(Section):
    """A token bucket that drops what finds too few tokens and queues nothing."""

    rate: Rate = Field(description="at which tokens come, on the wire")
    burst: Size = Field(description="most that gather; one packet at least")


class Hold(Section):
    """Packets wait for one another and leave together, as aggregated ACKs and slots do."""

    time: Time = Field(description="how long the first of them waits")
    packets: int | None = Field(
        None, ge=1, le=100_000, description="they leave when so many wait; any number"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Hold:
        if self.time == 0:
            raise ValueError("time: must be above 0, such as 5ms")
        return self


class DamageKeys(Section):
    """The keys of damage that a link's way has."""

    gemodel: Gemodel | None = None
    duplicate: Ratio = Field(0.0, description="packets that come twice, before the queue")
    duplicate_correlation: Ratio = Field(0.0, description="netem's correlation of that")
    policer: Policer | None = None
    hold: Hold | None = None
    reorder: Ratio = Field(
        0.0, description="packets that leave without the link's delay, and overtake others"
    )
    reorder_correlation: Ratio = Field(0.0, description="netem's correlation of that")
    reorder_gap: int = Field(
        1, ge=1, le=1_000_000, description="of so many packets at most one overtakes"
    )
    wifi_jitter: Time | None = Field(
        None, description="extra delays as picoquic models Wi-Fi, of this mean, about; from 1ms"
    )


def resolve_damage(keys: DamageKeys) -> dict[str, Any] | None:
    """What the plan holds; None where nothing is asked for."""
    found: dict[str, Any] = {}
    if keys.gemodel:
        found["gemodel"] = {
            "to_bad_ppm": _ppm(keys.gemodel.p),
            "to_good_ppm": _ppm(keys.gemodel.r),
            "loss_bad_ppm": _ppm(keys.gemodel.loss_bad),
            "loss_good_ppm": _ppm(keys.gemodel.loss_good),
        }
    if keys.duplicate:
        found["duplicate"] = _chance(keys.duplicate, keys.duplicate_correlation)
    if keys.policer:
        found["policer"] = {
            "rate_bps": keys.policer.rate, "burst_bytes": keys.policer.burst
        }  # fmt: skip
    if keys.hold:
        found["hold"] = {"time_ns": keys.hold.time, "packets": keys.hold.packets}
    if keys.wifi_jitter is not None:
        found["wifi_jitter_ns"] = keys.wifi_jitter
    if keys.reorder:
        chance = _chance(keys.reorder, keys.reorder_correlation)
        found["reorder"] = {"chance": chance, "gap": keys.reorder_gap}
    return found or None


def check_damage(keys: DamageKeys, delay_ns: int, mtu_bytes: int) -> None:
    """Raises ValueError, beginning with the key, for damage that cannot be."""
    for key in ("duplicate", "reorder"):
        if getattr(keys, f"{key}_correlation") and not getattr(keys, key):
            raise ValueError(f"{key}_correlation: needs {key} above 0")
    if keys.reorder and delay_ns == 0:
        raise ValueError("reorder: needs a delay, which the overtaking packets leave out")
    if keys.reorder_gap > 1 and not keys.reorder:
        raise ValueError("reorder_gap: needs reorder above 0")
    if keys.policer and keys.policer.burst < mtu_bytes + 14:
        raise ValueError(f"policer.burst: must hold a packet, {mtu_bytes + 14}B on the wire")
    if keys.wifi_jitter is not None and not 10**6 <= keys.wifi_jitter <= 85 * 10**6:
        raise ValueError("wifi_jitter: must be from 1ms to 85ms")


def _chance(probability: float, correlation: float) -> dict[str, int]:
    return {"probability_ppm": _ppm(probability), "correlation_ppm": _ppm(correlation)}


def _ppm(share: float) -> int:
    return round(share * 1e6)
