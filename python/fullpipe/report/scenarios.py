"""The scenario of a recording, read anew. Must never run it."""

from __future__ import annotations

from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.base.toml import parse_toml
from fullpipe.congestion.trust import from_outside
from fullpipe.plan.resolve import resolve
from fullpipe.report.runs import Run
from fullpipe.scenario.model import Scenario, make_scenario


def trusted_scenario(run: Run) -> tuple[Scenario, dict[str, Any]] | None:
    """The recording's scenario and plan where the scenario, read anew, gives the very same plan;
    no other is taken, since a foreign recording may say anything."""
    try:
        document = parse_toml(run.recording.scenario_toml)
        with from_outside():  # reading a class executes it
            scenario = make_scenario(document)
            plan = resolve(scenario, run.metadata.seed)
    except (UserError, ValueError):
        return None
    return (scenario, plan) if plan == run.recording.metadata.get("plan") else None
