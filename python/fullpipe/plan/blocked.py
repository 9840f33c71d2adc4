"""What of a plan keeps a flow from delivering anything. Knows plans, and no recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fullpipe.base.packets import wire_bytes
from fullpipe.plan.bottleneck import DIRECTIONS, Direction

_ALWAYS_PPM = 1_000_000


def blocked_flows(plan: Mapping[str, Any]) -> dict[int, str]:
    """Flow -> why none of its data can arrive; without those of which the plan tells nothing."""
    path = plan.get("path") or {}
    packet_bytes = wire_bytes(int(path.get("mtu_bytes", 1500)))
    links = plan.get("links", [])
    causes = {
        (index, direction): next(_causes(link, direction, packet_bytes), "")
        for index, link in enumerate(links)
        for direction in DIRECTIONS
    }
    if not any(causes.values()) and not plan.get("access"):
        return {}
    blocked = {}
    for index, flow in enumerate(plan.get("flows", [])):
        is_up = flow["direction"] == "up"
        route = flow.get("route") or {"enter": 0, "leave": len(links) - 1}
        way: Direction = "forward" if is_up else "reverse"
        passed = [causes[link, way] for link in range(route["enter"], route["leave"] + 1)]
        passed.append(_access_cause(plan.get("access") or {}, way))
        cause = next(filter(None, passed), "")
        if cause:
            blocked[index] = cause
    return blocked


def _causes(link: Mapping[str, Any], direction: Direction, packet_bytes: int) -> Iterator[str]:
    """Why one direction of a link passes no packet of this size."""
    wire = link["medium"].get(direction)
    if not wire:
        return
    name = f"{link['name']} ({direction})"
    qdisc = wire.get("qdisc") or {}
    limit_bytes, limit_packets = qdisc.get("limit_bytes"), qdisc.get("limit_packets")
    if limit_bytes is not None and limit_bytes < packet_bytes:
        yield (
            f"the buffer of {name} holds {limit_bytes} B, less than a packet of {packet_bytes} B"
        )
    if limit_packets == 0:
        yield f"the buffer of {name} holds no packet"
    if _is_certain(wire.get("loss")):
        yield f"random loss of {name} takes all packets"
    impairments = wire.get("impairments") or {}
    policer = impairments.get("policer")
    if policer and policer["burst_bytes"] < packet_bytes:
        yield (
            f"the policer of {name} passes {policer['burst_bytes']} B at once, less than a packet "
            f"of {packet_bytes} B"
        )


def _access_cause(access: Mapping[str, Any], direction: Direction) -> str:
    loss = access.get("loss" if direction == "forward" else "reverse_loss")
    return "random loss takes all packets" if _is_certain(loss) else ""


def _is_certain(loss: Mapping[str, Any] | None) -> bool:
    return loss is not None and loss["probability_ppm"] >= _ALWAYS_PPM
