"""Arrow tables from the columns of the native module.

Arrays are made from buffers: `pa.array()` imports pandas, which takes longer than many runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fullpipe.base.columns import column
from fullpipe.recording.recording import OPTIONAL_TABLES, TABLES, schema_of

_TYPES = {"u64": pa.uint64(), "i64": pa.int64(), "f64": pa.float64()}


def arrow_tables(raw: Mapping[str, Any]) -> dict[str, pa.Table]:
    """Every table of a recording from a dict table -> column -> (kind, values)
    (crates/fullpipe-py/src/tables.rs)."""
    names = (*TABLES, *(name for name in OPTIONAL_TABLES if name in raw))
    return {name: arrow_table(raw[name], schema_of(name, raw[name])) for name in names}


def arrow_table(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """One table from a dict column -> (kind, values)."""
    return pa.table([_array(*columns[name]) for name in schema.names], schema=schema)


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    """A table of whatever columns there are, from a dict column -> (kind, values)."""
    return pa.table({name: _array(*column) for name, column in columns.items()})


def _array(kind: str, values: Any) -> pa.Array:
    if kind == "text":
        return column(values, pa.string())
    arrow = _TYPES[kind.removeprefix("opt_")]
    if kind.startswith("opt_"):
        data, valid = values
        bits = np.packbits(np.frombuffer(valid, np.uint8), bitorder="little")
        buffers = [pa.py_buffer(bits), pa.py_buffer(data)]
        return pa.Array.from_buffers(arrow, len(valid), buffers)
    return pa.Array.from_buffers(arrow, len(values) // 8, [None, pa.py_buffer(values)])
