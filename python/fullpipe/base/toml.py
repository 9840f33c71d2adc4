"""TOML from outside, parsed. Knows no key."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import tomli_w

#: Documents of people have five levels; code that walks deeper ones would overflow its stack.
_MAX_DEPTH = 32


_TOO_DEEP = f"tables are nested deeper than {_MAX_DEPTH} levels"
_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
#: Of a line that is no TOML.
_MOST_OF_LINE = 200
#: A dotted key of more parts than that. The parser makes a copy of the key for each of its parts.
_DEEP_KEY = re.compile(
    rf"(?:^|[\[{{,])[ \t]*{_KEY}(?:[ \t]*\.[ \t]*{_KEY}){{{_MAX_DEPTH},}}+[ \t]*[=\]]", re.M
)


class WrittenFloat(float):
    """A number and how it was written: 6.1 and 6.10 are one number and two kernels."""

    text: str

    def __new__(cls, text: str) -> WrittenFloat:
        number = super().__new__(cls, text)
        number.text = text
        return number


def parse_toml(text: str) -> dict[str, Any]:
    """The document; its floats are WrittenFloat. A byte-order mark at the beginning, which editors
    on Windows write, is passed over. Raises TOMLDecodeError, a ValueError, also where
    tables are nested deeper than any document of this program's."""
    if _DEEP_KEY.search(text):
        raise tomllib.TOMLDecodeError(_TOO_DEEP)
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"), parse_float=WrittenFloat)
    except RecursionError:
        raise tomllib.TOMLDecodeError("values are nested too deeply") from None
    level: list[Any] = [document]
    for _ in range(_MAX_DEPTH):
        if not level:
            return document
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    raise tomllib.TOMLDecodeError(_TOO_DEEP)


def cure(text: str, error: tomllib.TOMLDecodeError) -> str:
    """What was probably meant where a text is no TOML; empty where nobody knows."""
    if text.lstrip().startswith("{"):
        return "; this is JSON: TOML has key = value, and [table] above its keys"
    at = re.search(r"at line (\d+)", str(error))
    lines = text.splitlines()
    line = lines[int(at[1]) - 1][:_MOST_OF_LINE] if at and int(at[1]) <= len(lines) else ""
    if re.search("[\u201c\u201d\u201e\u2018\u2019]", line):
        return '; write straight quotes: "'
    if re.match(r"\s*[\w.-]+\s*:", line):
        return "; write key = value, with an equals sign"
    if not re.match("Invalid value|Expected newline", str(error)):
        return ""
    assigned = re.match(r"""\s*([\w.-]+)\s*=\s*([^"'\[{\s#=][^"'#=]*?)\s*(?:#.*)?$""", line)
    if assigned is None:
        return ""
    key, value = assigned.groups()
    if value.lower() in ("true", "false"):
        return f"; write {key} = {value.lower()}"
    # A number that TOML does not know, such as .5 or 010, is no text.
    is_number = re.fullmatch(r"[+-]?[\d_]*\.?[\d_]*(?:[eE][+-]?\d*)?", value)
    return "" if is_number else f'; text has quotes: {key} = "{value[:60]}"'


def with_value(text: str, key: str, value: int | str) -> str:
    """A document with a key of its top level set. Its other lines stay as they are; a new key goes
    below the comments at the head, which name its schema."""
    text = text.removeprefix("\ufeff")
    document = tomllib.loads(text)
    if document.get(key) == value:
        return text
    line = tomli_w.dumps({key: value})
    top = re.search(r"^\s*\[", text, re.M)
    end = top.start() if top else len(text)
    changed, count = re.subn(rf"^{key}\s*=.*$", line.rstrip(), text[:end], count=1, flags=re.M)
    if not count:
        lines = text[:end].splitlines(keepends=True)
        below = next((at for at, each in enumerate(lines) if not each.startswith("#")), len(lines))
        changed = "".join([*lines[:below], line, *lines[below:]])
    result = changed + text[end:]
    changed_document = {**document, key: value}
    if tomllib.loads(result) != changed_document:  # such as a key within a text of many lines
        return tomli_w.dumps(changed_document)
    return result
