"""Errors that Pydantic found, as one line for people: which key, which value, what would be right.
A model may say with `SPOKEN_KEYS` what people mean by keys that it does not have.

For every document from outside: scenarios, sweeps, papers' entries, scorecards, requests of a page,
a recording's metadata. Knows the shape of models, never what a key means.
"""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

#: The type of a custom error (`PydanticCustomError`) whose message is shown without the value.
COMPLETE = "complete"
#: A message of a table's validator, which begins with the key.
_KEY = re.compile(r"([\w.]+): *(.*)", re.DOTALL)
_SHOWN = 60
_AT_THE_TOP = "at the top of the file, before the first [table]"
#: Type of one of Pydantic's errors -> what would be right; fields are of the error's context.
_RIGHT = {
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "string_type": "must be text, in quotes",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "enum": "must be {expected}",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "is too short: at least {min_length} letters",
    "string_too_long": "is too long: at most {max_length} letters",
    "too_short": "has too few entries: at least {min_length}",
    "too_long": "has too many entries: at most {max_length}",
}
#: What others call a choice -> its name here.
_SAME = {
    **dict.fromkeys(("droptail", "taildrop", "pfifofast", "bfifo", "pfifo"), "fifo"),
    **dict.fromkeys(("upload", "uplink", "upstream"), "up"),
    **dict.fromkeys(("download", "downlink", "downstream"), "down"),
}
#: A pattern that says which letters text may have.
_LETTERS = re.compile(r"\^\[(?:A-Z)?a-z0-9([^\]\\]*)\]\+\$")


def explain(error: ValidationError, model: type[BaseModel], below: str = "") -> str:
    """The first error, and the keys of the others. `model` checked the document; `below` is its key
    in a larger document."""
    reasons: dict[str, str] = {}
    details = error.errors(include_url=False)
    for detail in details:
        key, problem = _finding(detail, model, below)
        if detail["type"] == "missing":
            problem += _misplaced(detail, details)
            if (said := _said_otherwise(detail, details, model)) is not None:
                key, problem = _finding(said, model, below)
        reasons.setdefault(key, problem)
    (first, problem), *others = reasons.items()
    more = f" (wrong too: {', '.join(key for key, _ in others)})" if others else ""
    return f"{first}: {problem}{more}" if first else f"{problem}{more}"


