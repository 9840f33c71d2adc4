"""What a worker sends (worker.py), read and checked: its code may have forged every byte.

A frame is refused by the lengths in its head, before its content is read. Must never know what a
job is for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fullpipe.congestion.userfiles.worker import HEAD

#: Most bytes of a frame's JSON: layouts of tables, descriptions, words.
MAX_TEXT_BYTES = 1 << 20
#: Most bytes of the columns of a job's answer, and of a batch of rows (16,384 in fullpipe-sim).
MAX_BLOB_BYTES, MAX_ROWS_BYTES = 1 << 29, 1 << 26
#: Most characters of an error's words.
MAX_WORDS = 4000
_U64 = 1 << 64
#: What a kernel may not confine (fullpipe_sandbox::Missing).
_MISSING = ("files", "calls")


class ForgedError(ValueError):
    """A frame that no worker sends."""


class Frame(NamedTuple):
    """A checked frame. `value` by kind: `progress` simulated ns, `rows` the layout of tables,
    `bases` id -> address, `ready` what is not confined, `error` the words, `done` whatever the job
    gives."""

    kind: str
    value: Any
    blobs: list[bytes]
    #: Of an error: the simulator failed, not the algorithm.
    is_simulators: bool = False


@dataclass
class Frames:
    """Takes bytes as they come, and gives the whole frames."""

    most_blob_bytes: int = MAX_BLOB_BYTES
    #: The last simulated ns that there is; None: the job has no simulated time.
    end_ns: int | None = None
    _held: bytearray = field(default_factory=bytearray)
    #: Of a frame whose columns are still to come.
    _begun: _Text | None = None

    def add(self, data: bytes) -> list[Frame]:
        """The frames that are whole now. Raises ForgedError."""
        self._held += data
        frames = []
        while self._begun or self._begin():
            assert self._begun is not None
            if len(self._held) < self._begun.blob_bytes:
                break
            frames.append(self._begun.frame(bytes(self._take(self._begun.blob_bytes))))
            self._begun = None
        return frames

    def _begin(self) -> bool:
        """Reads the head and the text of a frame, if they are there."""
        if len(self._held) < HEAD.size:
            return False
        text_bytes, blob_bytes = HEAD.unpack_from(self._held)
        if text_bytes > MAX_TEXT_BYTES:
            raise ForgedError(f"{text_bytes} bytes of text; at most {MAX_TEXT_BYTES} are read")
        if len(self._held) < HEAD.size + text_bytes:
            return False
        self._take(HEAD.size)
        self._begun = _text_of(bytes(self._take(text_bytes)), blob_bytes, self.end_ns)
        most = {"rows": MAX_ROWS_BYTES, "done": self.most_blob_bytes}.get(self._begun.kind, 0)
        if blob_bytes > most:
            raise ForgedError(
                f"{blob_bytes} bytes of columns with {self._begun.kind!r}; at most {most} are read"
            )
        return True

    def _take(self, count: int) -> bytearray:
        data = self._held[:count]
        del self._held[:count]
        return data


class _Text(NamedTuple):
    """A frame without its columns."""

    kind: str
    value: Any
    is_simulators: bool
    sizes: list[int]
    blob_bytes: int

    def frame(self, blobs: bytes) -> Frame:
        pieces, begin = [], 0
        for size in self.sizes:
            pieces.append(blobs[begin : begin + size])
            begin += size
        return Frame(self.kind, self.value, pieces, self.is_simulators)


def _text_of(text: bytes, blob_bytes: int, end_ns: int | None) -> _Text:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ForgedError("a message that is no JSON") from None
    if not isinstance(content, dict):
        raise ForgedError("a message that is no object")
    sizes = content.pop("blobs", None)
    if not isinstance(sizes, list) or not all(map(_is_u64, sizes)) or sum(sizes) != blob_bytes:
        raise ForgedError("sizes that do not fit")
    is_simulators = content.pop("kind", None) == "run" if "error" in content else False
    if len(content) != 1:
        raise ForgedError("a message of no known kind")
    kind, value = content.popitem()
    check = _CHECKS.get(kind)
    if check is None:
        raise ForgedError("a message of no known kind")
    if not check(value):
        raise ForgedError(f"a wrong value of {kind!r}")
    if kind == "progress" and (end_ns is None or value > end_ns):
        raise ForgedError("a simulated time after the end")
    if kind == "error" and len(value) > MAX_WORDS:
        value = f"{value[:MAX_WORDS]} ... ({len(value)} characters)"
    return _Text(kind, value, is_simulators, sizes, blob_bytes)


def _is_u64(value: Any) -> bool:
    return type(value) is int and 0 <= value < _U64


def _is_layout(value: Any) -> bool:
    """Table -> column -> kind."""
    return isinstance(value, dict) and all(
        isinstance(columns, dict) and all(isinstance(kind, str) for kind in columns.values())
        for columns in value.values()
    )


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "progress": _is_u64,
    "rows": _is_layout,
    "bases": lambda value: isinstance(value, dict) and all(map(_is_u64, value.values())),
    "ready": lambda value: isinstance(value, list) and all(item in _MISSING for item in value),
    "error": lambda value: isinstance(value, str),
    "done": lambda _value: True,
}


def counts(value: Any) -> dict[str, int]:
    """Name -> number of events. Raises ForgedError."""
    if not isinstance(value, dict) or not all(map(_is_u64, value.values())):
        raise ForgedError("counts that are none")
    return dict(value)


def unpacked(layout: Any, blobs: Sequence[bytes]) -> dict[str, dict[str, Any]]:
    """Tables as the native module gives them, from `worker.packed`. Raises ForgedError where
    columns are missing, not of one length, or of no known kind."""
    if not _is_layout(layout):
        raise ForgedError("tables that are none")
    left = iter(blobs)
    try:
        tables = {table: _table(table, columns, left) for table, columns in layout.items()}
    except StopIteration:
        raise ForgedError("tables without their columns") from None
    if next(left, None) is not None:
        raise ForgedError("columns without a table")
    return tables


def _table(table: str, columns: Mapping[str, str], left: Iterator[bytes]) -> dict[str, Any]:
    lengths = set()
    result: dict[str, Any] = {}
    for column, kind in columns.items():
        values: Any = next(left)
        if kind == "text":
            values = _texts(values)
            lengths.add(8 * len(values))
        elif kind in ("opt_u64", "opt_i64", "opt_f64"):
            valid = next(left)
            lengths |= {len(values), 8 * len(valid)}
            values = (values, valid)
        elif kind in ("u64", "f64"):
            lengths.add(len(values))
        else:
            raise ForgedError(f"a column of {table[:80]!r} is of no kind")
        result[column] = (kind, values)
    if len(lengths) > 1 or any(length % 8 for length in lengths):
        raise ForgedError(f"columns of {table[:80]!r} differ in length")
    return result


def _texts(data: bytes) -> list[str]:
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        raise ForgedError("a column of text that is none") from None
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise ForgedError("a column of text that is none")
    return values
