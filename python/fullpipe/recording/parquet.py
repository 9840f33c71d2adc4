"""Tables as Parquet files, to the byte as `pyarrow.parquet` writes and as it reads them.

That module loads the file systems of clouds first, TLS among them, which takes longer than a short
run takes to be written; the compiled writer and reader below it are the same. Knows no table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

#: What `write_table` gives the writer where nothing is said.
_WRITER: dict[str, Any] = {
    "version": "2.6", "use_dictionary": True, "write_statistics": True,
    "use_deprecated_int96_timestamps": False, "use_byte_stream_split": False,
    "writer_engine_version": "V2", "data_page_version": "1.0", "use_compliant_nested_type": True,
    "store_schema": True, "write_page_index": False, "write_page_checksum": False,
}  # fmt: skip


def write_parquet(
    table: pa.Table, file: Path, row_group_size: int | None = None, **options: Any
) -> None:
    """Writes the table, compressed by zstd unless the options of `write_table` say otherwise.

    Raises OSError where the file cannot be written."""
    options = {"compression": "zstd", **options}
    try:
        from pyarrow._parquet import ParquetWriter

        with pa.OSFile(str(file), "wb") as sink:
            writer = ParquetWriter(sink, table.schema, **{**_WRITER, **options})
            writer.write_table(table, row_group_size=row_group_size)
            writer.close()
    except (ImportError, TypeError):  # another version's writer
        import pyarrow.parquet as pq

        pq.write_table(table, file, row_group_size=row_group_size, **options)


@contextlib.contextmanager
def opened_parquet(file: Path) -> Iterator[ParquetFile]:
    """A file to read. Raises OSError where it cannot be read, ArrowException or ValueError where it
    is damaged."""
    with pa.OSFile(str(file), "rb") as source:
        yield ParquetFile(source)


class ParquetFile:
    """A Parquet file that is open."""

    def __init__(self, source: pa.NativeFile) -> None:
        from pyarrow._parquet import ParquetReader

        self._reader = ParquetReader()
        self._reader.open(source, pre_buffer=False)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._reader.schema_arrow

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The table, or these of its columns, which are no lists. Without threads: workers are
        forked from processes that read."""
        find = self._reader.column_name_idx
        places = None if columns is None else [find(name) for name in columns]
        return self._reader.read_all(places, use_threads=False)
