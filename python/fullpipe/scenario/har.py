"""Pages from HAR files (HTTP Archive 1.2), as browsers save what they loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError

#: Larger files hold bodies; parsing takes several times their size in memory.
MAX_FILE_BYTES = 32 * 2**20
MAX_ENTRIES = 10_000


def levels_of_har(path: Path) -> list[list[str]]:
    """The sizes of a page's answers, headers included: the first document, then all else, in the
    order of the file, as `levels` of a `[[page]]`. An answer whose size is not told (-1) counts its
    content's size; one from the cache (0 bytes and no content) is left out.

    A HAR says no more of what waited for what than when each began, so there are two levels.
    Raises UserError where the file cannot be read, is too large, or is no HAR."""
    entries = _entries(path)
    sizes = [_bytes(entry, f"{path}: log.entries.{i}") for i, entry in enumerate(entries)]
    asked = [f"{size}B" for size in sizes if size > 0]
    if not asked:
        raise UserError(f"{path}: log.entries: none has a size above 0")
    document, *rest = asked
    return [[document], rest] if rest else [[document]]


def _entries(path: Path) -> list[Any]:
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise UserError(
                f"{path}: {size / 2**20:.0f} MiB; a HAR of more than {MAX_FILE_BYTES >> 20} MiB "
                "holds bodies: save it without content"
            )
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        document = json.loads(content)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    log = document.get("log") if isinstance(document, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{path}: log.entries: is missing or empty; this is no HAR")
    if len(entries) > MAX_ENTRIES:
        raise UserError(f"{path}: log.entries: {len(entries)}, at most {MAX_ENTRIES}")
    return entries


def _bytes(entry: Any, where: str) -> int:
    response = entry.get("response") if isinstance(entry, dict) else None
    if not isinstance(response, dict):
        raise UserError(f"{where}.response: is missing")
    body = _number(response.get("bodySize", -1), f"{where}.response.bodySize")
    if body < 0:
        content = response.get("content")
        told = content.get("size", 0) if isinstance(content, dict) else 0
        body = max(0, _number(told, f"{where}.response.content.size"))
    headers = _number(response.get("headersSize", -1), f"{where}.response.headersSize")
    return body + max(0, headers) if body else 0


def _number(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1 <= value <= 2**32:
        raise UserError(f"{where}: must be a number of bytes from -1 to 2^32")
    return int(value)
