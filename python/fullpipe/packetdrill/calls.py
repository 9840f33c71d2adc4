"""System calls in packetdrill's notation."""

from __future__ import annotations

import re
from typing import Any

from fullpipe.packetdrill.scanner import Scanner
from fullpipe.packetdrill.script import Call

_NAME = re.compile(r"([a-z_][a-z_0-9]*)\s*\(")
_ELLIPSIS = re.compile(r"\.\.\.")
_INTEGER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)(?![\w.])")
_SYMBOL = re.compile(r"[A-Za-z_]\w*(?:\s*\|\s*\w+)*")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_WORD = re.compile(r"[A-Za-z_]\w*(?:\([\w.]*\))?\s*=\s*")
_MARK = {mark: re.compile(re.escape(mark)) for mark in "[]{}(),="}
_ERROR = re.compile(r"([A-Z][A-Z0-9]+)\b")
_NOTE = re.compile(r"\([^)\n]*\)")
#: Lists within lists; hostile text could nest them without end.
_DEEPEST = 12


def read_call(scanner: Scanner, blocks: bool) -> Call:
    """`name(arguments) = result ERRNO (text)`."""
    scanner.skip()
    start = scanner.position
    name = scanner.need(_NAME, "a packet, a system call, a command or code")[1]
    arguments = _read_list(scanner, ")", 0)
    scanner.need(_MARK["="], "`= RESULT`")
    result, errno = None, None
    if scanner.take(_ELLIPSIS) is None:
        result = int(scanner.need(_INTEGER, "a result")[0], 0)
        if result == -1:
            error = scanner.take(_ERROR)
            errno = error[1] if error is not None else None
    scanner.take(_NOTE)
    return Call(name, arguments, result, errno, blocks, scanner.since(start))


def _read_list(scanner: Scanner, closing: str, depth: int) -> list[Any]:
    values: list[Any] = []
    if scanner.take(_MARK[closing]) is not None:
        return values
    while True:
        values.append(_read_value(scanner, depth + 1))
        if scanner.take(_MARK[closing]) is not None:
            return values
        scanner.need(_MARK[","], f"`,` or `{closing}`")


def _read_value(scanner: Scanner, depth: int) -> Any:
    if depth > _DEEPEST:
        raise scanner.error("lists are nested too deeply")
    if scanner.take(_ELLIPSIS) is not None:
        return None
    if (number := scanner.take(_INTEGER)) is not None:
        text = number[0]
        return int(text, 0) if "x" in text or not text.lstrip("-").startswith("0") else int(text, 8)
    if (text_ := scanner.take(_STRING)) is not None:
        return ["string", text_[1]]
    if scanner.take(_MARK["["]) is not None:
        return _read_list(scanner, "]", depth)
    if scanner.take(_MARK["{"]) is not None:
        return {"fields": _read_list(scanner, "}", depth)}
    if scanner.take(_WORD) is not None:
        return _read_value(scanner, depth + 1)
    return scanner.need(_SYMBOL, "a value")[0]
