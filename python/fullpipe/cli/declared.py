"""Makes the table of all commands (`words.json`) from what they declare to Typer:

    python -m fullpipe.cli.declared

A parameter has its `name`, the `words` that begin it (an argument has none) and those that turn it
`off`, its `line` of help, what it `takes` (text, path, whole, flag; "" for anything else), whether
`many` may be given, whether it is `required`; where there are any, the `choices` of a value, the
function of `completion` that `completes` it, the `variable` that may hold it, and its limits
(`least`, `most`). A command that the table can run has its `home`: of a group's, those whose group
says in which module they are, each under its name. A group may have the command that is `usual`
where none is named.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import typer

from fullpipe.cli import whole
from fullpipe.cli.table import FILE

_MOST = 10**15


def declared() -> dict[str, Any]:
    """The table as `words.json` should have it."""
    top = typer.main.get_command(whole.app(None))
    found: dict[str, Any] = {"params": _params(top), "commands": {}}
    for name in (*whole.COMMANDS, *whole.GROUPS):
        # The overview's own line, not the first one of the command's help.
        line = top.commands[name].get_short_help_str()  # type: ignore[attr-defined]
        command = typer.main.get_command(whole.app(name)).commands[name]  # type: ignore[attr-defined]
        entry = _command(command) | {"line": line}
        if name in whole.COMMANDS and _is_plain(command):
            entry["home"] = whole.COMMANDS[name][0]
        found["commands"][name] = entry
    return found


def _command(command: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"line": command.get_short_help_str(), "params": _params(command)}
    if hasattr(command, "commands"):
        inner = command.commands.items()
        entry["commands"] = {name: _command(one) for name, one in inner if not one.hidden}
        if hasattr(command, "usual"):
            entry["usual"] = command.usual
        for name, one in inner if hasattr(command, "home") else ():
            if _is_plain(one):
                entry["commands"][name]["home"] = f"{command.home}:{name}"
    return entry


def _params(command: Any) -> list[dict[str, Any]]:
    context = typer.Context(command)
    return [_param(param) for param in command.get_params(context) if not param.hidden]


def _param(param: Any) -> dict[str, Any]:
    kind = param.type_descriptor
    is_option = param.param_type_name == "option"
    many = param.multiple or param.nargs == -1
    found = {
        "name": param.name, "words": param.opts if is_option else [], "off": param.secondary_opts,
        "line": param.help or "", "takes": _takes(param), "many": many, "required": param.required,
    }  # fmt: skip
    if kind.is_choice:
        found["choices"] = [str(getattr(one, "value", one)) for one in kind.choices]
    complete = kind.parameter_info.autocompletion if kind.parameter_info else None
    if complete is not None:
        found["completes"] = complete.__name__
    if param.envvar:
        found["variable"] = param.envvar
    if found["takes"] == "whole":
        found["least"] = 0 if param.min is None else param.min
        found["most"] = _MOST if param.max is None else param.max
    return found


def _takes(param: Any) -> str:
    if getattr(param, "is_flag", False):
        return "flag"
    kind = param.type_descriptor.annotation
    inner = getattr(kind, "__args__", (kind,))[0]
    return {str: "text", Path: "path", int: "whole"}.get(inner, "")


def _is_plain(command: Any) -> bool:
    """Whether the table says all that Typer would check."""
    usual = typer.models.ParameterInfo()
    odd = (
        "callback", "is_eager", "parser", "click_type", "exists", "file_okay", "dir_okay",
        "writable", "readable", "resolve_path", "allow_dash", "path_type", "expose_value",
        "default_factory",
    )  # fmt: skip
    for param in command.params:
        info = param.type_descriptor.parameter_info
        if any(getattr(info, key, None) != getattr(usual, key, None) for key in odd):
            return False
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    return all(param.nargs == 1 for param in arguments[:-1])


def _written(found: dict[str, Any]) -> str:
    """As JSON, a parameter a line."""
    text = json.dumps(found, indent=1, ensure_ascii=False)
    return re.sub(r"\{[^{}]*\}", lambda one: re.sub(r"\s*\n\s*", " ", one[0]), text) + "\n"


if __name__ == "__main__":
    FILE.write_text(_written(declared()), encoding="utf-8")
