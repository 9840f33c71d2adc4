"""The tables of a sweep's store as Arrow, for whoever reads them.

What writes them does without Arrow, which takes longer to load than a hundred short runs: nothing
that every sweep goes through imports this module.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fullpipe import _native
from fullpipe.base.columns import as_numpy, column
from fullpipe.base.errors import UserError
from fullpipe.recording.parquet import opened_parquet
from fullpipe.recording.recording import QUEUE_COUNTERS, Recording
from fullpipe.sweep.measures import Columns, Facts, Rows, facts_of
from fullpipe.sweep.store import damaged

#: What of a recording's tables the measures read.
COLUMNS: dict[str, tuple[str, ...]] = {
    "flows": ("flow", "cc", "direction", "start_us", "completion_us"),
    "flow_samples": (
        "t_us", "flow_id", "srtt_us", "min_rtt_us", "cwnd_packets", "bytes_delivered",
        "packets_sent", "packets_retransmitted",
    ),
    "queue_samples": ("t_us", "queue", "queue_bytes", *QUEUE_COUNTERS),
    "ping_samples": ("t_us", "rtt_us"),
}  # fmt: skip
_KINDS: dict[str, pa.DataType] = {
    "u64": pa.uint64(), "i64": pa.int64(), "f64": pa.float64(), "bool": pa.bool_(),
    "text": pa.string(), "lists": pa.list_(pa.float64()),
}  # fmt: skip
_NAMES = {kind: name for name, kind in _KINDS.items()}

#: The tables of a store; `key` names the run. Shares and goodput count payload after the warm-up.
SCHEMAS: dict[str, pa.Schema] = {
    name: pa.schema([(one, _KINDS[kind]) for one, (kind, _) in columns.items()])
    for name, columns in _native.Measures().take().items()
}
#: What experiments measure of a run: expressions of their metrics, by metrics of one `version`, and
#: what plots need. A part has them where there are any.
EXTRA: dict[str, pa.Schema] = {
    "values": pa.schema([
        ("key", pa.string()), ("name", pa.string()), ("version", pa.string()),
        ("value", pa.float64()),
    ]),
    "distributions": pa.schema([
        ("key", pa.string()), ("name", pa.string()), ("version", pa.string()),
        ("values", pa.list_(pa.float64())),
    ]),
}  # fmt: skip


def arrow(columns: Columns) -> pa.Table:
    """Columns, none of them lists, as a table."""
    return pa.table(
        {name: column(values, _KINDS[kind]) for name, (kind, values) in columns.items()}
    )


def plain(table: pa.Table) -> Columns:
    """The columns of a table."""
    return {
        name: (_NAMES[one.type], _without_none(one.to_pylist(), one.type))
        for name, one in zip(table.column_names, table.columns, strict=True)
    }


def measured(runs: Iterable[tuple[Facts, Mapping[str, pa.Table]]]) -> dict[str, pa.Table]:
    """The rows of every table of SCHEMAS for these runs, in their order."""
    rows = Rows()
    for facts, tables in runs:
        rows.add(facts, tables)
    return {name: arrow(columns) for name, columns in rows.take().items()}


def recorded(key: str, recording: Recording) -> tuple[Facts, dict[str, pa.Table]]:
    """A run as `measured` takes it, from its recording."""
    about = recording.metadata
    plan = about["plan"]
    facts = facts_of(key, plan, plan["seed"], about["engine"], about["warmup_ns"])._replace(
        problems="; ".join(recording.problems), interrupted=bool(about.get("interrupted"))
    )
    return facts, {name: recording.table(name) for name in COLUMNS}


def read_by_measures(tables: Mapping[str, pa.Table], queue: str) -> dict[str, dict[str, Any]]:
    """The columns of COLUMNS as the native module takes them; of the queues only this one's."""
    found = {}
    for name, columns in COLUMNS.items():
        values = {one: as_numpy(tables[name][one].combine_chunks()) for one in columns}
        if name == "queue_samples":
            mine = values.pop("queue") == queue
            values = {one: array[mine] for one, array in values.items()}
        found[name] = {
            one: array.tolist() if array.dtype == object else array.tobytes()
            for one, array in values.items()
        }
    return found


def read_part(part: Path) -> dict[str, pa.Table]:
    """The rows in a folder of another store. Raises UserError where they are no such rows."""
    tables = {}
    for name, schema in {**SCHEMAS, **EXTRA}.items():
        if name in EXTRA and not (part / f"{name}.parquet").exists():
            continue
        table = read(part / f"{name}.parquet")
        if table.schema != schema:
            raise UserError(f"{part}/{name}.parquet: has other columns than this program's")
        tables[name] = table
    return tables


def schema_of(file: Path) -> pa.Schema:
    """The columns of a table of a store. Raises UserError as `read`."""
    with _opened(file) as opened:
        return opened.schema_arrow


def read(file: Path) -> pa.Table:
    """A table of a store. Raises UserError naming a damaged file and what to do."""
    with _opened(file) as opened:
        # Threads would keep a sweep from forking its workers.
        return opened.read(use_threads=False)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[pq.ParquetFile]:
    try:
        with opened_parquet(file) as opened:
            yield opened
    except (OSError, pa.ArrowException, ValueError) as error:
        raise damaged(file, str(error)) from None


def _without_none(values: list[Any], kind: pa.DataType) -> list[Any]:
    """Of real numbers, NaN for what is missing."""
    return [math.nan if one is None else one for one in values] if kind == pa.float64() else values
