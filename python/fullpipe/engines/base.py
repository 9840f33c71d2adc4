"""The engine's contract, and the list of engines."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from fullpipe.base.errors import UserError
from fullpipe.plan.plan import Plan

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

    def check(self, plan: Plan, options: Mapping[str, Any] | None = None) -> None:
        """Raises UserError if this engine cannot run the plan with these options, with the
        reason."""

    def run(self, plan: Plan, progress: Progress, options: Mapping[str, Any]) -> RunResult:
        """Runs the plan. Raises RunError if the engine itself fails with nothing recorded."""


EngineName = Literal["sim", "vm", "live"]
#: Machines of the engine vm.
MachineName = Literal["qemu", "uml", "auto"]
#: How a kernel gets fullpipe's congestion controls.
CcForm = Literal["ebpf", "module"]
#: Options that only some engines have.
_OPTIONS_OF = {
    "pcap": ("sim", "vm"),
    "debug_cc": ("sim",),
    "machine": ("vm",),
    "kernel": ("vm",),
    "modules": ("vm",),
    "module": ("vm",),
    "cc_form": ("vm",),
    "background_processes": ("vm", "live"),
    "peer": ("live",),
    "token": ("live",),
}
_ENGINES = {
    "sim": "fullpipe.engines.sim:SimEngine",
    "vm": "fullpipe.engines.vm:VmEngine",
    "live": "fullpipe.engines.live:LiveEngine",
}


def engine_names() -> list[str]:
    """The names of the engines, as `engine()` accepts them."""
    return list(_ENGINES)


def foreign_option(name: str, options: Iterable[str]) -> tuple[str, str] | None:
    """The first of these options that the engine of that name does not have, and the engines that
    do; None if there is none."""
    for option in options:
        engines = _OPTIONS_OF.get(option, (name,))
        if name not in engines:
            return option, " or ".join(engines)
    return None


def refuse_foreign(name: str, options: Iterable[str]) -> None:
    """Raises UserError for an option that the engine of that name does not have."""
    if foreign := foreign_option(name, options):
        option, engines = foreign
        raise UserError(f"--{option.replace('_', '-')}: belongs to --engine {engines}")


def engine(name: str) -> Engine:
    """The engine of that name. Raises UserError for an unknown one."""
    if name not in _ENGINES:
        raise UserError(f"unknown engine {name!r}; known are {', '.join(_ENGINES)}")
    module, _, attribute = _ENGINES[name].partition(":")
    made: Engine = getattr(importlib.import_module(module), attribute)()
    return made
