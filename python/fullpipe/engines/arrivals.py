"""Traffic for engines that run a kernel: what they cannot run is refused, and the flows of every
group are drawn here, once, so that they see the very flows that the simulator sees.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fullpipe import _native
from fullpipe.errors import UserError
from fullpipe.traffic.traces import traces_of

#: Of one group. Each costs a kernel two sockets; more belong in the simulator.
MAX_FLOWS = 200_000


def refuse_traffic(plan: Mapping[str, Any], engine: str) -> None:
    """Raises UserError for traffic whose flows pause."""
    for index, group in enumerate(plan.get("traffic", [])):
        if group["source"].get("configuration") == "replay":
            raise UserError(
                f"traffic.{index}.configuration: replay, with its pauses, is for --engine sim so "
                f"far; {engine} runs collapsed and synthetic"
            )


def with_arrivals(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """The plan with lists of flows in the place of what they are drawn from.

    Raises UserError where a trace cannot be read or flows are too many."""
    if not plan.get("traffic"):
        return plan
    traces, text = traces_of(plan), json.dumps(plan)
    groups = []
    for index, group in enumerate(plan["traffic"]):
        trace = traces.get(group["source"].get("sha256"))
        try:
            flows = _native.traffic.arrivals(text, index, trace, MAX_FLOWS)
        except ValueError as error:
            raise UserError(f"traffic.{index}: {error}; engines with a kernel take fewer") from None
        groups.append({**group, "source": {"kind": "listed", "flows": flows}})
    return {**plan, "traffic": groups}
