"""Congestion controls of QUIC stacks (`quinn:bbr`): which there are, and the modules that run them
(crates/fullpipe-quic), which are built apart.

Must never know an engine.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError


@dataclass(frozen=True)
class Stack:
    """A QUIC stack: what it is, its congestion controls, and the module that has it."""

    title: str
    controls: tuple[str, ...]
    module: str = "fullpipe_quic"


#: By the name before the colon; the modules must have the same.
STACKS = {
    "quinn": Stack("quinn-proto (Rust)", ("cubic", "newreno", "bbr")),
    "tquic": Stack("tquic (Rust, BoringSSL)", ("cubic", "bbr", "bbr3", "copa")),
    "noq": Stack("noq-proto (Rust, iroh's)", ("cubic", "newreno", "bbr3")),
    "s2n": Stack("s2n-quic (Rust, AWS's)", ("cubic", "bbr")),
    "quiche": Stack("quiche (Rust, Cloudflare's)", ("cubic", "reno", "bbr2"), "fullpipe_quiche"),
    "ngtcp2": Stack("ngtcp2 (C, AWS-LC)", ("cubic", "reno", "bbr"), "fullpipe_ngtcp2"),
}

_PLANNED = re.compile(rf'"cc":{{"name":"({"|".join(STACKS)}):'.encode())


def is_stack(name: str) -> bool:
    """Whether a flow's `cc` is a stack's congestion control. Raises UserError if the stack does not
    have it."""
    stack, colon, control = name.partition(":")
    if not colon or stack not in STACKS:
        return False
    if control not in STACKS[stack].controls:
        raise UserError(f"{stack} has no {control!r}; it has {', '.join(STACKS[stack].controls)}")
    return True


def used(choices: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, str]]:
    """(sender, name) of the choices (`plan.senders.cc_choices()`) that are stacks'."""
    return [(whose, cc["name"]) for whose, cc in choices if is_planned(cc)]


def is_planned(choice: Mapping[str, Any]) -> bool:
    """Whether a plan's congestion control is a stack's."""
    return choice["algorithm"] is None and choice["name"].partition(":")[0] in STACKS


def modules_of(names: Iterable[str]) -> list[str]:
    """The modules that these congestion controls need."""
    return sorted({STACKS[name.partition(":")[0]].module for name in names})


def modules_in(plan: bytes) -> list[str]:
    """The modules that a plan as compact JSON needs."""
    return modules_of(name.decode() for name in _PLANNED.findall(plan))


def module(name: str) -> Any:
    """A module. Raises UserError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        its = ", ".join(stack for stack in STACKS if STACKS[stack].module == name)
        raise UserError(
            f"QUIC stacks need modules of their own, {its} needs {name}: `make quic` in a checkout "
            "builds it (14 CPU minutes, docs/howto/quic-stacks.md)"
        ) from None


def transports(modules: Iterable[str]) -> list[Any]:
    """What the simulator takes of these modules. Raises UserError where one is not installed."""
    return [module(name).transport for name in modules]


def versions(names: Sequence[str]) -> dict[str, str]:
    """Crate and version of the stacks of these congestion controls."""
    used = {name.partition(":")[0] for name in names}
    return {stack: module(STACKS[stack].module).stacks()[stack][0] for stack in sorted(used)}


@cache
def sha256(name: str) -> str:
    """A hash of a module's code."""
    (file,) = Path(module(name).__file__).parent.glob("*.so")
    return hashlib.sha256(file.read_bytes()).hexdigest()
