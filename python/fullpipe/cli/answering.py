"""What completes a line, for the shell that asks: from the table of all commands (`table`).

Asked and answered in the form that the scripts of `fullpipe completion` expect, which are Typer's;
a test holds the answers against Typer's own.
"""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from fullpipe.cli.table import table

#: A word, and what it means; empty where it says all itself.
Word = tuple[str, str]


def answer(variables: Mapping[str, str], asked: str) -> tuple[str | None, int] | None:
    """What to print (None: nothing) and the exit status, from a shell's variables, of which `asked`
    says in which form; None where it is not one of bash, zsh and fish."""
    form = variables[asked]
    if form == "complete_bash":
        words, cursor = _split(variables.get("COMP_WORDS", "")), variables.get("COMP_CWORD", "")
        at = int(cursor) if cursor.isdecimal() else len(words)
        found = completions(words[1:at], words[at] if at < len(words) else "")
        return "\n".join(word for word, _ in found), 0
    if form not in ("complete_zsh", "complete_fish"):
        return None
    line = variables.get("_TYPER_COMPLETE_ARGS", "")
    words = _split(line)[1:]
    begun = words.pop() if words and not line.endswith(" ") else ""
    found = completions(words, begun)
    if form == "complete_zsh":
        listed = "\n".join(_zsh(word, line) for word, line in found)
        return (f"_arguments '*: :(({listed}))'" if found else "_files"), 0
    action = variables.get("_TYPER_COMPLETE_FISH_ACTION", "")
    if action == "is-args":
        return None, 0 if found else 1
    if action != "get-args" or not found:
        return "", 0
    return "\n".join(_fish(word, line) for word, line in found), 0


def completions(words: Sequence[str], begun: str) -> list[Word]:
    """What may stand where `begun` does, after these words."""
    group, rest = table(), list(words)
    while "commands" in group:
        if rest and "usual" in group and rest[0] not in (*group["commands"], "--help"):
            rest.insert(0, group["usual"])
        name = next((word for word in rest if not word.startswith("-")), None)
        if name is None or name not in group["commands"]:
            break
        rest = rest[rest.index(name) + 1 :]
        group = group["commands"][name]
    params = group["params"]
    if begun == "=":
        begun = ""
    elif "=" in begun and begun.startswith("-"):
        name, _, begun = begun.partition("=")
        rest.append(name)
    given, positions = _given(params, rest)
    if "--" not in rest and begun.startswith("-"):
        return [
            (word, param["line"])
            for param in params
            if param["many"] or param["name"] not in given
            for word in (*param["words"], *param["off"])
            if word.startswith(begun)
        ]
    for param in params:
        if param["takes"] != "flag" and rest and rest[-1] in param["words"]:
            return _values(param, begun)
    for position, param in enumerate(param for param in params if not param["words"]):
        if param["many"] or position >= positions:
            return _values(param, begun)
    inner = group.get("commands", {})
    return [(name, one["line"]) for name, one in inner.items() if name.startswith(begun)]


def _given(params: Sequence[dict[str, Any]], words: Sequence[str]) -> tuple[set[str], int]:
    """The options that are there, and how many arguments."""
    options = {word: param for param in params for word in (*param["words"], *param["off"])}
    given: set[str] = set()
    positions = 0
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        param = options.get(name)
        if param is None:
            positions += not word.startswith("-")
        elif equals or param["takes"] == "flag" or next(rest, None) is not None:
            given.add(param["name"])
    return given, positions


def _values(param: dict[str, Any], begun: str) -> list[Word]:
    if "completes" in param:
        found = getattr(importlib.import_module("fullpipe.cli.completion"), param["completes"])
        return [(word, "") for word in found(begun)]
    return [(word, "") for word in param.get("choices", []) if word.startswith(begun)]


def _split(line: str) -> list[str]:
    """Words as a shell has them; of an open quotation what there is."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str | None] = []
    try:
        words += lexer
    except ValueError:
        words.append(lexer.token)
    return [word for word in words if word is not None]


def _zsh(word: str, line: str) -> str:
    return f'"{_quoted(word)}":"{_quoted(line)}"' if line else f'"{_quoted(word)}"'


def _quoted(text: str) -> str:
    text = text.replace('"', '""').replace("'", "''").replace("$", "\\$").replace("`", "\\`")
    return text.replace(":", r"\\:")


def _fish(word: str, line: str) -> str:
    return f"{word}\t" + re.sub(r"\s", " ", line) if line else word
