"""TOML from outside, parsed. Knows no key."""

from __future__ import annotations

import tomllib
from typing import Any

#: Documents of people have five levels; code that walks deeper ones would overflow its stack.
_MAX_DEPTH = 32


def parse_toml(text: str) -> dict[str, Any]:
    """The document. Raises TOMLDecodeError, a ValueError, also where tables are nested deeper than
    any document of this program's."""
    try:
        document = tomllib.loads(text)
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
    raise tomllib.TOMLDecodeError(f"tables are nested deeper than {_MAX_DEPTH} levels")
