"""`fullpipe schema`: what a scenario file may hold."""

from __future__ import annotations

import json

from fullpipe.scenario import Scenario


def schema() -> None:
    """Prints the JSON schema of scenario files."""
    print(json.dumps(Scenario.model_json_schema(), indent=2))
