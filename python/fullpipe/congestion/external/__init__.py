"""External congestion controls: one C file against the contract `cc.h`, or a Python class.

A file becomes a shared object for the simulator and an eBPF object for the kernel. The user's cache
keeps both under a hash of their inputs. The simulator calls a class directly. Must never know
scenarios or engines.
"""

from __future__ import annotations

from fullpipe.congestion.external.bpf import bpf_object, compile_bpf
from fullpipe.congestion.external.fuzzing import NoSanitizersError, fuzz
from fullpipe.congestion.external.native import describe, explain, load, warnings
from fullpipe.congestion.external.source import (
    CONTRACT_VERSION,
    Source,
    is_class,
    is_external,
    is_file_name,
    is_handed,
    read,
    source_of,
)

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
    "is_external",
    "is_file_name",
    "is_handed",
    "load",
    "read",
    "source_of",
    "warnings",
]
