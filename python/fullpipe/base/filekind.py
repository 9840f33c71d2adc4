"""Names a file for what it is: the formats of network tools, told apart by their content.

A command that was given another kind of file says which kind it got. Reads no format.
"""

from __future__ import annotations

import json
import re
from typing import Any

from fullpipe.base.text import decoded, is_utf_16

#: First bytes -> what begins so.
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\xa1\xb2\xc3\xd4", "a capture of packets (pcap)"),
    (b"\xd4\xc3\xb2\xa1", "a capture of packets (pcap)"),
    (b"\xa1\xb2\x3c\x4d", "a capture of packets (pcap)"),
    (b"\x4d\x3c\xb2\xa1", "a capture of packets (pcap)"),
    (b"\x0a\x0d\x0d\x0a", "a capture of packets (pcapng)"),
    (b"PAR1", "a Parquet file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd"),
    (b"\xfd7zXZ\0", "a file compressed by xz"),
    (b"\x1f\x8b", "a file compressed by gzip"),
    (b"BZh", "a file compressed by bzip2"),
    (b"\x7fELF", "a program or a library"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"<!DOCTYPE html", "a page (HTML)"),
    (b"<html", "a page (HTML)"),
    (b"<?xml", "an XML document"),
)
#: Words of what a tool prints for people -> what it is, and how to get what programs read.
_TEXTS: tuple[tuple[bytes, str], ...] = (
    (b"Responsiveness:", "the text that networkQuality prints (-c writes JSON)"),
    (b"Connecting to host ", "the text that iperf3 prints (--json writes what is read)"),
    (b"Server listening on ", "the text that iperf3 prints (--json writes what is read)"),
    (b"[ ID] Interval", "the text that iperf prints (iperf3 --json writes what is read)"),
    (b"Summary of ", "the text that Flent prints (its .flent.gz is read)"),
)
_BEGIN_BYTES, _DAMAGED_BYTES = 4096, 1 << 16
#: RFC 7464: a text sequence of JSON begins each record so; qlog's streaming form does.
_RECORD = b"\x1e"


def no_such_file(wanted: str, content: Any) -> str | None:
    """What is wrong with a file that should be `wanted` and is of another kind; None where it is of
    that kind, or of none that is known. `content` is its bytes, or the value in its JSON."""
    kind = kind_of(content)
    return None if kind is None or wanted in kind else f"is {kind}, no {wanted}"


def kind_of(content: Any) -> str | None:
    """The kind of a file by its bytes or the value in its JSON, such as `a HAR (a browser's record
    of page loads)`; None if it is none of those known."""
    if not isinstance(content, bytes):
        return _kind_of_json(content)
    for magic, kind in _MAGIC:
        if content.startswith(magic):
            return kind
    try:
        content = decoded(content).encode() if is_utf_16(content) else content
    except UnicodeDecodeError:
        return None
    text = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(_RECORD):
        first = text.lstrip(_RECORD).splitlines()[:1]
        return _kind_of_json(_json(first[0])) if first else None
    if not text.startswith((b"{", b"[")):
        lines = [line.lstrip() for line in text[:_BEGIN_BYTES].splitlines()]
        return next(
            (kind for words, kind in _TEXTS if any(line.startswith(words) for line in lines)), None
        )
    # A whole document, else the first line of one with a record a line.
    whole = _json(text)
    if whole is not None:
        return _kind_of_json(whole)
    return _kind_of_json(_json(text.splitlines()[0])) or _kind_of_damaged(text[:_DAMAGED_BYTES])


def _kind_of_damaged(text: bytes) -> str | None:
    """The kind of a JSON document that is cut off or was pasted with something else, by keys."""
    for kind, keys in _KINDS:
        names = [key.rpartition(".")[2] for key in keys]
        if len(names) > 1 and all(re.search(rf'"{name}"\s*:'.encode(), text) for name in names):
            return f"{kind} that is cut off or damaged"
    return None


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _kind_of_json(value: Any) -> str | None:
    if isinstance(value, list):
        heads = value[:1]
        if heads and (kind := _kind_of_json(heads[0]) if isinstance(heads[0], dict) else None):
            return f"a list of which each item is {kind}"
        if heads and isinstance(heads[0], dict) and heads[0].keys() & {"ifname", "kind", "handle"}:
            return "output of tc or ip (-json)"
        return None
    if not isinstance(value, dict):
        return None
    for kind, keys in _KINDS:
        if all(_has(value, key) for key in keys):
            return kind
    return None


#: A kind -> the keys that all files of it have; of several kinds the first that fits. A key with a
#: dot lies in a table.
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a Flent file", ("metadata", "results", "x_values")),
    ("a HAR (a browser's record of page loads)", ("log.entries",)),
    ("an iperf3 result", ("start.test_start", "intervals")),
    ("an iperf3 result", ("start", "intervals", "end")),
    ("an iperf3 result of a test that failed", ("start", "error")),
    ("an iperf3 result (--json-stream)", ("event", "data")),
    ("a networkQuality result", ("dl_throughput", "ul_throughput")),
    ("a networkQuality result", ("dl_throughput", "responsiveness")),
    ("a networkQuality result", ("ul_throughput", "responsiveness")),
    ("a networkQuality result", ("dl_responsiveness",)),
    ("a networkQuality result", ("dl_throughput", "dl_flows")),
    ("a networkQuality result", ("base_rtt", "interface_name")),
    ("a networkQuality result of a test that failed", ("error_domain", "interface_name")),
    ("a qlog", ("qlog_version",)),
    ("a qlog", ("qlog_format",)),
    ("a qlog", ("file_schema",)),
    ("an Ookla speedtest result", ("download.bandwidth", "upload.bandwidth")),
    ("a speedtest-cli result", ("download", "upload", "ping", "server")),
    ("an irtt result", ("round_trips", "stats")),
    ("a trace of Chrome's network log (NetLog)", ("constants", "events")),
    ("a trace of Chrome", ("traceEvents",)),
    ("a GeoJSON document", ("type", "features")),
)


def _has(value: dict[str, Any], key: str) -> bool:
    node: Any = value
    for part in key.split("."):
        if not isinstance(node, dict) or part not in node:
            return False
        node = node[part]
    return True
