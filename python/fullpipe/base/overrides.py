"""Overrides: keys of a document that a command replaces, as in `--set path.rate=10mbit`.

Knows TOML documents, never what their keys mean.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.base.toml import parse_toml

#: No table lies deeper.
_MAX_KEYS = 16


def apply_changes(document: Mapping[str, Any], changes: Iterable[str]) -> dict[str, Any]:
    """A copy of the document with changes such as `path.rate=10mbit`, `flow.0.start=2s` or
    `cc.bbr3.probe_down_gain=0.9`. A value that is not TOML is text.

    Raises UserError where a change has no `=` or no table holds its key."""
    result: dict[str, Any] = _copy(document)
    for change in changes:
        key, separator, text = change.partition("=")
        if not separator or not key.strip():
            raise UserError(f"--set {change!r}: write key=value, such as path.rate=10mbit")
        parts = key.strip().split(".")
        if len(parts) > _MAX_KEYS:
            raise UserError(f"--set {change[:60]}...: more than {_MAX_KEYS} keys in a row")
        node: Any = result
        for part in parts[:-1]:
            node = _step(node, part, change)
        last = parts[-1]
        if isinstance(node, list):
            _step(node, last, change)
            node[int(last)] = _value(text)
        else:
            node[last] = _value(text)
    return result


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def _step(node: Any, part: str, change: str) -> Any:
    if isinstance(node, list):
        if not part.isdecimal() or int(part) >= len(node):
            raise UserError(f"--set {change!r}: index {part!r} must be from 0 to {len(node) - 1}")
        return node[int(part)]
    if not isinstance(node, dict):
        raise UserError(f"--set {change!r}: no table holds {part!r}")
    child = node.setdefault(part, {})
    if not isinstance(child, dict | list):
        raise UserError(f"--set {change!r}: {part!r} is a value, not a table")
    return child


def _value(text: str) -> Any:
    try:
        return parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()
