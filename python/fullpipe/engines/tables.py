"""Columns as the native module hands them over, as Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute

from fullpipe.recording import TABLES


def arrow_tables(raw: Mapping[str, Any]) -> dict[str, pa.Table]:
    """Every table of a recording from a dict table -> column -> (kind, values)
    (crates/fullpipe-py/src/tables.rs)."""
    return {
        name: pa.table([_array(*raw[name][column]) for column in schema.names], schema=schema)
        for name, schema in TABLES.items()
    }


def _array(kind: str, values: Any) -> pa.Array:
    if kind == "text":
        return pa.array(values, pa.string())
    if kind == "opt_u64":
        data, valid = values
        mask = pa.array([not flag for flag in valid], pa.bool_())
        numbers = pa.Array.from_buffers(pa.uint64(), len(valid), [None, pa.py_buffer(data)])
        return pa.compute.if_else(mask, pa.scalar(None, pa.uint64()), numbers)
    arrow = pa.float64() if kind == "f64" else pa.uint64()
    return pa.Array.from_buffers(arrow, len(values) // 8, [None, pa.py_buffer(values)])
