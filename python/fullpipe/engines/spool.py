"""Rows that arrive during a run, spooled to files so that memory does not grow with its length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

import pyarrow as pa

from fullpipe.engines.tables import arrow_table
from fullpipe.recording.recording import PiecewiseTables, schema_of


class SpooledRows:
    """Collects rows of tables in unnamed temporary files, which are deleted with the object."""

    def __init__(self) -> None:
        self._spools: dict[str, _Spool] = {}

    def __call__(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        """Adds rows of tables, in the native module's column format. Raises OSError if the disk is
        full, KeyError for an unknown table."""
        for name, columns in rows.items():
            schema = schema_of(name, columns)
            if name not in self._spools:
                self._spools[name] = _Spool(schema)
            self._spools[name].add(arrow_table(columns, schema))

    def with_last(self, last: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
        """The tables, with the rows of `last` at their ends."""
        return _Tables(self._spools, last) if self._spools else last


class _Spool:
    """The rows of one table so far."""

    def __init__(self, schema: pa.Schema) -> None:
        import tempfile  # most runs spool no rows

        # Stays open as long as this object.
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._writer = pa.ipc.new_stream(self._file, schema)
        self._is_open = True

    def add(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)

    def pieces(self) -> Iterator[pa.Table]:
        """The rows as they came, read again by each call."""
        if self._is_open:
            self._writer.close()
            self._file.flush()
            self._is_open = False
        with (
            pa.OSFile(f"/proc/self/fd/{self._file.fileno()}") as file,
            pa.ipc.open_stream(file) as stream,
        ):
            for batch in stream:
                yield pa.Table.from_batches([batch])


class _Tables(PiecewiseTables):
    """Tables of which some have rows in files."""

    def __init__(self, spools: Mapping[str, _Spool], last: Mapping[str, pa.Table]) -> None:
        self._spools = spools
        self._last = last

    def __getitem__(self, name: str) -> pa.Table:
        return pa.concat_tables(self.pieces(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def pieces(self, name: str) -> Iterator[pa.Table]:
        if name in self._spools:
            yield from self._spools[name].pieces()
        yield self._last[name]
