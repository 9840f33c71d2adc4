"""Reads and writes local Parquet files with Arrow. Knows no table.

Arrow would take a path such as `a:b/flows.parquet` for a URI of another file system.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem


def write_parquet(table: pa.Table, file: Path, **options: Any) -> None:
    """Writes the table, compressed by zstd unless the options of `write_table` differ.

    Raises OSError if the file cannot be written."""
    options = {"compression": "zstd", **options}
    pq.write_table(table, file, filesystem=LocalFileSystem(), **options)


def opened_parquet(file: Path) -> pq.ParquetFile:
    """A file to read, to be closed. Raises OSError if it cannot be read, ArrowException or
    ValueError where it is damaged."""
    return pq.ParquetFile(file, filesystem=LocalFileSystem(), page_checksum_verification=True)
