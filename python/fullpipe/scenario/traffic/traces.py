"""Traces: lists of flows with chunks and the pauses between them, in CSV or Parquet files.

One row for each chunk, with the columns `flow` (any number), `start_us` (when the flow began, the
same in all its rows), `pause_us` (silence before the chunk, 0 for a flow's first) and `bytes`
(payload).
The chunks of a flow are in order; flows may be interleaved.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fullpipe.base.errors import UserError
from fullpipe.base.supplied import open_regular

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("flow", "start_us", "pause_us", "bytes")
#: They take about 2 GB of memory in a run.
MAX_CHUNKS = 50_000_000
#: Larger values are errors; times are limited to a week, in us.
LARGEST = {
    "flow": 2**63,
    "start_us": 7 * 86_400 * 10**6,
    "pause_us": 7 * 86_400 * 10**6,
    "bytes": 2**42,
}

Integers = npt.NDArray[np.uint64]


def is_trace_file(name: str) -> bool:
    """Whether this names a file of a trace."""
    return Path(name).suffix in (".csv", ".parquet")


@functools.lru_cache(maxsize=16)
def _digest(path: str, _size: int, _changed_ns: int) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(name: str) -> str:
    """SHA-256 of a trace's file. Raises UserError where it cannot be read."""
    if not is_trace_file(name):
        raise UserError(f"traffic.trace: {name!r}: is neither mawi nor a .csv or .parquet file")
    try:
        status = Path(name).stat()
        return _digest(name, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror}") from None


def traces_of(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The traces of the files that a plan names, by their SHA-256, as `_native.sim.run` takes them.

    Raises UserError where a file cannot be read, is no trace, or is not the one of the plan."""
    traces = {}
    for group in plan.get("traffic", []):
        source = group["source"]
        if source["kind"] != "file" or source["sha256"] in traces:
            continue
        if fingerprint(source["file"]) != source["sha256"]:
            raise UserError(f"{source['file']}: has changed since the plan was made")
        traces[source["sha256"]] = load(source["file"])
    return traces


def load(name: str) -> Any:
    """The trace in a file (`_native.traffic.Trace`).

    Raises UserError naming file, column and what is allowed."""
    return trace_of(_read(Path(name)), name)


def trace_of(columns: Mapping[str, Integers], source: str) -> Any:
    """A trace from columns of one row a chunk; `source` names them in errors.

    Raises UserError where a flow begins with a pause, or at several times."""
    from fullpipe import _native

    order = np.argsort(columns["flow"], kind="stable")
    flow, start, pause, size = (columns[name][order] for name in COLUMNS)
    if not flow.size:
        raise UserError(f"{source}: holds no flow; a trace has at least one")
    if flow.size > MAX_CHUNKS:
        raise UserError(f"{source}: {flow.size} chunks; at most {MAX_CHUNKS}")
    first = np.flatnonzero(np.concatenate(([True], flow[1:] != flow[:-1])))
    counts = np.diff(np.append(first, flow.size))
    if (size == 0).any():
        raise UserError(f"{source}: bytes 0: a chunk sends at least 1 byte")
    if (pause[first] != 0).any():
        bad = flow[first][pause[first] != 0][0]
        raise UserError(f"{source}: pause_us: flow {bad} begins with a pause; its first must be 0")
    if (np.repeat(start[first], counts) != start).any():
        raise UserError(f"{source}: start_us: must be the same in all rows of a flow")
    # Flows in the order of their beginnings, the chunks of each together.
    turn = np.argsort(start[first], kind="stable")
    rows = (
        np.concatenate([np.arange(first[k], first[k] + counts[k]) for k in turn])
        if (not np.array_equal(turn, np.arange(turn.size)))
        else np.arange(flow.size)
    )
    nanoseconds = np.uint64(1000)
    return _native.traffic.trace(
        (start[first][turn] * nanoseconds).tobytes(),
        counts[turn].astype(np.uint64).tobytes(),
        (pause[rows] * nanoseconds).tobytes(),
        size[rows].tobytes(),
    )


def write(columns: Mapping[str, Integers], path: Path) -> None:
    """Writes a trace's columns as CSV or Parquet, by the ending of the file's name.

    Raises UserError where it cannot be written."""
    import pyarrow as pa
    import pyarrow.csv

    from fullpipe.recording.parquet import write_parquet

    table = pa.table({name: pa.array(columns[name]) for name in COLUMNS})
    try:
        if path.suffix == ".parquet":
            write_parquet(table, path)
        else:
            pa.csv.write_csv(table, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None


def columns_of(trace: Any) -> dict[str, Integers]:
    """A `_native.traffic.Trace` as columns of one row a chunk; times in us, rounded."""
    flow, start, pause, size = (np.frombuffer(data, np.uint64) for data in trace.columns())
    thousand = np.uint64(1000)
    return {
        "flow": flow,
        "start_us": start // thousand,
        "pause_us": pause // thousand,
        "bytes": size,
    }


def _read(path: Path) -> dict[str, Integers]:
    import pyarrow as pa
    import pyarrow.csv

    from fullpipe.recording.parquet import opened_parquet

    try:
        if path.suffix == ".parquet":
            with opened_parquet(path) as file:
                if file.metadata.num_rows > MAX_CHUNKS:
                    raise UserError(f"{path}: {file.metadata.num_rows} rows; at most {MAX_CHUNKS}")
                missing = [name for name in COLUMNS if name not in file.schema_arrow.names]
                _all_there(path, missing)
                table = file.read(columns=list(COLUMNS))
        else:
            types = {name: pa.int64() for name in COLUMNS}
            table = pa.csv.read_csv(path, convert_options=pa.csv.ConvertOptions(column_types=types))
            _all_there(path, [name for name in COLUMNS if name not in table.column_names])
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (pa.ArrowException, UnicodeDecodeError) as error:
        reason = "names of columns are not UTF-8"
        if not isinstance(error, UnicodeDecodeError):
            message = str(error).splitlines()[0]  # which quotes the file
            reason = "".join(c if c.isprintable() else "?" for c in message[:200])
        raise UserError(
            f"{path}: not a trace: {reason}; one row a chunk: {', '.join(COLUMNS)}, whole numbers"
        ) from None
    return {name: _whole(path, name, table[name]) for name in COLUMNS}


def _all_there(path: Path, missing: list[str]) -> None:
    if missing:
        raise UserError(f"{path}: column {missing[0]} is missing; a trace has {', '.join(COLUMNS)}")


def _whole(path: Path, name: str, column: pa.ChunkedArray) -> Integers:
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.null_count:
        raise UserError(f"{path}: {name}: must be whole numbers, without gaps")
    values = column.combine_chunks().to_numpy(zero_copy_only=False)
    if values.size and (int(values.min()) < 0 or int(values.max()) > LARGEST[name]):
        bad = values.min() if int(values.min()) < 0 else values.max()
        raise UserError(f"{path}: {name} {bad}: must be from 0 to {LARGEST[name]}")
    return np.asarray(values.astype(np.uint64))
