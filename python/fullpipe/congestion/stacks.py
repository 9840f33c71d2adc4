"""Congestion controls of QUIC stacks (`quinn:bbr`): which there are, and the module that runs them
(crates/fullpipe-quic), which is built apart.

Must never know an engine.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError

_MODULE = "fullpipe_quic"


@dataclass(frozen=True)
class Stack:
    """A QUIC stack: what it is, and its congestion controls."""

    title: str
    controls: tuple[str, ...]


#: By the name before the colon; the module must have the same.
STACKS = {
    "quinn": Stack("quinn-proto (Rust)", ("cubic", "newreno", "bbr")),
    "tquic": Stack("tquic (Rust, BoringSSL)", ("cubic", "bbr", "bbr3", "copa")),
    "noq": Stack("noq-proto (Rust, iroh's)", ("cubic", "newreno", "bbr3")),
    "s2n": Stack("s2n-quic (Rust, AWS's)", ("cubic", "bbr")),
}

_PLANNED = re.compile(rf'"cc":{{"name":"(?:{"|".join(STACKS)}):'.encode())


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


def is_in(plan: bytes) -> bool:
    """Whether a plan as compact JSON has a stack's congestion control."""
    return _PLANNED.search(plan) is not None


def module() -> Any:
    """The module. Raises UserError where it is not installed."""
    try:
        return importlib.import_module(_MODULE)
    except ImportError:
        raise UserError(
            f"QUIC stacks need the module {_MODULE}: `make quic` in a checkout builds it "
            "(six CPU minutes, docs/howto/quic-stacks.md)"
        ) from None


def versions(names: Sequence[str]) -> dict[str, str]:
    """Crate and version of the stacks of these congestion controls."""
    found = module().stacks()
    return {stack: found[stack][0] for stack in sorted({name.partition(":")[0] for name in names})}


@cache
def sha256() -> str:
    """A hash of the module's code."""
    (file,) = Path(module().__file__).parent.glob("*.so")
    return hashlib.sha256(file.read_bytes()).hexdigest()
