"""Writes an engine's result as a recording, with everything that repeats the run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fullpipe
from fullpipe.base.commit import git_commit
from fullpipe.congestion import registry, userfiles
from fullpipe.plan.plan import Plan
from fullpipe.plan.senders import cc_choices

if TYPE_CHECKING:
    from fullpipe.engines.base import RunResult
    from fullpipe.engines.run import Run
    from fullpipe.recording.recording import Recording

#: Engine options that affect the recording; to repeat a run needs them as well as the plan.
_DECIDING = (
    "machine",
    "cc_form",
    "kernel",
    "modules",
    "module",
    "background_processes",
    "peer",
    "web",
)

#: The algorithm of flows that an agent outside controls (crates/fullpipe-sim, stepper.rs).
AGENT = "agent"


def record_result(run: Run, out: Path, result: RunResult) -> Recording:
    """Writes the result of a run into the folder `out`."""
    from fullpipe.metrics.silence import silence
    from fullpipe.recording.recording import write_recording

    options = {name: str(run.options[name]) for name in _DECIDING if name in run.options}
    if "machine" in options:  # `auto` may find another one elsewhere
        options["machine"] = result.metadata["machine"]
    silent = silence(run.plan, result.tables, run.warmup_ns)
    problems = [*result.health.get("problems", []), *silent]
    metadata = {
        "engine": run.engine,
        "options": options,
        "fullpipe_version": fullpipe.__version__,
        "git_commit": git_commit(),
        "python": sys.version.split()[0],
        "plan": run.plan,
        "seed": run.seed,
        "warmup_ns": run.warmup_ns,
        "constants": _constants(run.plan),
        **_sources(run.plan),
        "health": {**result.health, "problems": problems},
        "interrupted": result.interrupted,
        "failure": result.failure,
        **result.metadata,
    }
    if variables := _variables(run.plan) | result.metadata.get("variables", {}):
        metadata["variables"] = variables
    return write_recording(out, metadata, run.text, result.tables)


def _constants(plan: Plan) -> dict[str, dict[str, float]]:
    """Constants of every algorithm of the plan, by name, each in its own unit."""
    constants: dict[str, dict[str, float]] = {}
    for _, choice in cc_choices(plan):
        if choice["algorithm"] not in (None, AGENT) and choice["name"] not in constants:
            params = registry.params_of(choice["algorithm"])
            constants[choice["name"]] = {
                param.name: param.value(value)
                for param, value in zip(params, choice["params"], strict=True)
            }
    return constants


def _variables(plan: Plan) -> dict[str, Any]:
    """Unit and meaning of the variables that only some algorithms have, by the names of these and
    of their columns in `cc_samples`; empty where no algorithm has any."""
    described: dict[str, Any] = registry.own_variables(
        {
            choice["name"]: choice["algorithm"]
            for _, choice in cc_choices(plan)
            if choice["algorithm"] not in (None, AGENT)
        }
    )
    return dict(described.get("variables", {}))


def _sources(plan: Plan) -> dict[str, Any]:
    """Source text of the plan's algorithms from files, so that the recording can be repeated."""
    sources = {}
    for name in sorted({choice["algorithm"] or "" for _, choice in cc_choices(plan)}):
        if userfiles.is_external(name):
            source = userfiles.source_of(name)
            sources[name] = {"main": source.main, "sha256": source.sha256, "files": source.files}
    return {"sources": sources} if sources else {}
