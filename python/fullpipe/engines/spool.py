"""Rows that arrive during a run, spooled to a file so that memory use stays constant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fullpipe.engines.tables import arrow_table


class SpooledRows:
    """Collects rows of one table in an unnamed temporary file, which is deleted with the object."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        import tempfile  # most runs spool no rows

        # Stays open as long as this object; a table that maps the file does not need it open.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._writer: pa.RecordBatchStreamWriter | None = None

    def __call__(self, columns: Mapping[str, Any]) -> None:
        """Adds rows, in the native module's column format. Raises OSError if the disk is full."""
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, self._schema)
        self._writer.write_table(arrow_table(columns, self._schema))

    def with_last(self, last: pa.Table) -> pa.Table:
        """All rows, with those of `last` at the end. They are memory-mapped, not loaded."""
        if self._writer is None:
            return last
        self._writer.close()
        self._file.flush()
        mapped = pa.memory_map(f"/proc/self/fd/{self._file.fileno()}")
        return pa.concat_tables([pa.ipc.open_stream(mapped).read_all(), last])
