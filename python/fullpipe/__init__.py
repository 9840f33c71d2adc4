"""fullpipe: a congestion-control laboratory.

`run` simulates a scenario (or runs it on a real kernel) and gives `Recordings`; `run_sweep` fills a
store with a grid of them; `predict` asks the models; a `Controller` is a congestion control of your
own. docs/python.md begins; docs/scenario.md has every key of a scenario.

Data flows one way through this package: `scenario` -> `engines` -> `recording` -> `metrics` ->
`report`. `models` predict without a run, `experiments` repeat the papers', `flent` exchanges
recordings with Flent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullpipe._native import __version__
from fullpipe.deferred import deferred

if TYPE_CHECKING:
    from fullpipe._native import Ack, Conn, Ctl, Event, Info
    from fullpipe.api import load, predict, run, run_sweep
    from fullpipe.controller import CaState, Constant, Controller, EventKind, Phase
    from fullpipe.errors import RunError, UserError
    from fullpipe.recording import Recording
    from fullpipe.recordings import Drawing, Recordings
    from fullpipe.swept import Swept

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
    "Recording",
    "Recordings",
    "RunError",
    "Swept",
    "UserError",
    "__version__",
    "load",
    "predict",
    "run",
    "run_sweep",
]

# Loaded when asked for: help has no time for them.
__getattr__ = deferred(__name__, {
    "_native": ["Ack", "Conn", "Ctl", "Event", "Info"],
    "api": ["load", "predict", "run", "run_sweep"],
    "controller": ["CaState", "Constant", "Controller", "EventKind", "Phase"],
    "errors": ["RunError", "UserError"],
    "recording": ["Recording"],
    "recordings": ["Drawing", "Recordings"],
    "swept": ["Swept"],
})  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
