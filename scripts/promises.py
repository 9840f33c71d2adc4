"""Writes tests/data/promises.json: every name by which users reach fullpipe, in files and programs
of theirs. tests/python/test_promises.py fails when one of them is gone; docs/reference/stability.md
says what that means.

python scripts/promises.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import fullpipe
from fullpipe.cli.app import app
from fullpipe.recording.recording import OPTIONAL_TABLES, TABLES
from fullpipe.scenario.reference import json_schema
from fullpipe.sweep.query import VIEWS

FILE = Path(__file__).parent.parent / "tests" / "data" / "promises.json"


def promises() -> dict[str, list[str]]:
    """The names of each kind, sorted: `commands` with their options, `scenario` keys by their path,
    `python` names, `tables` of recordings with their columns, `views` of stores."""
    tables = {**TABLES, **OPTIONAL_TABLES}
    schema = json_schema()
    return {
        "commands": sorted(_options("fullpipe", typer.main.get_command(app))),
        "python": sorted(fullpipe.__all__),
        "scenario": sorted(set(_below(schema, "", schema.get("$defs", {}), ()))),
        "tables": sorted(f"{name}.{column}" for name, schema in tables.items()
                         for column in schema.names),
        "views": sorted(VIEWS),
    }  # fmt: skip


def _options(words: str, command: Any) -> Iterator[str]:
    members = getattr(command, "commands", None)
    if members is not None:
        for name, member in members.items():
            yield from _options(f"{words} {name}", member)
        return
    yield words
    for parameter in command.params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("-"):
                yield f"{words} {option}"


def _below(
    schema: dict[str, Any], path: str, definitions: dict[str, Any], entered: tuple[str, ...]
) -> Iterator[str]:
    """The paths of keys: `flow[].cc`. `entered`: definitions on the way, against circles."""
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    if reference:
        if reference not in entered:
            yield from _below(definitions[reference], path, definitions, (*entered, reference))
        return
    for name, value in schema.get("properties", {}).items():
        key = f"{path}.{name}" if path else name
        yield key
        yield from _below(value, key, definitions, entered)
    if isinstance(schema.get("items"), dict):
        yield from _below(schema["items"], f"{path}[]", definitions, entered)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _below(schema["additionalProperties"], f"{path}.NAME", definitions, entered)
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _below(each, path, definitions, entered)


if __name__ == "__main__":
    FILE.write_text(json.dumps(promises(), indent=1) + "\n", encoding="utf-8")
