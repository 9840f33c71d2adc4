"""What may be written on the command line, as a table: to run plain command lines without Typer.

`words.json` is made of Typer's commands (`declared`), and a test holds it against them. Knows no
command. Whatever is not plainly right, help included, is not decided here.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("words.json")
_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)


@functools.cache
def table() -> dict[str, Any]:
    """The program as a group: `commands` by name and `params`, those of groups likewise. See
    `declared` for what a parameter has."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def called(words: Sequence[str]) -> Callable[[], object] | None:
    """The command with what these words give it; None where Typer has to look at them."""
    command, rest = table(), list(words)
    while "commands" in command:
        within = command["commands"]
        if rest and "usual" in command and rest[0] not in (*within, "--help", "-h"):
            rest.insert(0, command["usual"])
        if not rest or rest[0] not in within:
            return None
        command = within[rest.pop(0)]
    if "home" not in command:
        return None
    given = _given(command["params"], rest)
    if given is None:
        return None
    module, _, function = command["home"].partition(":")
    found = getattr(importlib.import_module(f"fullpipe.cli.{module}"), function)
    return functools.partial(found, **given)


def _given(params: Sequence[dict[str, Any]], words: Sequence[str]) -> dict[str, Any] | None:
    """Parameter -> its value, of those that are given; None where one is missing or odd."""
    options = {word: param for param in params for word in (*param["words"], *param["off"])}
    arguments = iter([param for param in params if not param["words"]])
    given: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        value: Any = word
        if word.startswith("-"):
            word, equals, value = word.partition("=")
            param = options.get(word)
            if param is None or param["name"] == "help" or (equals and param["takes"] == "flag"):
                return None
            if param["takes"] == "flag":
                given[param["name"]] = word not in param["off"]
                continue
            value = value if equals else next(rest, "-")
        else:
            param = next(arguments, None)
        read = None if param is None else _value(param, value)
        if param is None or read is None:
            return None
        if not param["many"]:
            given[param["name"]] = read
            continue
        given.setdefault(param["name"], []).append(read)
        if not param["words"]:
            arguments = iter([param])  # the last one, and takes all
    for param in params:
        name, variable = param["name"], os.environ.get(param.get("variable", ""))
        if name not in given and variable:
            given[name] = _value(param, variable)
        if given.get(name) is None and (name in given or param["required"]):
            return None
    return given


def _value(param: dict[str, Any], text: str) -> Any:
    """The value that a text stands for; None for what is not plainly one."""
    if not text or text.startswith("-"):
        return None
    if param["takes"] == "path":
        path = Path(text)
        return path if not path.exists() or os.access(path, os.R_OK) else None
    if param["takes"] == "whole":
        value = int(text) if _WHOLE.fullmatch(text) else -1
        return value if param["least"] <= value <= param["most"] else None
    return text if param["takes"] == "text" else None
