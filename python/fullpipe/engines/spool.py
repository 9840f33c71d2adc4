"""Rows that come while a run goes on: kept in a file, so that memory does not grow with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fullpipe.engines.tables import arrow_table


class SpooledRows:
    """Takes columns of one table, some rows at a time; its file has no name and goes with it."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        import tempfile  # most runs have no rows to keep

        # Open as long as this is; the table that maps it needs it no more.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._writer: pa.RecordBatchStreamWriter | None = None

    def __call__(self, columns: Mapping[str, Any]) -> None:
        """Adds rows, as the native module hands columns over. Raises OSError where the disk is
        full."""
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, self._schema)
        self._writer.write_table(arrow_table(columns, self._schema))

    def with_last(self, last: pa.Table) -> pa.Table:
        """All rows, those of `last` behind the others; read from the file when they are used."""
        if self._writer is None:
            return last
        self._writer.close()
        self._file.flush()
        mapped = pa.memory_map(f"/proc/self/fd/{self._file.fileno()}")
        return pa.concat_tables([pa.ipc.open_stream(mapped).read_all(), last])
