"""Engines: what runs a plan. All return the same thing, so that nothing downstream knows which.

`engine(name)` gives one; `run_scenario` runs a scenario into recordings, with several seeds over
all cores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullpipe.base.deferred import deferred
from fullpipe.engines.base import Engine, Progress, RunResult, engine, engine_names

if TYPE_CHECKING:
    from fullpipe.engines.runner import run_scenario, seeds_of

__all__ = [
    "Engine",
    "Progress",
    "RunResult",
    "engine",
    "engine_names",
    "run_scenario",
    "seeds_of",
]

# Completion asks for engines' names only.
__getattr__ = deferred(__name__, {"runner": ["run_scenario", "seeds_of"]})
