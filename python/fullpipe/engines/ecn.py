"""ECN that kernels cannot have: plans with it are refused by the engines that run a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.plan.plan import Plan
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

#: The algorithm that responds to marks in proportion and between kernels uses DCTCP's echo of each
#: packet (RFC 8257); and the sets whose packets are ECT whatever `ecn` says.
_L4S, _ALWAYS_ECT = "prague", ("dctcp", "kernel:dctcp")


def refuse_ecn(plan: Plan, name: str) -> None:
    """Raises UserError for ECN that kernels cannot have: they send ECT(0) only, and DualPI2 queues
    every ECT packet of theirs as L4S."""
    wires = [
        link["medium"][direction] for link in plan["links"] for direction in ("forward", "reverse")
    ]
    kinds = [(wire.get("qdisc") or {}).get("aqm", {}).get("kind") for wire in wires]
    is_dual = any(kind and DISCIPLINES[kind].takes_ect_for_l4s for kind in kinds)
    senders: list[tuple[str, Mapping[str, Any]]] = [
        (f"flow.{index}", flow) for index, flow in enumerate(plan["flows"])
    ]
    senders += [(f"page {page['name']}", page) for page in plan.get("pages", [])]
    senders += [(f"traffic {group['name']}", group) for group in plan.get("traffic", [])]
    for where, sender in senders:
        kind = sender.get("ecn_kind")
        is_l4s = is_dual and sender["cc"]["algorithm"] == _L4S
        if kind == "l4s" and not is_l4s:
            raise UserError(
                f"{where}.ecn: 'l4s' is ECT(1), and kernels send ECT(0) whatever the congestion "
                f"control; for --engine sim, {name} has 'accecn' or true, and 'l4s' for prague "
                "over dualpi2 (with flow.ecn = false for the others)"
            )
        if is_dual and not is_l4s and (sender["ecn"] or sender["cc"]["name"] in _ALWAYS_ECT):
            raise UserError(
                f"{where}: over dualpi2 on {name} only prague may use ECN (stock kernels do not "
                "send ECT(1), so all that is ECT goes to the L queue); set its ecn = false, or use "
                "--engine sim"
            )


#: The first release whose net.ipv4.tcp_ecn takes more than 2 (net/ipv4/sysctl_net_ipv4.c).
_ACCURATE_SINCE = (7, 0)


def refuse_accurate_ecn(plan: Plan, release: str) -> None:
    """Raises UserError for flows with the feedback of RFC 9768 where the kernel of that release
    (`uname -r`) does not negotiate it."""
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers is None or tuple(map(int, numbers.groups())) >= _ACCURATE_SINCE:
        return
    for index, flow in enumerate(plan["flows"]):
        if flow.get("ecn_kind") == "accecn":
            raise UserError(
                f"flow.{index}.ecn: 'accecn' needs a kernel that negotiates accurate ECN (RFC "
                f"9768), Linux 7.0 or later, and this one is {release}; --engine vm --kernel 7.3 "
                "and --engine sim have it, and this one has true or 'classic'"
            )
