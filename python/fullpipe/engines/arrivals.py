"""Traffic for engines that run a kernel: refuses what they cannot run, and draws the flows of every
group here, so that they run the same flows as the simulator.
"""

from __future__ import annotations

import json
from typing import Any

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.plan.plan import Plan
from fullpipe.scenario.traffic.traces import traces_of

#: The most flows of `[[flow]]`, whose sockets the agent looks at in every sample.
MAX_LONG_FLOWS = 1000
#: The most flows of one group. Each costs a kernel two sockets; the simulator takes more.
MAX_FLOWS = 200_000
#: The most chunks of one group whose flows pause.
MAX_CHUNKS = 1_000_000


def refuse_many_flows(plan: Plan, name: str) -> None:
    """Raises UserError for more long flows than a kernel is to have."""
    if (flows := len(plan["flows"])) > MAX_LONG_FLOWS:
        raise UserError(
            f"flow: {flows} flows in all, at most {MAX_LONG_FLOWS} with --engine {name}; "
            "--engine sim takes more"
        )


def with_arrivals(plan: Plan) -> Plan:
    """The plan with every traffic group replaced by its list of flows.

    Raises UserError if a trace cannot be read or there are too many flows."""
    if not plan.get("traffic"):
        return plan
    traces, text = traces_of(plan), json.dumps(plan)
    groups = []
    for index, group in enumerate(plan["traffic"]):
        trace = traces.get(group["source"].get("sha256"))
        try:
            arrivals = _native.traffic.arrivals(text, index, trace, MAX_FLOWS)
        except ValueError as error:
            raise UserError(f"traffic.{index}: {error}; engines with a kernel take fewer") from None
        source: dict[str, Any] = {
            "kind": "listed",
            "flows": [(at_ns, size) for at_ns, size, _ in arrivals],
        }
        if any(chunks for _, _, chunks in arrivals):
            source["chunks"] = [chunks or [(0, size)] for _, size, chunks in arrivals]
            if (count := sum(map(len, source["chunks"]))) > MAX_CHUNKS:
                raise UserError(
                    f"traffic.{index}: {count} chunks; engines with a kernel take {MAX_CHUNKS}"
                )
        groups.append({**group, "source": source})
    return {**plan, "traffic": groups}
