"""What Pydantic found wrong, in one line for a person: which key, which value, what would be right.

Every document from outside is refused in these words: scenarios, sweeps, entries, scorecards, what
a page sends, a recording's metadata. Knows the shape of models, never what a key means.
"""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_SHOWN = 60


def explain(error: ValidationError, model: type[BaseModel], below: str = "") -> str:
    """The first finding, and where there are more; `model` is what the document was held
    against, `below` the key of a larger document at which it stands."""
    found: dict[str, str] = {}
    for detail in error.errors(include_url=False):
        key, what = _finding(detail, model, below)
        found.setdefault(key, what)
    (first, what), *others = found.items()
    more = f" (wrong too: {', '.join(key for key, _ in others)})" if others else ""
    return f"{first}: {what}{more}" if first else f"{what}{more}"


def _finding(detail: ErrorDetails, model: type[BaseModel], below: str) -> tuple[str, str]:
    """Where, and what is wrong there."""
    keys, known = _place(model, detail["loc"])
    where = ".".join([below, *keys] if below else keys)
    given = detail["input"]
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        return where, "is missing"
    if detail["type"] == "extra_forbidden":
        return where, f"unknown key; {_meant(keys[-1], known)}allowed are {', '.join(known)}"
    key, separator, reason = message.partition(":")
    if detail["type"] == "value_error" and isinstance(given, dict):
        if not separator:
            return where, message
        value = _written(given, key)
        what = "" if value is None else f"{_shown(value)} "
        return (f"{where}.{key}" if where else key), f"{what}{reason.strip()}"
    shown = _shown(given)
    return where, message if shown in message else f"{shown}: {message}"


def _meant(key: str, known: dict[str, type[BaseModel] | None]) -> str:
    """A key that is nearly this one, or the table in which it belongs."""
    tables = [
        f"{name}.{key}" for name, inner in known.items() if inner and key in inner.model_fields
    ]
    near = tables or difflib.get_close_matches(key, known, 1)
    return f"did you mean {near[0]}? " if near else ""


def _place(
    model: type[BaseModel], location: tuple[int | str, ...]
) -> tuple[list[str], dict[str, type[BaseModel] | None]]:
    """The keys as a document has them, without Pydantic's names of alternatives; and what the
    table in which the last of them stands may hold: key -> the table's model, if it is one."""
    keys: list[str] = []
    table: type[BaseModel] = model
    annotation: Any = None
    for part in location:
        name = str(part)
        if name.startswith(("function-", "literal[")) or name in {
            inner.__name__ for inner in _models(annotation)
        }:
            continue
        keys.append(name)
        table = next(_models(annotation), table)
        field = table.model_fields.get(name)
        annotation = field.annotation if field else annotation
    written = {name: field for name, field in table.model_fields.items() if not field.exclude}
    return keys, {name: next(_models(f.annotation), None) for name, f in written.items()}


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models of which a field may be one, or a list or a table of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _models(argument)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."


def _written(document: Any, key: str) -> Any:
    """The value that stands at a key such as `flow.0.start`; None where none does, or a table."""
    for part in key.split("."):
        if isinstance(document, list) and part.isdecimal() and int(part) < len(document):
            document = document[int(part)]
        elif isinstance(document, dict):
            document = document.get(part)
        else:
            return None
    return None if isinstance(document, dict | list) else document
