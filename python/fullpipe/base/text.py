"""Text that other programs wrote, decoded. Knows no format."""

from __future__ import annotations

import codecs

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decoded(content: bytes) -> str:
    """UTF-8 with or without a byte-order mark, or UTF-16 with one, which PowerShell writes for
    `program > file`. Raises UnicodeDecodeError, a ValueError."""
    return content.decode("utf-16" if content.startswith(_UTF_16) else "utf-8-sig")


def is_utf_16(content: bytes) -> bool:
    """Whether a text is in UTF-16, by its byte-order mark or the zeros of its first letters."""
    return content.startswith(_UTF_16) or content[1:4:2] == b"\0\0" or content[0:3:2] == b"\0\0"
