"""Writes docs/commands.md: every command, as the command line itself knows it.

python scripts/commands.py
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from fullpipe.cli import whole

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"

_HEAD = """# Every command

`fullpipe COMMAND --help` says what a command takes. Exit status: 0 done, 1 a run failed or a check
says no, 2 bad input, 130 interrupted. `fullpipe completion SHELL` prints what completes words in
bash, zsh and fish. This page is written by `python scripts/commands.py`.

| command | what it does |
|---|---|
"""


def page() -> str:
    """The page as Markdown."""
    rows = []
    for name in [*whole.COMMANDS, *whole.GROUPS]:
        group: Any = typer.main.get_command(whole.app(name))
        for words, command in _leaves(f"fullpipe {name}", group.commands[name]):
            rows.append(f"| `{words}` | {_first_sentence(command)} |\n")
    return _HEAD + "".join(rows)


def _leaves(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command with its arguments, or those of a group."""
    members = getattr(command, "commands", None)
    if members is None:
        arguments = [_argument(one) for one in command.params if one.param_type_name == "argument"]
        yield " ".join([words, *arguments]), command
        return
    for name, member in members.items():
        yield from _leaves(f"{words} {name}", member)


def _argument(argument: Any) -> str:
    text = str(argument.metavar or argument.name).upper().strip("[]")
    text += "..." if argument.nargs == -1 and not text.endswith("...") else ""
    return text if argument.required else f"[{text}]"


def _first_sentence(command: Any) -> str:
    text = " ".join(inspect.cleandoc(command.help or "").partition("\n\n")[0].split())
    sentence = text.partition(". ")[0].removesuffix(".")
    return sentence.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
