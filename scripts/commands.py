"""Writes docs/reference/commands.md: every command, as the command line itself knows it.

python scripts/commands.py
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from fullpipe.cli.app import app

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"

_HEAD = """# Every command

`fullpipe COMMAND --help` says what a command takes. Exit status: 0 done, 1 a run failed or a check
says no, 2 bad input, 130 interrupted. `fullpipe --install-completion` makes the shell complete
commands, options and names. `python scripts/commands.py` writes this page.

| command | what it does |
|---|---|
"""


def page() -> str:
    """The page as Markdown."""
    rows = [
        f"| `{words}` | {_in_a_cell(first_sentence(command))} |\n"
        for words, command in _leaves("fullpipe", typer.main.get_command(app))
    ]
    return _HEAD + "".join(rows)


def _leaves(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command with its arguments, or those of a group."""
    members = getattr(command, "commands", None)
    if members is None:
        yield " ".join([words, *arguments(command)]), command
        return
    for name, member in members.items():
        yield from _leaves(f"{words} {name}", member)


def arguments(command: Any) -> list[str]:
    """Its arguments, as they are written."""
    return [_written(one) for one in command.params if one.param_type_name == "argument"]


def _written(argument: Any) -> str:
    name = str(argument.metavar or argument.name)
    name += "..." if argument.nargs == -1 else ""
    return name if argument.required else f"[{name}]"


def _in_a_cell(text: str) -> str:
    return text.replace("|", "\\|")


def first_sentence(command: Any) -> str:
    """What it does, without the full stop."""
    text = " ".join(inspect.cleandoc(command.help or "").partition("\n\n")[0].split())
    return text.partition(". ")[0].removesuffix(".")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
