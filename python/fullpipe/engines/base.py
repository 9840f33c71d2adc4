"""The engine's contract, and the list of engines."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from fullpipe.base.errors import UserError
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

if TYPE_CHECKING:
    import pyarrow as pa

#: Called with the simulated ns done so far; returning False asks the engine to stop early.
Progress = Callable[[int], bool]


@dataclass
class RunResult:
    """The result of a run: every table of `recording.TABLES`, and facts about the engine."""

    tables: Mapping[str, pa.Table]
    #: Engine-specific facts (kernel, versions). The same plan gives the same facts.
    metadata: dict[str, Any] = field(default_factory=dict)
    #: `problems`: list of sentences, empty for a healthy run; other keys are figures.
    health: dict[str, Any] = field(default_factory=dict)
    #: The run was stopped on request before its duration.
    interrupted: bool = False
    #: Why the run ended early by itself; None otherwise. The tables hold the rows up to then.
    failure: str | None = None


class Engine(Protocol):
    """Runs plans."""

    name: str

    def check(self, plan: Mapping[str, Any]) -> None:
        """Raises UserError if this engine cannot run the plan, with the reason."""

    def run(
        self, plan: Mapping[str, Any], progress: Progress, options: Mapping[str, Any]
    ) -> RunResult:
        """Runs the plan. Raises RunError if the engine itself fails with nothing recorded."""


#: An algorithm that answers early marks in proportion, and the echo of each packet that it needs is
#: DCTCP's between kernels (RFC 8257); sets whose packets are ECT whatever `ecn` says.
_L4S, _ALWAYS_ECT = "prague", ("dctcp", "kernel:dctcp")


def refuse_ecn(plan: Mapping[str, Any], name: str) -> None:
    """Raises UserError for ECN that kernels cannot have: they send ECT(0) only, and DualPI2 queues
    every ECT packet of theirs as L4S."""
    wires = [
        link["medium"][direction] for link in plan["links"] for direction in ("forward", "reverse")
    ]
    kinds = [(wire.get("qdisc") or {}).get("aqm", {}).get("kind") for wire in wires]
    is_dual = any(kind and DISCIPLINES[kind].takes_ect_for_l4s for kind in kinds)
    senders = [(f"flow.{index}", flow) for index, flow in enumerate(plan["flows"])]
    for what in ("page", "traffic"):
        groups = plan.get("pages" if what == "page" else what) or []
        senders += [(f"{what} {group['name']}", group) for group in groups]
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


def refuse_accurate_ecn(plan: Mapping[str, Any], release: str) -> None:
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


EngineName = Literal["sim", "vm", "live"]
_ENGINES = {
    "sim": "fullpipe.engines.sim:SimEngine",
    "vm": "fullpipe.engines.vm:VmEngine",
    "live": "fullpipe.engines.live:LiveEngine",
}


def engine_names() -> list[str]:
    """The names of the engines, as `engine()` accepts them."""
    return list(_ENGINES)


def engine(name: str) -> Engine:
    """The engine of that name. Raises UserError for an unknown one."""
    if name not in _ENGINES:
        raise UserError(f"unknown engine {name!r}; known are {', '.join(_ENGINES)}")
    module, _, attribute = _ENGINES[name].partition(":")
    made: Engine = getattr(importlib.import_module(module), attribute)()
    return made
