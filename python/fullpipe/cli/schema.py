"""`fullpipe schema`: what a scenario or sweep file may hold."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from fullpipe.base.errors import UserError


def schema(
    markdown_: Annotated[
        bool, typer.Option("--markdown", help="Print the reference (scenario.md) instead.")
    ] = False,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Print the JSON schema of sweep files instead.")
    ] = False,
) -> None:
    """Prints the JSON schema of scenario files."""
    from fullpipe.scenario.reference import json_schema, markdown
    from fullpipe.sweep import schema as sweeps

    if markdown_ and sweep:
        raise UserError("--markdown: is for scenario files; docs/reference/sweeps.md has the other")
    if markdown_:
        print(markdown(), end="")
    else:
        document = sweeps.json_schema() if sweep else json_schema()
        print(json.dumps(document, indent=1, ensure_ascii=False))
