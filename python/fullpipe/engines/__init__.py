"""Engines: what runs a plan. All return the same thing, so that nothing downstream knows which.

`engine(name)` gives one; `run_scenario` runs a scenario into recordings, with several seeds over
all cores.
"""

from fullpipe.engines.base import Engine, Progress, RunResult, engine, engine_names
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
