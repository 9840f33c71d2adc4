"""What the seed of a run changes in its plan: when flows start, and how long round trips are.

Every other random number is drawn while the plan runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from fullpipe.base import units
from fullpipe.base.packets import wire_bytes


def start_offset_ns(spread_ns: int, seed: int | None, index: int) -> int:
    """How much later the flow of this index starts: uniform in [0, spread]."""
    return _drawn(spread_ns, f"start_spread {seed} {index}")


def rtt_offset_ns(spread_ns: int, seed: int | None) -> int:
    """How much longer all round trips are: uniform in [0, spread]."""
    return _drawn(spread_ns, f"rtt_spread {seed}")


def longer(plan: Mapping[str, Any], more_ns: int) -> dict[str, Any]:
    """The plan with all round trips longer, in reverse direction, where testbeds put delays. Its
    queues stay: a buffer in BDP is one of the scenario's base RTT."""

    def of(entry: Mapping[str, Any]) -> Mapping[str, Any]:
        own_ns = entry["reverse_delay_ns"]  # None: the path's
        return entry if own_ns is None else {**entry, "reverse_delay_ns": own_ns + more_ns}

    if not more_ns:
        return dict(plan)
    changed: dict[str, Any] = {key: of(plan[key]) for key in ("access", "path")}
    changed["flows"] = [of(flow) for flow in plan["flows"]]
    if "traffic" in plan:
        changed["traffic"] = [
            {**group, "senders": [of(sender) for sender in group["senders"]]}
            for group in plan["traffic"]
        ]
    return {**plan, **changed}


def without_seed(
    plan: Mapping[str, Any], start_spread_ns: int, rtt_spread: units.Spread
) -> dict[str, Any]:
    """The plan without its seed and what that drew, so that plans of repetitions are equal."""
    seed = plan.get("seed")
    if rtt_spread.value:
        path = plan["path"]
        spread_ns = rtt_spread.ns(path["rate_bps"], wire_bytes(path["mtu_bytes"]))
        plan = longer(plan, -rtt_offset_ns(spread_ns, seed))
    flows = [
        {**flow, "start_ns": flow["start_ns"] - start_offset_ns(start_spread_ns, seed, index)}
        for index, flow in enumerate(plan.get("flows", []))
    ]
    return {**plan, "seed": None, "flows": flows}


def _drawn(spread_ns: int, purpose: str) -> int:
    """Uniform in [0, spread], from a stream that no other random number shares."""
    if spread_ns == 0:
        return 0
    digest = hashlib.sha256(purpose.encode()).digest()
    return int.from_bytes(digest[:8], "little") % (spread_ns + 1)