def right(detail: ErrorDetails) -> str:
    """What one of Pydantic's errors says would be right, without the value."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in ("string_too_short", "too_short") and context.get("min_length") == 1:
        return "must not be empty"
    if kind == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        letters = _LETTERS.fullmatch(pattern)
        if letters is None:
            return f"must match the regular expression {pattern}"
        capital = "" if "A-Z" in pattern else "small "
        return f"may have {capital}letters, digits and {' '.join(letters[1])} only"
    if kind == "literal_error":
        return f"must be {context['expected']}{_meant(detail['input'], context['expected'])}"
    if kind in _RIGHT:
        return _RIGHT[kind].format_map(context)
    return detail["msg"].removeprefix("Value error, ")


def _meant(value: Any, expected: str) -> str:
    """The choice that is nearly as given: in other letters, with other signs between words."""
    if not isinstance(value, str):
        return ""
    plain = {re.sub(r"[-_ ]", "", name): name for name in re.findall(r"'([^']*)'", expected)}
    value = re.sub(r"[-_ ]", "", value.lower())
    near = difflib.get_close_matches(_SAME.get(value, value), plain, 1, 0.75)
    return f"; did you mean '{plain[near[0]]}'?" if near else ""


def unknown_key(key: str, allowed: Iterable[str], tables: Sequence[str] = ()) -> str:
    """What is wrong with a key that a table does not have; `tables` within it do."""
    allowed = list(allowed)
    near = [f"{table}.{key}" for table in tables] or difflib.get_close_matches(
        key.lower(), allowed, 1
    )
    meant = f"did you mean {near[0]}? " if near else ""
    return f"unknown key; {meant}allowed are {', '.join(allowed)}"


def _finding(detail: ErrorDetails, model: type[BaseModel], below: str) -> tuple[str, str]:
    """The key, and what is wrong with it."""
    keys, table = _location(model, detail["loc"])
    allowed = _keys_of(table)
    where = ".".join([below, *keys] if below else keys)
    entered = detail["input"]
    message = right(detail)
    if detail["type"] == "missing":
        return where, "is missing"
    if detail["type"] == COMPLETE:
        return where, message
    if detail["type"] == "extra_forbidden":
        spoken: Mapping[str, str] = getattr(table, "SPOKEN_KEYS", {})
        if keys[-1].lower() in spoken:
            return where, f"unknown key; {spoken[keys[-1].lower()]}"
        tables = [
            name for name, table in allowed.items() if table and keys[-1] in table.model_fields
        ]
        moved = _keys_of_the_file(keys, entered, model) if not tables else []
        if moved:
            problem = "unknown table; its keys" if isinstance(entered, dict) else "unknown key;"
            belong = "belongs" if len(moved) == 1 else "belong"
            problem = problem.replace("keys", "key") if len(moved) == 1 else problem
            return where, f"{problem} {' and '.join(moved)} {belong} {_AT_THE_TOP}"
        return where, unknown_key(keys[-1], allowed, tables)
    shown = _shown(entered)
    if detail["type"] == "model_type":
        single = (
            f": write [{_header(where)}], in single brackets" if isinstance(entered, list) else ""
        )
        return where, f"{shown}: must be a table{single}"
    if detail["type"] == "list_type" and isinstance(entered, dict):
        return where, f"{shown}: {message}: write [[{_header(where)}]], in double brackets"
    below_it = _KEY.fullmatch(message)
    if detail["type"] == "value_error" and isinstance(entered, dict) and below_it:
        key, reason = below_it.groups()
        value = _written(entered, key)
        is_named = isinstance(value, str) and reason.startswith((value, repr(value)))
        problem = "" if value is None or is_named else f"{_shown(value)} "
        return (f"{where}.{key}" if where else key), f"{problem}{reason}"
    return where, message if shown in message else f"{shown}: {message}"


def _header(where: str) -> str:
    """A key as the header of a table: those above it that are lists have no numbers there."""
    return re.sub(r"\.\d+(?=\.|$)", "", where)


def _said_otherwise(
    missing: ErrorDetails, details: Sequence[ErrorDetails], model: type[BaseModel]
) -> ErrorDetails | None:
    """The unknown key by which people mean the missing one."""
    *parent, key = missing["loc"]
    for detail in details:
        *at, name = detail["loc"]
        if detail["type"] != "extra_forbidden" or at != parent:
            continue
        _, table = _location(model, detail["loc"])
        spoken = str(getattr(table, "SPOKEN_KEYS", {}).get(str(name).lower(), ""))
        said = re.match(r"write (\w+)", spoken)
        near = difflib.get_close_matches(str(name).lower(), _keys_of(table), 1)
        if (said and said[1] == key) or near == [key]:
            return detail
    return None


def _misplaced(missing: ErrorDetails, details: Sequence[ErrorDetails]) -> str:
    """Where a missing key stands instead, and where it belongs; empty if it stands nowhere."""
    *parent, key = missing["loc"]
    belongs = f"under [{'.'.join(map(str, parent))}]" if parent else _AT_THE_TOP
    for detail in details:
        if detail["type"] != "extra_forbidden":
            continue
        at, value = [str(part) for part in detail["loc"]], detail["input"]
        table = at if isinstance(value, dict) and key in value else at[:-1]
        if table is at or at[-1] == key:
            return f": it stands under [{'.'.join(table)}] and belongs {belongs}"
    return ""


def _keys_of_the_file(keys: Sequence[str], value: Any, model: type[BaseModel]) -> list[str]:
    """The keys of the document's top that stand in an unknown table, or the unknown key itself."""
    plain = {name for name, f in model.model_fields.items() if not any(_models(f.annotation))}
    if isinstance(value, dict):
        return [str(key) for key in value if key in plain] if len(keys) == 1 else []
    return [keys[-1]] if len(keys) > 1 and keys[-1] in plain else []


def _location(
    model: type[BaseModel], location: tuple[int | str, ...]
) -> tuple[list[str], type[BaseModel]]:
    """The keys as a document has them, without Pydantic's names of alternatives; and the table of
    the last one."""
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
    return keys, table


def _keys_of(table: type[BaseModel]) -> dict[str, type[BaseModel] | None]:
    """The keys that a table may have, each with its model if it is a table."""
    written = {name: field for name, field in table.model_fields.items() if not field.exclude}
    return {name: next(_models(f.annotation), None) for name, f in written.items()}


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a field, or the members of its list or table, may be."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _models(argument)


def _shown(value: Any) -> str:
    try:
        shown = repr(value)
    except ValueError:  # an integer of more than 4,300 digits
        shown = hex(value) if isinstance(value, int) else f"a {type(value).__name__}"
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."


def _written(document: Any, key: str) -> Any:
    """The value at a key such as `flow.0.start`; None for a table and where there is none."""
    for part in key.split("."):
        if isinstance(document, list) and part.isdecimal() and int(part) < len(document):
            document = document[int(part)]
        elif isinstance(document, dict):
            document = document.get(part)
        else:
            return None
    return None if isinstance(document, dict | list) else document
