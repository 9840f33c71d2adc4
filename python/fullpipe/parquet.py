"""A table as a Parquet file, to the byte as `pyarrow.parquet.write_table` writes it.

That module loads the file systems of clouds first, TLS among them, which takes longer than a short
run takes to be written; the compiled writer below it is the same. Knows no table.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa


def write_parquet(table: pa.Table, file: Path) -> None:
    """Writes the table, compressed by zstd. Raises OSError where the file cannot be written."""
    try:
        from pyarrow._parquet import ParquetWriter

        with pa.OSFile(str(file), "wb") as sink:
            # What write_table() gives it where nothing is said.
            writer = ParquetWriter(
                sink, table.schema, version="2.6", compression="zstd", use_dictionary=True,
                write_statistics=True, use_deprecated_int96_timestamps=False,
                use_byte_stream_split=False, writer_engine_version="V2", data_page_version="1.0",
                use_compliant_nested_type=True, store_schema=True, write_page_index=False,
                write_page_checksum=False,
            )  # fmt: skip
            writer.write_table(table)
            writer.close()
    except (ImportError, TypeError):  # another version's writer
        import pyarrow.parquet as pq

        pq.write_table(table, file, compression="zstd")
