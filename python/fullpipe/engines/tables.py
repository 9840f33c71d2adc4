"""Arrow tables from the columns of the native module.

Arrays are made from buffers: `pa.array()` imports pandas, which takes longer than many runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fullpipe.base.columns import column
from fullpipe.recording.recording import OPTIONAL_TABLES, TABLES


def arrow_tables(raw: Mapping[str, Any]) -> dict[str, pa.Table]:
    """Every table of a recording from a dict table -> column -> (kind, values)
    (crates/fullpipe-py/src/tables.rs)."""
    own = {name: schema for name, schema in OPTIONAL_TABLES.items() if name in raw}
    return {name: arrow_table(raw[name], schema) for name, schema in {**TABLES, **own}.items()}


def arrow_table(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """One table from a dict column -> (kind, values)."""
    return pa.table([_array(*columns[name]) for name in schema.names], schema=schema)


def _array(kind: str, values: Any) -> pa.Array:
    if kind == "text":
        return column(values, pa.string())
    if kind == "opt_u64":
        data, valid = values
        bits = np.packbits(np.frombuffer(valid, np.uint8), bitorder="little")
        buffers = [pa.py_buffer(bits), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.uint64(), len(valid), buffers)
    arrow = pa.float64() if kind == "f64" else pa.uint64()
    return pa.Array.from_buffers(arrow, len(values) // 8, [None, pa.py_buffer(values)])
