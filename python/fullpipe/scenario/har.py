"""Pages from HAR files (HTTP Archive 1.2), as browsers and tools save what they loaded.

What a size means depends on who wrote the file:

- Chrome and browsertime (chrome-har) have `response._transferSize`, the whole answer on the wire.
  With HTTP/2 and 3 Chrome's `bodySize` and `headersSize` are -1. 0 is an answer from the cache.
- WebPageTest has `_bytesIn` beside `response`, the whole answer; old files have it as text.
- Firefox writes the whole answer, headers included, as `bodySize` (har-builder.js,
  network-response-listener.js); old versions (47, 54) the body alone. It adds `cache.afterRequest`
  to answers from the cache, and has no request headers where it sent none. What HTTP/2 pushed has
  status 0 and a body.
- Safari says in `_fetchType` whether an answer came from a cache.
- Internet Explorer and some proxies write the unpacked size as `bodySize`; the field
  Content-Length has the size on the wire.
- Others: `headersSize` and `bodySize`, as the specification says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.base.filekind import no_such_file
from fullpipe.base.supplied import open_regular
from fullpipe.base.units import counted
from fullpipe.base.unpacking import TooLargeError, TruncatedError, UnpackError, unpacked

#: Larger files hold bodies; parsing takes several times their size in memory.
MAX_FILE_BYTES = 32 * 2**20
MAX_ENTRIES = 10_000
#: Answers that name another address, which the browser then asks for (RFC 9110, section 15.4).
_REDIRECTS = (301, 302, 303, 307, 308)
#: Answers that have no body (RFC 9110, section 6.4.1).
_BODILESS = (204, 205, 304)
#: What Safari writes as `_fetchType` beside "Network Load".
_NOT_LOADED = ("Memory Cache", "Disk Cache", "Service Worker", "Inspector Override")
#: Internet Explorer groups the digits of a Content-Length.
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
#: Scheme of an address (RFC 3986, section 3.1).
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
#: Page loads that an error lists.
_LISTED = 12


@dataclass(frozen=True)
class HarPage:
    """One page load: `levels` as of a `[[page]]`, and sentences on what was left out."""

    levels: list[list[str]]
    notes: list[str]


@dataclass(frozen=True)
class _Answer:
    """`wire_bytes` is None where nothing came over the network, for the reason `why`."""

    start: str
    status: int
    wire_bytes: int | None
    why: str = ""


def levels_of_har(path: Path, page: str | None = None) -> list[list[str]]:
    """The levels of `page_of_har`."""
    return page_of_har(path, page).levels


def page_of_har(path: Path, page: str | None = None) -> HarPage:
    """The page load `page` of a file, by its `pageref`, or the only one.

    The sizes are those of whole answers on the wire, headers included, in the order in which they
    were asked for. Redirects before the document are a level each, then the document, then all
    else: a HAR does not say what waited for what. Answers without a body count, as each costs a
    request; answers from the cache and requests without an answer are left out.

    Raises UserError where the file cannot be read, is too large or no HAR, or has several page
    loads of which none is chosen."""
    log = _log(path)
    entries = list(enumerate(log["entries"]))
    loads = dict.fromkeys(_pageref(entry) for _, entry in entries)
    loads.pop(None, None)
    notes = []
    if page is not None and page not in loads:
        names = ", ".join(map(repr, loads)) or "none: its answers name no page"
        raise UserError(f"--har-page {page}: no page load of {path}; it has {names}")
    if page is None and len(loads) > 1:
        raise UserError(_ambiguous(path, log, entries, [load for load in loads if load]))
    if not loads:
        _check_ungrouped(path, log)
    if page is not None:
        unnamed = sum(_pageref(entry) is None for _, entry in entries)
        if unnamed:
            notes.append(f"{counted(unnamed, 'answer')} of no page left out")
        entries = [(i, entry) for i, entry in entries if _pageref(entry) == page]
    answers = _answers(path, log, entries)
    for why in dict.fromkeys(answer.why for answer in answers if answer.why):
        count = sum(answer.why == why for answer in answers)
        notes.append(f"{counted(count, 'answer')} left out: {why}")
    levels = _levels([answer for answer in answers if answer.wire_bytes is not None])
    if not levels:
        why = f" ({'; '.join(notes)})" if notes else ""
        raise UserError(f"{path}: log.entries: no answer came over the network{why}")
    return HarPage(levels, notes)


def _levels(answers: Sequence[_Answer]) -> list[list[str]]:
    sizes = [f"{answer.wire_bytes}B" for answer in answers]
    redirects = 0
    while redirects < len(answers) - 1 and answers[redirects].status in _REDIRECTS:
        redirects += 1
    first, rest = sizes[: redirects + 1], sizes[redirects + 1 :]
    return [*([size] for size in first), *([rest] if rest else [])]


def _ambiguous(
    path: Path, log: dict[str, Any], entries: list[tuple[int, Any]], loads: list[str]
) -> str:
    """What is wrong with a file of several page loads, with a list of them."""
    listed = []
    for load in loads[:_LISTED]:
        answers = _answers(path, log, [(i, e) for i, e in entries if _pageref(e) == load])
        sizes = [answer.wire_bytes for answer in answers if answer.wire_bytes is not None]
        listed.append(f"{load!r} ({counted(len(sizes), 'answer')}, {sum(sizes)} B)")
    more = f" and {len(loads) - _LISTED} more" if len(loads) > _LISTED else ""
    return (
        f"{path}: has {len(loads)} page loads; choose one with --har-page: {', '.join(listed)}"
        f"{more}"
    )


def _check_ungrouped(path: Path, log: dict[str, Any]) -> None:
    """Raises UserError where answers that name no page are those of several."""
    pages = log.get("pages")
    if isinstance(pages, list) and len(pages) > 1:
        raise UserError(
            f"{path}: log.pages: {len(pages)}, of which no answer names its own; give every one in "
            "log.entries its pageref, or save one page load"
        )


def _log(path: Path) -> dict[str, Any]:
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise UserError(
                f"{path}: {size / 2**20:.0f} MiB; a HAR of more than {MAX_FILE_BYTES >> 20} MiB "
                "holds bodies: save it without content"
            )
        with open_regular(path) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    content = _unpacked(path, content)
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: {no_such_file('HAR', content) or f'not JSON: {error}'}") from None
    log = document.get("log") if isinstance(document, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(log, dict) or not isinstance(entries, list) or not entries:
        kind = no_such_file("HAR", document)
        raise UserError(f"{path}: {kind or 'log.entries: is missing or empty; this is no HAR'}")
    if len(entries) > MAX_ENTRIES:
        raise UserError(f"{path}: log.entries: {len(entries)}, at most {MAX_ENTRIES}")
    return log


def _unpacked(path: Path, content: bytes) -> bytes:
    try:
        return unpacked(content, MAX_FILE_BYTES)
    except (TooLargeError, TruncatedError):
        raise UserError(
            f"{path}: its gzip is cut off, or holds more than {MAX_FILE_BYTES >> 20} MiB: save the "
            "HAR without content"
        ) from None
    except UnpackError as error:
        raise UserError(f"{path}: {error}") from None


def _pageref(entry: Any) -> str | None:
    """The page load of an answer; some tools number them."""
    page = entry.get("pageref") if isinstance(entry, dict) else None
    is_name = isinstance(page, str | int) and not isinstance(page, bool)
    return str(page) or None if is_name else None


def _answers(path: Path, log: dict[str, Any], entries: Sequence[tuple[int, Any]]) -> list[_Answer]:
    """In the order of their starts, where the file has them all, which it need not keep."""
    creator = log.get("creator")
    name = creator.get("name") if isinstance(creator, dict) else None
    is_firefox = isinstance(name, str) and "firefox" in name.lower()
    counts_headers = is_firefox and not any(map(_is_body_alone, log["entries"]))
    answers = [
        _answer(e, f"{path}: log.entries.{i}", is_firefox, counts_headers) for i, e in entries
    ]
    try:
        return sorted(answers, key=lambda answer: datetime.fromisoformat(answer.start))
    except (ValueError, TypeError):
        return answers


def _is_body_alone(entry: Any) -> bool:
    """Whether a Firefox wrote the body alone as `bodySize`, as old versions did."""
    response = entry.get("response") if isinstance(entry, dict) else None
    if not isinstance(response, dict) or not response.get("headersSize"):
        return False
    length = _content_length(response)
    return length > 0 and response.get("bodySize") == length and response.get("status") == 200


def _answer(entry: Any, where: str, is_firefox: bool, counts_headers: bool) -> _Answer:
    response = entry.get("response") if isinstance(entry, dict) else None
    start = str(entry.get("startedDateTime", "")) if isinstance(entry, dict) else ""
    if isinstance(entry, dict) and "response" in entry and response in (None, {}):
        return _Answer(start, 0, None, "none came")
    if not isinstance(response, dict):
        raise UserError(f"{where}.response: is missing")
    status = _number(response, "status", f"{where}.response")
    request = entry.get("request")
    request = request if isinstance(request, dict) else {}
    url = request.get("url")
    if isinstance(url, str) and _is_local(url):
        return _Answer(start, status, None, "no address in the network")
    whole = _number(response, "_transferSize", f"{where}.response")
    body = _number(response, "bodySize", f"{where}.response")
    if "status" in response and status <= 0 and max(whole, body) <= 0:
        return _Answer(start, status, None, "none came")
    if whole < 0:
        whole = _number(entry, "_bytesIn", where) or -1
    if whole == 0 or _is_cached(entry, response, status, is_firefox):
        return _Answer(start, status, None, "from the cache")
    if whole < 0:
        has_body = status not in _BODILESS and request.get("method") != "HEAD"
        whole = _by_parts(response, status, f"{where}.response", counts_headers, has_body)
    return _Answer(start, status, whole)


def _is_local(url: str) -> bool:
    """Whether an address has a scheme of no network, such as `data:` or `chrome-extension:`."""
    scheme = _SCHEME.match(url)
    return scheme is not None and scheme[1].lower() not in ("http", "https", "ws", "wss")


def _is_cached(
    entry: dict[str, Any], response: dict[str, Any], status: int, is_firefox: bool
) -> bool:
    """A 304 came over the network, though its content is in the cache."""
    cache = entry.get("cache")
    cache = cache if isinstance(cache, dict) else {}
    if entry.get("_fromCache") or entry.get("_fetchType") in _NOT_LOADED:
        return True
    if status == 304:
        return False
    request = entry.get("request")
    if is_firefox and isinstance(request, dict) and request.get("headersSize", -1) is None:
        return True
    if is_firefox and "afterRequest" in cache:
        return True
    body = response.get("bodySize", -1)
    return bool(cache.get("beforeRequest")) and isinstance(body, int | float) and body <= 0


def _by_parts(
    response: dict[str, Any], status: int, where: str, counts_headers: bool, has_body: bool
) -> int:
    headers = _number(response, "headersSize", where)
    body = _number(response, "bodySize", where)
    if has_body and counts_headers and body >= headers > 0:
        return body
    if headers <= 0:
        headers = _headers_as_text(response)
    content = response.get("content")
    unpacked = _number(content, "size", f"{where}.content") if isinstance(content, dict) else -1
    if body < 0 or body == unpacked:
        # RFC 9110, section 8.6: the length of the body on the wire.
        length = _content_length(response)
        if length >= 0 and (body < 0 or length < body):
            body = length
        elif body < 0 and isinstance(content, dict):
            # HAR 1.2: how many bytes compression saved.
            saved = _number(content, "compression", f"{where}.content")
            body = max(0, unpacked - max(saved, 0))
        else:
            body = max(body, unpacked)
    return headers + (max(0, body) if has_body else 0) or _least(response, status)


def _content_length(response: dict[str, Any]) -> int:
    """The Content-Length of an answer; -1 where it has none."""
    headers = response.get("headers")
    for line in headers if isinstance(headers, list) else []:
        if isinstance(line, dict) and str(line.get("name")).lower() == "content-length":
            value = str(line.get("value")).strip()
            value = value.replace(",", "") if _GROUPED.fullmatch(value) else value
            return int(value) if re.fullmatch(r"[0-9]{1,10}", value) else -1
    return -1


def _headers_as_text(response: dict[str, Any]) -> int:
    """Bytes of the headers in HTTP/1; with HTTP/2 and 3 the most that they can take."""
    headers = response.get("headers")
    lines = headers if isinstance(headers, list) else []
    return sum(
        len(f"{line.get('name', '')}: {line.get('value', '')}\r\n".encode("utf-8", "replace"))
        for line in lines
        if isinstance(line, dict)
    )


def _least(response: dict[str, Any], status: int) -> int:
    """An answer without sizes: its status line and an empty line."""
    return len(f"HTTP/1.1 {max(status, 0):03d} {response.get('statusText') or ''}"[:200]) + 4


def _number(table: dict[str, Any], key: str, where: str) -> int:
    """A number of a table; -1 where it is absent, null or below 0, which tools write for unknown
    ones. Old files of WebPageTest have numbers as text."""
    value = table.get(key)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 10:
        value = int(value)
    if value is None or value == "":
        return -1
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 2**32:
        raise UserError(f"{where}.{key}: must be a number from -1 to 2^32")
    return max(-1, int(value))
