"""Writes a manual page (man(7)) for fullpipe and for each of its commands, as the command line
itself knows them.

python scripts/man_pages.py DIR
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from commands import arguments, first_sentence

import fullpipe
from fullpipe.cli.app import app

_STATUS = (("0", "done"), ("1", "a run failed or a check says no"), ("2", "bad input"),
           ("130", "interrupted"))  # fmt: skip


def pages() -> dict[str, str]:
    """Name of the page, such as `fullpipe-cc-check` -> its text in roff."""
    return {words.replace(" ", "-"): _page(words, command) for words, command in _commands()}


def _commands() -> Iterator[tuple[str, Any]]:
    """Every command and group with the words that call it."""
    left = [("fullpipe", typer.main.get_command(app))]
    while left:
        words, command = left.pop()
        yield words, command
        left += [(f"{words} {name}", one) for name, one in _members(command) if not one.hidden]


def _members(command: Any) -> list[tuple[str, Any]]:
    return list(getattr(command, "commands", {}).items())


def _page(words: str, command: Any) -> str:
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    title = words.replace(" ", "-")
    lines = [
        f'.TH "{title.upper()}" "1" "" "fullpipe {fullpipe.__version__}" "fullpipe manual"',
        ".SH NAME", f"{_text(title)} \\- {_text(first_sentence(command))}",
        ".SH SYNOPSIS", f".B {_text(words)}", _text(_synopsis(command)),
        ".SH DESCRIPTION",
    ]  # fmt: skip
    for paragraph in paragraphs:
        lines += [".PP", _text(" ".join(paragraph.split()))]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one not in arguments and not one.hidden]
    for heading, params in (("ARGUMENTS", arguments), ("OPTIONS", options)):
        lines += [f".SH {heading}"] if params else []
        for param in params:
            lines += [".TP", _called(param), _text(" ".join((param.help or "").split()))]
    if members := [(name, one) for name, one in _members(command) if not one.hidden]:
        lines.append(".SH COMMANDS")
        for name, member in members:
            page = f"{title}-{name}"
            lines += [".TP", f".BR {_text(page)} (1)", _text(first_sentence(member))]
    lines.append(".SH EXIT STATUS")
    for status, meaning in _STATUS:
        lines += [".TP", f".B {status}", meaning]
    if parent := title.rpartition("-")[0]:
        lines += [".SH SEE ALSO", f".BR {_text(parent)} (1)"]
    return "\n".join(lines) + "\n"


def _synopsis(command: Any) -> str:
    called = ["COMMAND [ARGUMENT]..."] if _members(command) else []
    return " ".join(["[OPTION]...", *called, *arguments(command)])


def _called(param: Any) -> str:
    """An argument's name, or how an option is written, with its value's."""
    if param.param_type_name == "argument":
        return f".I {_text(str(param.metavar or param.name))}"
    ways = ", ".join(f"\\fB{_text(way)}\\fR" for way in [*param.opts, *param.secondary_opts])
    value = "" if param.is_flag else f" \\fI{_text(str(param.metavar or param.name.upper()))}\\fR"
    return ways + value


def _text(text: str) -> str:
    """Text with what roff would take for its own escaped, at a line's begin too."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return re.sub(r"^([.'])", r"\\&\1", escaped)


def main() -> None:
    """Writes the pages into the folder that the command line names."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / f"{name}.1").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
