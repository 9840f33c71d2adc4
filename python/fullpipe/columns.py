"""Arrow's columns from plain values, made of buffers, and back.

`pyarrow.array` loads Pandas, to ask whether its values are Pandas': 0.3 s of CPU time in every
process of a sweep, as much as 300 of its cells. Knows no table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: Rows of text for which loading Arrow's functions, which encode it, takes longer than reading it.
_FEW = 1 << 16
_NUMBERS = {pa.float64(): np.float64, pa.int64(): np.int64, pa.uint64(): np.uint64}


def column(values: Sequence[Any] | npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """A column of text, numbers of 64 bits, or truths. None in text and NaN are null."""
    if kind == pa.string():
        return _text(list(values))
    if kind == pa.bool_():
        return _array(kind, len(values), None, _packed(np.asarray(values, dtype=np.bool_)))
    numbers = np.ascontiguousarray(values, dtype=_NUMBERS[kind])
    there = ~np.isnan(numbers) if kind == pa.float64() else None
    return _array(kind, len(numbers), there, numbers)


def empty(schema: pa.Schema) -> pa.Table:
    """A table without rows."""
    return pa.Table.from_batches([], schema=schema)


def as_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """What `to_numpy()` would give: float64 with NaN for null, or text. It would load pandas."""
    if pa.types.is_string(array.type):
        if len(array) <= _FEW:
            return np.array([*array.to_pylist(), None], dtype=object)[:-1]
        encoded = array.dictionary_encode()
        words = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
        text: npt.NDArray[Any] = words[_numbers(encoded.indices, np.dtype(np.int32), -1)]
        return text
    stored = np.dtype(np.float64 if pa.types.is_floating(array.type) else np.uint64)
    return _numbers(array, stored, np.nan)


def order(columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """The rows in the order of these columns, text by its bytes or whole numbers, the first
    counting most; equal ones as they were."""
    found: npt.NDArray[np.int64] = np.lexsort([_sortable(one) for one in reversed(columns)])
    return found


def first_of_equals(
    columns: Sequence[pa.Array], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Which of rows in the order of these columns are equal to none before."""
    new = np.zeros(len(rows), np.bool_)
    new[:1] = True
    for one in columns:
        values = _sortable(one)[rows]
        new[1:] |= values[1:] != values[:-1]
    return new


def taken(array: pa.Array, rows: npt.NDArray[np.int64]) -> pa.Array:
    """These rows of a column of text, numbers of 64 bits, truths, or lists of them.

    As `array.take`, which loads all of Arrow's functions: 0.05 s of CPU time."""
    valid, data = array.buffers()[:2]
    begin, end = array.offset, array.offset + len(array)
    there = _bits(valid, begin, end)[rows] if array.null_count else None
    if pa.types.is_boolean(array.type):
        return _array(array.type, len(rows), there, _packed(_bits(data, begin, end)[rows]))
    if pa.types.is_string(array.type) or pa.types.is_list(array.type):
        starts = np.frombuffer(data or bytes(4), np.int32)[begin : end + 1]
        lengths = np.diff(starts)[rows]
        ends = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(lengths, out=ends[1:])
        inner = np.repeat(starts[:-1][rows] - ends[:-1], lengths) + np.arange(ends[-1])
        if pa.types.is_string(array.type):
            bytes_ = np.frombuffer(array.buffers()[2] or b"", np.uint8)[inner]
            return _array(array.type, len(rows), there, ends, bytes_)
        valid = None if there is None else pa.py_buffer(_packed(there))
        buffers = [valid, pa.py_buffer(ends)]
        children = [taken(array.values, inner)]
        return pa.Array.from_buffers(array.type, len(rows), buffers, children=children)
    numbers = np.frombuffer(data or b"", np.uint64)[begin:end]
    return _array(array.type, len(rows), there, numbers[rows])


def _sortable(array: pa.Array) -> npt.NDArray[Any]:
    begin, end = array.offset, array.offset + len(array)
    if not pa.types.is_string(array.type):
        return np.frombuffer(array.buffers()[1] or b"", np.uint64)[begin:end]
    ends = np.frombuffer(array.buffers()[1] or bytes(4), np.int32)[begin : end + 1]
    width = int(ends[1] - ends[0]) if len(array) else 0
    if width and (np.diff(ends) == width).all():  # keys
        data = np.frombuffer(array.buffers()[2], np.uint8)[ends[0] : ends[-1]]
        return data.view(f"S{width}")
    return np.array([one.encode() for one in array.to_pylist()] or [b""])[: len(array)]


def text(ends: bytes, joined: bytes) -> pa.Array:
    """A column of text: where each value ends (32-bit, the beginning of the first included), and
    all of them in a row."""
    return _array(pa.string(), len(ends) // 4 - 1, None, ends, joined)


def _text(values: list[str | None]) -> pa.Array:
    try:
        # Most text is ASCII, and none of it missing.
        joined = "".join(values)  # type: ignore[arg-type]
        if joined.isascii():
            ends = np.zeros(len(values) + 1, dtype=np.int32)
            np.cumsum(np.fromiter(map(len, values), np.int32, len(values)), out=ends[1:])  # type: ignore[arg-type]
            return _array(pa.string(), len(values), None, ends, joined.encode())
    except TypeError:
        pass
    pieces = [b"" if value is None else value.encode() for value in values]
    ends = np.zeros(len(pieces) + 1, dtype=np.int32)
    np.cumsum([len(piece) for piece in pieces], out=ends[1:], dtype=np.int32)
    there = np.array([value is not None for value in values], dtype=np.bool_)
    return _array(pa.string(), len(values), there, ends, b"".join(pieces))


def _array(
    kind: pa.DataType, length: int, there: npt.NDArray[np.bool_] | None, *buffers: Any
) -> pa.Array:
    """`there`: which values are not null; None where all are."""
    valid = None
    if there is not None and not there.all():
        valid = pa.py_buffer(_packed(there))
    return pa.Array.from_buffers(kind, length, [valid, *map(pa.py_buffer, buffers)])


def _numbers(array: pa.Array, stored: np.dtype[Any], null: float) -> npt.NDArray[Any]:
    """The values of an array, float64 unless `null` is an index."""
    valid, data = array.buffers()
    begin, end = array.offset, array.offset + len(array)
    found = np.frombuffer(data or b"", stored)[begin:end]
    found = found.astype(np.float64) if np.isnan(null) else found.copy()
    if array.null_count:
        found[~_bits(valid, begin, end)] = null
    return found


def _packed(truths: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    return np.packbits(truths, bitorder="little")


def _bits(buffer: pa.Buffer, begin: int, end: int) -> npt.NDArray[np.bool_]:
    bits = np.unpackbits(np.frombuffer(buffer or b"", np.uint8), bitorder="little")
    return bits[begin:end].astype(np.bool_)
