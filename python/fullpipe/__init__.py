"""fullpipe: a congestion-control laboratory.

Data flows one way through this package: `scenario` -> `engines` -> `recording` -> `metrics` ->
`report`. `models` predict without a run, `experiments` repeat the papers', `flent` exchanges
recordings with Flent.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fullpipe._native import __version__

if TYPE_CHECKING:
    from fullpipe._native import Ack, Conn, Ctl, Event, Info
    from fullpipe.controller import CaState, Constant, Controller, EventKind, Phase

__all__ = [
    "Ack",
    "CaState",
    "Conn",
    "Constant",
    "Controller",
    "Ctl",
    "Event",
    "EventKind",
    "Info",
    "Phase",
    "__version__",
]

#: Where the names of `__all__` live. They are loaded when asked for: help has no time for them.
_HOMES = {
    "_native": ["Ack", "Conn", "Ctl", "Event", "Info"],
    "controller": ["CaState", "Constant", "Controller", "EventKind", "Phase"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
