"""Congestion controls from outside the project: one file of C against the contract `cc.h`, or a
class of Python.

A file becomes a shared object for the simulator and an eBPF object for the kernel, both kept in the
user's cache under what decides them; a class is called by the simulator. Must never know scenarios
or engines.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fullpipe.outside.source import (
    CONTRACT_VERSION,
    Source,
    is_class,
    is_file_name,
    is_handed,
    is_outside,
    read,
    source_of,
)

if TYPE_CHECKING:
    from fullpipe.outside.bpf import bpf_object, compile_bpf
    from fullpipe.outside.fuzzing import NoSanitizersError, fuzz
    from fullpipe.outside.native import describe, explain, load, warnings

__all__ = [
    "CONTRACT_VERSION",
    "NoSanitizersError",
    "Source",
    "bpf_object",
    "compile_bpf",
    "describe",
    "explain",
    "fuzz",
    "is_class",
    "is_file_name",
    "is_handed",
    "is_outside",
    "load",
    "read",
    "source_of",
    "warnings",
]

#: What compiles: most programs have nothing to compile.
_HOMES = {
    "bpf_object": "bpf", "compile_bpf": "bpf", "NoSanitizersError": "fuzzing", "fuzz": "fuzzing",
    "describe": "native", "explain": "native", "load": "native", "warnings": "native",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Loads what is asked for and no more."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
