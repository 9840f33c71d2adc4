"""The tables of a sweep's store: their columns, and their Parquet files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fullpipe.base.columns import column
from fullpipe.base.errors import UserError
from fullpipe.recording import checksums
from fullpipe.recording.parquet import opened_parquet
from fullpipe.sweep import applications
from fullpipe.sweep.measures import Rows

#: What a store has of every run; `key` names the run.
SCHEMAS: dict[str, pa.Schema] = {name: rows.schema for name, rows in Rows().take().items()}
#: Columns of what a sweep asks for that list the flows with the value of an axis begin so.
OWN_FLOWS = "flows_with_"
#: The column with the duration of cells that ran longer than their scenario says (`until_settled`).
LENGTHENED = "duration_until_settled"
#: What few runs have: figures of pages, streams, probes and groups; and what experiments measure
#: besides: the values of expressions, and the distributions that plots need. `version` is that of
#: the metrics.
EXTRA: dict[str, pa.Schema] = {
    "applications": applications.SCHEMA,
    "values": pa.schema(
        [
            ("key", pa.string()),
            ("name", pa.string()),
            ("version", pa.string()),
            ("value", pa.float64()),
        ]
    ),
    "distributions": pa.schema(
        [
            ("key", pa.string()),
            ("name", pa.string()),
            ("version", pa.string()),
            ("values", pa.list_(pa.float64())),
        ]
    ),
}


def read(file: Path, table: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows in a file, or some of their columns. `table`: the one of SCHEMAS or EXTRA that the
    file must hold.

    Raises UserError naming a damaged file and what to do."""
    with _opened(file) as opened:
        if table is not None and opened.schema_arrow != {**SCHEMAS, **EXTRA}[table]:
            raise ValueError(f"has other columns than this program's {table}")
        # Threads would keep a sweep from forking its workers.
        return opened.read(columns, use_threads=False)


def read_part(part: Path) -> dict[str, pa.Table]:
    """All tables of a part. Raises UserError as `read`."""
    names = [*SCHEMAS, *(name for name in EXTRA if (part / f"{name}.parquet").exists())]
    return {name: read(part / f"{name}.parquet", name) for name in names}


def schema_of(file: Path) -> pa.Schema:
    """The columns of a file. Raises UserError as `read`."""
    with _opened(file) as opened:
        return opened.schema_arrow


def unique_rows(rows: pa.Table, identity: Sequence[str]) -> pa.Table:
    """The rows in the order of these columns, of those that are equal in them the first."""
    number = column(np.arange(rows.num_rows), pa.uint64())
    numbered = rows.select(identity).append_column("_row", number)
    first = numbered.group_by(identity, use_threads=False).aggregate([("_row", "min")])
    unique = rows.take(first["_row_min"]).sort_by([(name, "ascending") for name in identity])
    return unique.combine_chunks()


def verify(file: Path) -> None:
    """Raises UserError naming a damaged file and what to do."""
    try:
        checksums.verify(file)
    except (OSError, checksums.DamagedError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise damaged(getattr(error, "file", file), reason) from None


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[pq.ParquetFile]:
    verify(file)
    try:
        with opened_parquet(file) as opened:
            yield opened
    except (OSError, pa.ArrowException, ValueError) as error:
        raise damaged(file, str(error)) from None


def damaged(file: Path, reason: str) -> UserError:
    """The error that a file of a store is damaged."""
    return UserError(
        f"{file}: damaged: {reason.splitlines()[0]}; the sweep's own command sets it aside and "
        "runs what it held again"
    )
