"""Which queues of a plan the data goes through, and what their links can carry. Knows plans, and no
recording."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from fullpipe import _native
from fullpipe.base.packets import ACK_BYTES, wire_bytes
from fullpipe.scenario import link_traces

Direction = Literal["forward", "reverse"]
_MTU_BYTES = 1500
DIRECTIONS: tuple[Direction, Direction] = ("forward", "reverse")


class Capacity(NamedTuple):
    """What one direction of a link can carry of full packets: rates from times on as (s, bit/s), or
    the path of a trace of delivery opportunities. Neither: no limit, or none that the plan tells.

    `packet_cost`: of a link whose layer adds bytes to packets, the bytes of a full one, and what
    each byte that a packet lacks of it costs all the same."""

    rates: tuple[tuple[float, float], ...] = ()
    trace: str | None = None
    packet_cost: tuple[float, float] | None = None

    @property
    def is_constant(self) -> bool:
        """Whether it is one rate."""
        return len(self.rates) == 1


class Bottleneck(NamedTuple):
    """The queue that data of one direction goes through. `rate_bps`: at the start, the mean of a
    trace; None where it is not limited, or not known; `qdisc`: as the plan has it; `policed_bps`:
    of a policer before it."""

    queue: str
    rate_bps: float | None
    qdisc: Mapping[str, Any]
    capacity: Capacity
    policed_bps: float | None = None


def queue_name(link: str, direction: str) -> str:
    """What a link's queue of one direction is called in `queue_samples`
    (crates/fullpipe-plan/src/links.rs)."""
    return direction if link == "path" else f"{link}.{direction}"


def link_rates_bps(link: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Rates of a plan's link, forward and reverse, at the start; None: not limited."""
    forward, reverse = (_wire(link, direction).get("rate_bps") for direction in DIRECTIONS)
    return forward, reverse


def link_capacity(
    link: Mapping[str, Any], direction: Direction, mtu_bytes: int = _MTU_BYTES
) -> Capacity:
    """What a plan's link can carry in one direction, in full packets of this MTU. It is not known
    of Wi-Fi, of CAKE that sets its rate by what arrives, and of a trace whose file is no longer the
    one of the plan."""
    return _capacity(_wire(link, direction), mtu_bytes)


def policed_bps(link: Mapping[str, Any], direction: Direction) -> float | None:
    """What a policer of a plan's link lets through in one direction; None without one."""
    policer = (_wire(link, direction).get("impairments") or {}).get("policer")
    return float(policer["rate_bps"]) if policer else None


def bottleneck(plan: Mapping[str, Any]) -> str:
    """The link that a plan's `path` is about: the slowest of the row, of equals the first."""
    slowest = _slowest(plan, "forward")
    return str(slowest["name"]) if slowest else "path"


def bottleneck_of(plan: Mapping[str, Any], direction: Direction) -> Bottleneck:
    """The slowest queue of a plan in one direction, of equals the first; what the plan's `path`
    says where no link has a rate."""
    slowest = _slowest(plan, direction)
    if slowest is None:
        path, prefix = plan.get("path") or {}, "reverse_" if direction == "reverse" else ""
        keys: dict[str, Any] = {"rate_bps": None, "qdisc": {}}
        wire: Mapping[str, Any] = {
            k: path.get(f"{prefix}{k}", default) for k, default in keys.items()
        }
        name = bottleneck(plan)
    else:
        wire, name = _wire(slowest, direction), str(slowest["name"])
    rate_bps = float(wire["rate_bps"]) if wire["rate_bps"] else None
    policed = None if slowest is None else policed_bps(slowest, direction)
    queue = queue_name(name, direction)
    mtu_bytes = (plan.get("path") or {}).get("mtu_bytes", _MTU_BYTES)
    return Bottleneck(queue, rate_bps, wire["qdisc"], _capacity(wire, mtu_bytes), policed)


def data_directions(plan: Mapping[str, Any], flow_directions: Iterable[str]) -> list[Direction]:
    """In which directions a plan's data goes, with flows of these directions; datagrams count where
    there is nothing else."""
    named = {*flow_directions, *[str(group["direction"]) for group in plan.get("traffic", ())]}
    if plan.get("pages"):
        named.add("down")
    if not named:
        named = {str(stream["direction"]) for stream in plan.get("datagrams", ())}
    directions: list[Direction] = ["forward"] if "up" in named or "down" not in named else []
    return [*directions, "reverse"] if "down" in named else directions


def main_queue(plan: Mapping[str, Any], flow_directions: Iterable[str]) -> Bottleneck:
    """The queue that metrics are about: the reverse one where everything is a download."""
    return bottleneck_of(plan, data_directions(plan, flow_directions)[0])


def _wire(link: Mapping[str, Any], direction: Direction) -> Mapping[str, Any]:
    """One direction of a link; empty where it is none of a wire."""
    return link["medium"].get(direction) or {}


def _capacity(wire: Mapping[str, Any], mtu_bytes: int) -> Capacity:
    rate_bps, trace = wire.get("rate_bps"), wire.get("rate_trace")
    aqm = (wire.get("qdisc") or {}).get("aqm", {})
    if not rate_bps or aqm.get("autorate_ingress"):
        return Capacity()
    if trace:
        try:
            rate_trace = link_traces.rate_trace(trace["path"])
        except ValueError:
            return Capacity()
        return (
            Capacity(trace=rate_trace.path) if rate_trace.sha256 == trace["sha256"] else Capacity()
        )
    steps = [(at_ns / 1e9, float(bps)) for at_ns, bps in wire.get("rate_steps", ())]
    rates = ((0.0, float(rate_bps)), *steps)
    layer = _layer(wire)
    if layer is None:
        return Capacity(rates)
    full_bytes = wire_bytes(mtu_bytes)
    part = full_bytes / _on_link(full_bytes, layer)
    of_ack_bytes = part * _on_link(ACK_BYTES, layer)
    cost = (of_ack_bytes - ACK_BYTES) / (full_bytes - ACK_BYTES)
    return Capacity(
        tuple((at_s, part * bps) for at_s, bps in rates), packet_cost=(float(full_bytes), cost)
    )


def _layer(wire: Mapping[str, Any]) -> dict[str, Any] | None:
    """The link layer that a direction's shaper counts, or its discipline where that shapes (JSON
    of `Overhead` of crates/fullpipe-net/src/link/framing.rs); None where packets are counted as
    they are."""
    layer: dict[str, Any] | None = wire.get("overhead")
    aqm = (wire.get("qdisc") or {}).get("aqm", {})
    if layer is None and aqm.get("shapes", True):
        layer = {
            "bytes": aqm.get("overhead_bytes"),
            "mpu_bytes": aqm.get("mpu_bytes", 0),
            "framing": aqm.get("framing", "none"),
        }
    is_plain = layer == {"bytes": None, "mpu_bytes": 0, "framing": "none"}
    return None if is_plain else layer


def _on_link(packet_bytes: int, layer: Mapping[str, Any]) -> int:
    return _native.framing.on_link(packet_bytes, json.dumps(layer))


def _slowest(plan: Mapping[str, Any], direction: Direction) -> Mapping[str, Any] | None:
    """The slowest link of a plan's row in one direction, of equals the first; a policer makes its
    link as slow as itself."""
    index, slowest, least_bps = DIRECTIONS.index(direction), None, math.inf
    for link in plan.get("links", []):
        rate_bps = link_rates_bps(link)[index]
        if not rate_bps:
            continue
        rate_bps = min(rate_bps, policed_bps(link, direction) or math.inf)
        if rate_bps < least_bps:
            slowest, least_bps = link, rate_bps
    return slowest
