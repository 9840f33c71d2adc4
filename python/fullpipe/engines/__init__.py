"""Engines: what runs a plan. All return the same thing, so that nothing downstream knows which.

`engine(name)` gives one; `run.runs_of` makes the runs of a scenario, `runner.execute` does and
records them over all cores.
"""

from __future__ import annotations

from fullpipe.engines.base import Engine, Progress, RunResult, engine, engine_names

__all__ = ["Engine", "Progress", "RunResult", "engine", "engine_names"]
