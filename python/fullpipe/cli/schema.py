"""`fullpipe schema`: what a scenario file may hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    import typer
else:
    from fullpipe.cli.later import typer


def schema(
    markdown_: Annotated[
        bool, typer.Option("--markdown", help="the reference for people, docs/scenario.md")
    ] = False,
) -> None:
    """Prints the JSON schema of scenario files, or the reference for people."""
    from fullpipe.scenario.reference import json_schema, markdown

    if markdown_:
        print(markdown(), end="")
        return
    print(json.dumps(json_schema(), indent=2))
