"""From a file of unknown origin to a JSON object, within bounds.

A .flent.gz is untrusted: it may be truncated, corrupt, or made to exhaust memory. Sizes are checked
before anything is built: bytes on disk, bytes unpacked, members, and values in the JSON text.
It must never know what the object means.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NoReturn

from fullpipe.base.errors import UserError
from fullpipe.base.filekind import no_such_file
from fullpipe.base.supplied import open_regular
from fullpipe.base.text import decoded
from fullpipe.base.unpacking import UnpackError, unpacked

#: Bounds. The largest file at hand (16 flows, 60 s) unpacks to 3 MB with 50,000 keys. The worst
#: texts within these take some 500 MB to import (tests/python/test_flent_hostile.py).
MAX_FILE_BYTES = 24 * 2**20
MAX_BYTES = 48 * 2**20
MAX_KEYS = 1_500_000
MAX_CONTAINERS = 300_000
MAX_VALUES = 4_000_000


class FlentError(UserError):
    """A file that is not a Flent file, or a damaged one."""


def load_object(path: Path) -> tuple[dict[str, Any], str]:
    """The JSON object in a .flent.gz, .flent.bz2 or .flent file, told apart by its first bytes, and
    the SHA-256 of the file. NaN becomes null. Raises FlentError."""
    data = _read(path)
    digest = hashlib.sha256(data).hexdigest()
    content = _unpack(path, data)
    if not content.lstrip().startswith(b"{"):
        _refuse_kind(path, content)
    text = _decode(path, content)
    _check_size(path, text)
    try:
        value = json.loads(text, parse_constant=_constant)
    except RecursionError:
        raise FlentError(f"{path}: not a Flent file: its JSON is nested too deeply") from None
    except ValueError as error:
        _refuse_kind(path, content)
        raise FlentError(f"{path}: not a Flent file: its JSON is damaged: {error}") from None
    if not isinstance(value, dict):
        raise FlentError(f"{path}: not a Flent file: its JSON is no object")
    _refuse_kind(path, value)
    return value, digest


def _refuse_kind(path: Path, content: Any) -> None:
    """Raises FlentError for the file of another tool."""
    kind = no_such_file("Flent file", content)
    if kind is not None:
        raise FlentError(f"{path}: {kind}")


def _read(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise FlentError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_FILE_BYTES:
        raise FlentError(
            f"{path}: is larger than {MAX_FILE_BYTES >> 20} MiB, the most that is read"
        )
    if not data:
        raise FlentError(f"{path}: is empty")
    return data


def _unpack(path: Path, data: bytes) -> bytes:
    try:
        return unpacked(data, MAX_BYTES)
    except UnpackError as error:
        raise FlentError(f"{path}: {error}") from None


def _decode(path: Path, data: bytes) -> str:
    try:
        return decoded(data)
    except UnicodeDecodeError as error:
        raise FlentError(f"{path}: not a Flent file: no UTF-8 at byte {error.start}") from None


def _check_size(path: Path, text: str) -> None:
    containers = text.count("{") + text.count("[")
    for unit, count, most in (
        ("objects and lists", containers, MAX_CONTAINERS),
        ("keys", text.count(":"), MAX_KEYS),
        ("values", text.count(",") + containers, MAX_VALUES),
    ):
        if count > most:
            raise FlentError(f"{path}: holds {count} {unit}; at most {most} are read")


def _constant(name: str) -> None:
    if name != "NaN":
        _refuse(name)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"holds {name}")
