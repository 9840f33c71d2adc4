"""Compressed files that others supply, unpacked within bounds. Knows nothing of their content."""

from __future__ import annotations

import bz2
import zlib
from typing import Any

#: Every member of a compressed file costs a copy of what follows it.
_MAX_MEMBERS = 64


class UnpackError(ValueError):
    """A file that cannot be unpacked; the text goes behind the file's name."""


class TooLargeError(UnpackError):
    """It holds more than is read."""


class TruncatedError(UnpackError):
    """It ends within its compressed data."""


def unpacked(data: bytes, most_bytes: int) -> bytes:
    """The content of what gzip or bzip2 compressed, by its first bytes; anything else as it is.
    Raises UnpackError."""
    if data.startswith(b"\x1f\x8b"):
        return _members(data, most_bytes, lambda: zlib.decompressobj(wbits=31))
    if data.startswith(b"BZh"):
        return _members(data, most_bytes, bz2.BZ2Decompressor)
    return data


def _members(data: bytes, most_bytes: int, new: Any) -> bytes:
    out = bytearray()
    for _ in range(_MAX_MEMBERS):
        member = new()
        try:
            out += member.decompress(data, most_bytes + 1 - len(out))
        except (zlib.error, OSError, EOFError, ValueError) as error:
            raise UnpackError(f"cannot be unpacked: {error}") from None
        if len(out) > most_bytes:
            raise TooLargeError(f"unpacks to more than {most_bytes >> 20} MiB; refused")
        if not member.eof:
            raise TruncatedError("is truncated")
        data = member.unused_data.lstrip(b"\0")
        if not data:
            return bytes(out)
    raise UnpackError(f"has more than {_MAX_MEMBERS} compressed members; refused")
