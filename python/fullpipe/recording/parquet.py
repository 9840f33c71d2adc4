"""Reads and writes local Parquet files with Arrow. Knows no table.

Arrow would take a path such as `a:b/flows.parquet` for a URI of another file system.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from fullpipe.base.supplied import check_regular

#: A week of samples ten times a second has a hundred such groups.
_GROUP_ROWS = 1 << 16


def write_parquet(table: pa.Table, file: Path, **options: Any) -> None:
    """Writes the table, compressed by zstd unless the options of `write_table` differ, and with
    checksums of its pages.

    Raises OSError if the file cannot be written."""
    options = {"compression": "zstd", "write_page_checksum": True, **options}
    pq.write_table(table, file, filesystem=LocalFileSystem(), **options)


def write_pieces(pieces: Iterable[pa.Table], schema: pa.Schema, file: Path) -> None:
    """Writes tables one after another into a file, as `write_parquet` of all of them would, with a
    row group for some hundred thousand rows: only so many are in memory.

    Raises OSError if the file cannot be written."""
    options = {"compression": "zstd", "write_page_checksum": True}
    with pq.ParquetWriter(file, schema, filesystem=LocalFileSystem(), **options) as writer:
        waiting: list[pa.Table] = []
        for piece in pieces:
            waiting.append(piece)
            if sum(batch.num_rows for batch in waiting) >= _GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
    pa.default_memory_pool().release_unused()


def opened_parquet(file: Path) -> pq.ParquetFile:
    """A file to read, to be closed. Raises OSError if it cannot be read, ArrowException or
    ValueError where it is damaged."""
    check_regular(file)
    return pq.ParquetFile(file, filesystem=LocalFileSystem(), page_checksum_verification=True)
