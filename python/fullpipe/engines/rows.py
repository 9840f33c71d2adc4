"""Links for engines that run a kernel: refuses unsupported features, and turns traces into steps
of rate and delay that htb and netem can follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.plan.plan import Link, Plan
from fullpipe.scenario import link_traces

#: A step's rate is the trace's mean over this interval. Each change costs the guest about 50 us of
#: CPU time; at a shorter interval an opportunity is a single packet anyway.
RATE_BIN_MS = 20
_ETHERNET_BYTES = 14

#: act_police counts a bucket in 32 bits of 64 ns (include/net/pkt_sched.h, PSCHED_SHIFT).
_MOST_BUCKET_S = 274


def refuse_links(plan: Plan, engine: str) -> None:
    """Raises UserError for links that htb and netem cannot emulate. Frames of a kernel's simulated
    radios (mac80211_hwsim) take no time on the air."""
    for link in plan.get("links", []):
        if (kind := link["medium"]["kind"]) != "wire":
            raise UserError(f"{kind}: only --engine sim has links of this kind, not {engine}")
    for index, link, direction, wire in _directions(plan):
        impairments = wire.get("impairments") or {}
        refused = {
            "gemodel.good": (impairments.get("gemodel") or {}).get("mean_ns"),
            "wifi_jitter": impairments.get("wifi_jitter_ns"),
            "hold.packets": (impairments.get("hold") or {}).get("packets"),
            "loss_marks": link["name"] != "path" and (wire["loss"] or {}).get("ecn"),
        }
        prefix = "" if direction == "forward" else "reverse."
        for key, value in refused.items():
            if value:
                raise UserError(
                    f"link.{index}.{prefix}{key}: for --engine sim; {engine} builds links of htb "
                    "and netem, which have no such thing"
                )
        policer = impairments.get("policer")
        if policer and 8 * policer["burst_bytes"] > _MOST_BUCKET_S * policer["rate_bps"]:
            raise UserError(
                f"link.{index}.{prefix}policer.burst: a bucket of {engine} holds at most "
                f"{_MOST_BUCKET_S} s of its rate"
            )
        if overhead := wire.get("overhead"):
            _refuse_overhead(f"link.{index}", overhead, engine)
        if release := wire["qdisc"]["aqm"].get("kernel"):
            raise UserError(
                f"qdisc_options.kernel: {release} is for --engine sim; {engine} has the queue "
                "disciplines of its own kernel (--kernel chooses one)"
            )


def _refuse_overhead(where: str, overhead: dict[str, Any], engine: str) -> None:
    """Raises UserError for a link layer that htb cannot count (psched_l2t_ns())."""
    if overhead["framing"] == "ptm":
        raise UserError(f'{where}.framing: {engine} has no "ptm": htb knows cells of ATM only')
    if (overhead["bytes"] or _ETHERNET_BYTES) < _ETHERNET_BYTES:
        raise UserError(
            f"{where}.overhead: {overhead['bytes']}: {engine} has at least {_ETHERNET_BYTES}: htb "
            "adds to Ethernet frames"
        )


def refuse_rows(plan: Plan) -> None:
    """Raises UserError if a plan has links although the network between two hosts is real."""
    if len(plan["links"]) > 1 or plan["links"][0]["name"] != "path":
        raise UserError("link: a real network has its own; leave it out, or run without --peer")


def with_steps(plan: Plan) -> Plan:
    """The plan with traces as steps of rates and delays. Raises UserError if a trace file changed
    after the plan was made."""
    if not any(wire.keys() & {"rate_trace", "delay_trace"} for *_, wire in _directions(plan)):
        return plan
    link_traces.verify(plan)
    end_ns = plan["duration_ns"]
    links = []
    for link in plan["links"]:
        medium = dict(link["medium"])
        for direction in ("forward", "reverse"):
            wire = dict(medium[direction])
            rate, delay = wire.pop("rate_trace", None), wire.pop("delay_trace", None)
            if rate:
                wire["rate_steps"] = _native.traces.rate_steps(rate["path"], RATE_BIN_MS, end_ns)
            if delay:
                wire["delay_steps"] = _native.traces.delays(delay["path"], end_ns)
            medium[direction] = wire
        links.append(Link(name=link["name"], medium=medium))
    return {**plan, "links": links}


def qdiscs(plan: Plan) -> list[str]:
    """Kinds of the queue disciplines of all links."""
    return [wire["qdisc"]["aqm"]["kind"] for *_, wire in _directions(plan)]


def has_policer(plan: Plan) -> bool:
    """Whether any link polices."""
    return any((wire.get("impairments") or {}).get("policer") for *_, wire in _directions(plan))


def _directions(plan: Plan) -> Iterator[tuple[int, Any, str, Any]]:
    for index, link in enumerate(plan["links"]):
        for direction in ("forward", "reverse"):
            if direction in link["medium"]:
                yield index, link, direction, link["medium"][direction]
