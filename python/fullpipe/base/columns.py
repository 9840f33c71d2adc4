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
    values = np.frombuffer(data or b"", stored)[begin:end]
    values = values.astype(np.float64) if np.isnan(null) else values.copy()
    if array.null_count:
        values[~_bits(valid, begin, end)] = null
    return values


def _packed(truths: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    return np.packbits(truths, bitorder="little")


def _bits(buffer: pa.Buffer, begin: int, end: int) -> npt.NDArray[np.bool_]:
    bits = np.unpackbits(np.frombuffer(buffer or b"", np.uint8), bitorder="little")
    return bits[begin:end].astype(np.bool_)
