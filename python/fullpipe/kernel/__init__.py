"""Our congestion controls in this host's running kernel: load, list, unload, trace, replay,
watch.

The agent does the work; this module resolves names and constants for it. Must never know an engine.
"""

from fullpipe.kernel.registration import (
    Loaded,
    Request,
    left_module,
    list_loaded,
    load,
    load_and_unload,
    own_name,
    request,
    unload,
)
from fullpipe.kernel.tracing import Difference, Replay, Replayed, replay, trace
from fullpipe.kernel.watching import watch

__all__ = [
    "Difference",
    "Loaded",
    "Replay",
    "Replayed",
    "Request",
    "left_module",
    "list_loaded",
    "load",
    "load_and_unload",
    "own_name",
    "replay",
    "request",
    "trace",
    "unload",
    "watch",
]
