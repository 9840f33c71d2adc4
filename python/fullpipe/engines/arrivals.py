"""Traffic for engines that run a kernel: what they cannot run is refused, and the flows of every
group are drawn here, once, so that they see the very flows that the simulator sees.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.scenario.traffic.traces import traces_of

#: Of one group. Each costs a kernel two sockets; more belong in the simulator.
MAX_FLOWS = 200_000
#: Of one group, where its flows pause.
MAX_CHUNKS = 1_000_000


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
            found = _native.traffic.arrivals(text, index, trace, MAX_FLOWS)
        except ValueError as error:
            raise UserError(f"traffic.{index}: {error}; engines with a kernel take fewer") from None
        source: dict[str, Any] = {
            "kind": "listed",
            "flows": [(at_ns, size) for at_ns, size, _ in found],
        }
        if any(chunks for _, _, chunks in found):
            source["chunks"] = [chunks or [(0, size)] for _, size, chunks in found]
            if (count := sum(map(len, source["chunks"]))) > MAX_CHUNKS:
                raise UserError(
                    f"traffic.{index}: {count} chunks; engines with a kernel take {MAX_CHUNKS}"
                )
        groups.append({**group, "source": source})
    return {**plan, "traffic": groups}
