"""fullpipe: a congestion-control laboratory.

`run` simulates a scenario (or runs it on a real kernel) and gives `Recordings`; `run_sweep` fills a
store with a grid of them; `predict` asks the models; a `Controller` is a congestion control of your
own. docs/reference/python.md begins; docs/reference/scenario.md has every key of a scenario.

Data flows one way through this package: `scenario` -> `engines` -> `recording` -> `metrics` ->
`report`. `models` predict without a run, `experiments` repeat the papers', `flent` exchanges
recordings with Flent.
"""

from __future__ import annotations

import importlib

from fullpipe._native import __version__

TYPE_CHECKING = False  # workers load this package, and `typing` takes as long as the simulator
if TYPE_CHECKING:
    from typing import Any

    from fullpipe._native import Ack, Conn, Ctl, Event, Info
    from fullpipe.api.calls import load, open_store, predict, run, run_sweep
    from fullpipe.api.recordings import Drawing, Recordings
    from fullpipe.api.stores import SweepResults
    from fullpipe.base.errors import RunError, UserError
    from fullpipe.congestion.controller import (
        CaState,
        Constant,
        Controller,
        EventKind,
        Phase,
        Variable,
    )
    from fullpipe.congestion.policy import Policy
    from fullpipe.recording.recording import Recording

__all__ = [
    "Ack",
    "CaState",
    "Conn",
    "Constant",
    "Controller",
    "Ctl",
    "Drawing",
    "Event",
    "EventKind",
    "Info",
    "Phase",
    "Policy",
    "Recording",
    "Recordings",
    "RunError",
    "SweepResults",
    "UserError",
    "Variable",
    "__version__",
    "load",
    "open_store",
    "predict",
    "run",
    "run_sweep",
]

#: Module -> the public names that it has, loaded at their first use (PEP 562).
_LAZY = {
    "_native": ["Ack", "Conn", "Ctl", "Event", "Info"],
    "api.calls": ["load", "open_store", "predict", "run", "run_sweep"],
    "api.recordings": ["Drawing", "Recordings"],
    "api.stores": ["SweepResults"],
    "base.errors": ["RunError", "UserError"],
    "congestion.controller": [
        "CaState",
        "Constant",
        "Controller",
        "EventKind",
        "Phase",
        "Variable",
    ],
    "congestion.policy": ["Policy"],
    "recording.recording": ["Recording"],
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names:
            return getattr(importlib.import_module(f"fullpipe.{module}"), name)
    raise AttributeError(f"module 'fullpipe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
