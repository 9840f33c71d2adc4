"""External congestion controls: one C file against the contract `cc.h`, or a Python class.

A file becomes a shared object for the simulator and an eBPF object for the kernel. The user's cache
keeps both under a hash of their inputs. The simulator calls a class directly. Whatever runs code of
a file does so in a worker without rights. Must never know scenarios or engines.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fullpipe.congestion.userfiles.reading import read
from fullpipe.congestion.userfiles.source import (
    CONTRACT_VERSION,
    Source,
    is_class,
    is_external,
    is_file_name,
    is_handed,
    source_of,
)

if TYPE_CHECKING:
    from fullpipe.congestion.userfiles.analysing import NoAnalysisError, every_input
    from fullpipe.congestion.userfiles.bpf import NoClangError, bpf_object, compile_bpf
    from fullpipe.congestion.userfiles.frames import counts, unpacked
    from fullpipe.congestion.userfiles.fuzzing import NoSanitizersError, fuzz
    from fullpipe.congestion.userfiles.native import ask, describe, load, load_here, warnings
    from fullpipe.congestion.userfiles.protocol import Bounds, Listener
    from fullpipe.congestion.userfiles.unwritten import uninitialised

__all__ = [
    "CONTRACT_VERSION",
    "Bounds",
    "Listener",
    "NoAnalysisError",
    "NoClangError",
    "NoSanitizersError",
    "Source",
    "ask",
    "bpf_object",
    "compile_bpf",
    "counts",
    "describe",
    "every_input",
    "fuzz",
    "is_class",
    "is_external",
    "is_file_name",
    "is_handed",
    "load",
    "load_here",
    "read",
    "source_of",
    "uninitialised",
    "unpacked",
    "warnings",
]

#: Module -> names that only commands with a file use, loaded at their first use (PEP 562).
_LAZY = {
    "bpf": ["NoClangError", "bpf_object", "compile_bpf"],
    "protocol": ["Bounds", "Listener"],
    "frames": ["counts", "unpacked"],
    "analysing": ["NoAnalysisError", "every_input"],
    "fuzzing": ["NoSanitizersError", "fuzz"],
    "native": ["ask", "describe", "load", "load_here", "warnings"],
    "unwritten": ["uninitialised"],
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
