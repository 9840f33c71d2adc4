"""Engines: what runs a plan. All return the same thing, so that nothing downstream knows which.

`engine(name)` gives one; `run_scenario` runs a scenario into recordings, with several seeds over
all cores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    """What runs is loaded when asked for: completion asks for engines' names only."""
    if name not in ("run_scenario", "seeds_of"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fullpipe.engines import runner

    return getattr(runner, name)
