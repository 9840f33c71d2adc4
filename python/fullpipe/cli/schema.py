"""`fullpipe schema`: what a scenario file may hold."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def schema(
    markdown_: Annotated[
        bool, typer.Option("--markdown", help="Print the reference (scenario.md) instead.")
    ] = False,
) -> None:
    """Prints the JSON schema of scenario files."""
    from fullpipe.scenario.reference import json_schema, markdown

    if markdown_:
        print(markdown(), end="")
    else:
        print(json.dumps(json_schema(), indent=2))
