"""Traces of calls as tables, and the first call in which two of them differ.

The rows come from a replay, which gives the algorithm's variables after each call. Must never know
a screen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.base.scratch import scratch
from fullpipe.congestion import userfiles
from fullpipe.engines.tables import table_of
from fullpipe.kernel.tracing import introduced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fullpipe.congestion.userfiles import protocol

#: What a call is, in front of its facts.
KEYS = ("t_us", "cc", "connection", "sequence", "call")


def write_calls(trace: Path, out: Path) -> int:
    """Writes the calls of a trace as a table, Parquet or CSV by the ending of `out`; returns their
    number.

    Raises UserError if the trace cannot be read or replayed, or `out` exists or cannot be
    written."""
    if out.suffix not in (".parquet", ".csv"):
        raise UserError(f"{out}: must end in .parquet or .csv")
    if out.exists():
        raise UserError(f"{out}: exists already; name another file")
    try:
        with out.open("xb") as file:
            return _write(trace, file, out.suffix == ".csv")
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}") from None
    except BaseException:
        out.unlink(missing_ok=True)
        raise


def read_calls(trace: Path, columns: Sequence[str]) -> pa.Table:
    """Some columns of the calls of a trace. Raises UserError as `write_calls`, and for a column
    that it does not have."""
    with _as_parquet(trace) as table:
        names = table.schema_arrow.names
        for column in columns:
            if column not in names:
                raise UserError(f"{trace}: has no {column!r}; it has {', '.join(names)}")
        return table.read(columns=list(columns))


def ranges(trace: Path) -> list[tuple[str, int, Any, Any]]:
    """Of each column of the calls of a trace: its name, in how many calls it has a value, the least
    and the largest. Raises UserError as `write_calls`."""
    import pyarrow.compute as pc

    rows = []
    with _as_parquet(trace) as table:
        for name in table.schema_arrow.names:
            column = table.read(columns=[name])[name]
            ends = pc.min_max(column).as_py()
            rows.append((name, len(column) - column.null_count, ends["min"], ends["max"]))
    return rows


@dataclass(frozen=True)
class FirstDifference:
    """The first call in which two traces differ. `values`: of each column that differs, in both
    traces; empty if the call is only in the trace `only_in` (0 or 1)."""

    cc: str
    connection: int
    sequence: int
    call: str
    t_us: int
    values: Mapping[str, tuple[Any, Any]]
    only_in: int | None = None


def first_difference(
    left: Path, right: Path, decisions_only: bool = False
) -> FirstDifference | None:
    """The first call in which two traces differ, in a fact, a decision or a variable of the
    algorithm; None if there is none. Connections are compared call by call: the n-th of a
    congestion control with the n-th of the other trace's.

    With `decisions_only` the first call that is another one or decides otherwise, for traces of two
    hosts: of the facts that differ in it those that are a host's own are left out, and times and
    sequence numbers count from the connection's first call. Raises UserError as `write_calls`."""
    with _as_parquet(left) as a, _as_parquet(right) as b:
        pairs, begins, lone = _aligned(a, b)
        places = _Places(a, b, pairs, begins if decisions_only else None)
        names = [n for n in a.schema_arrow.names if n in b.schema_arrow.names and n not in _NAMES]
        if decisions_only:
            names = [name for name in names if name not in _HOSTS_OWN]
        differs = np.zeros(pairs.shape[1], bool)
        for name in _DECISIONS if decisions_only else names:
            differs |= places.differ(name)
        differences = []
        t_us = _column(a, "t_us")
        if differs.any():
            rows = np.flatnonzero(differs)
            first = int(rows[np.argmin(t_us[pairs[0][rows]])])
            values = {
                name: pair for name in names if (pair := places.values(name, first)) is not None
            }
            differences.append(_difference(a, int(pairs[0][first]), values, None))
        for which, row in lone:
            differences.append(_difference((a, b)[which], row, {}, which))
        return min(differences, key=lambda item: item.t_us, default=None)


#: Columns that say where a call is, not what it was.
_NAMES = ("t_us", "cc", "connection", "sequence", "differs")
#: What a call is and what it decided. Rates follow from RTTs, of which hosts differ by single
#: microseconds: they count from a hundredth on.
_DECISIONS = ("call", "cwnd", "ssthresh", "cwnd_cnt", "pacing_rate_Bps")
_RATES = ("before_pacing_rate_Bps", "pacing_rate_Bps")
#: Facts that are a host's own: nanoseconds of its clock, random numbers, the peer's timestamps, and
#: how the application writes.
_HOSTS_OWN = frozenset(
    {
        "conn_now_ns",
        "conn_edt_ns",
        "conn_seed",
        "conn_acks",
        "conn_rcv_tsval",
        "conn_rcv_tsecr",
        "conn_unsent_bytes",
        "conn_unsent_packets",
    }
)
#: Facts that count from where a host began, and the fact whose first value is that.
_ORIGINS = {
    "conn_now_us": "conn_now_us",
    "conn_delivered_us": "conn_now_us",
    "conn_last_send_us": "conn_now_us",
    "ack_prior_us": "conn_now_us",
    "conn_snd_una": "conn_snd_una",
    "conn_snd_nxt": "conn_snd_una",
    "conn_high_seq": "conn_snd_una",
    "ack_last_end_seq": "conn_snd_una",
}


def _difference(
    table: pq.ParquetFile, row: int, values: Mapping[str, tuple[Any, Any]], only_in: int | None
) -> FirstDifference:
    keys = {name: table.read(columns=[name])[name][row].as_py() for name in KEYS}
    return FirstDifference(values=values, only_in=only_in, **keys)


class _Places:
    """Rows of two tables that belong together. With `begins`, the pair in which the connection of
    each begins, facts count from there and rates are rounded."""

    def __init__(self, a: pq.ParquetFile, b: pq.ParquetFile, pairs: Any, begins: Any) -> None:
        self._tables, self._pairs, self._begins = (a, b), pairs, begins

    def differ(self, name: str) -> Any:
        left, right = (
            _column(table, name)[rows]
            for table, rows in zip(self._tables, self._pairs, strict=True)
        )
        if self._begins is not None and name in _RATES:
            return np.abs(left.astype(float) - right) > np.maximum(left, right) / 100
        both_missing = (left != left) & (right != right)  # not a number: no value
        return (left != right) & ~both_missing

    def values(self, name: str, pair: int) -> tuple[Any, Any] | None:
        left, right = (
            self._value(table, rows, name, pair)
            for table, rows in zip(self._tables, self._pairs, strict=True)
        )
        return None if left == right else (left, right)

    def _value(self, table: pq.ParquetFile, rows: Any, name: str, pair: int) -> Any:
        value = table.read(columns=[name])[name][int(rows[pair])].as_py()
        if self._begins is None or name not in _ORIGINS or not value:
            return value
        origin = table.read(columns=[_ORIGINS[name]])[_ORIGINS[name]]
        since = value - origin[int(rows[self._begins[pair]])].as_py()
        return since if name.endswith("_us") else since % 2**32


def _column(table: pq.ParquetFile, name: str) -> Any:
    column = table.read(columns=[name])[name].combine_chunks()
    if pa.types.is_string(column.type):
        return np.array(column.to_pylist(), dtype=object)
    if column.null_count:
        # Exact where it counts: counters with missing values have 32 bits.
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return column.to_numpy(zero_copy_only=False)


def _aligned(a: pq.ParquetFile, b: pq.ParquetFile) -> tuple[Any, Any, list[tuple[int, int]]]:
    """Rows that belong together, [2, pairs]; of each pair the one in which its connection begins;
    and the first call of each connection for which the other trace has none, with the trace that
    has it."""
    groups = [_connections(table) for table in (a, b)]
    pairs: list[Any] = []
    begins: list[int] = []
    lone = []
    for key in {**groups[0], **groups[1]}:
        rows = [group.get(key, np.empty(0, np.int64)) for group in groups]
        common = min(map(len, rows))
        pairs.append(np.array([numbers[:common] for numbers in rows]))
        begins += [len(begins)] * common
        for which, numbers in enumerate(rows):
            if len(numbers) > common:
                lone.append((which, int(numbers[common])))
    joined = np.concatenate(pairs, axis=1) if pairs else np.empty((2, 0), np.int64)
    return joined, np.array(begins, np.int64), lone


def _connections(table: pq.ParquetFile) -> dict[tuple[int, int], Any]:
    """Rows of each connection in the order of its calls, by the place of its congestion control and
    its number."""
    ccs = _column(table, "cc")
    order = {name: position for position, name in enumerate(dict.fromkeys(ccs))}
    number, sequence = _column(table, "connection"), _column(table, "sequence")
    position = np.array([order[name] for name in ccs], np.int64)
    sorted_ = np.lexsort((sequence, number, position))
    rows_of: dict[tuple[int, int], list[int]] = {}
    for row in sorted_.tolist():
        rows_of.setdefault((int(position[row]), int(number[row])), []).append(row)
    return {key: np.array(rows) for key, rows in rows_of.items()}


@contextmanager
def _as_parquet(trace: Path) -> Iterator[pq.ParquetFile]:
    with scratch("fullpipe-calls-") as folder:
        with (folder / "calls.parquet").open("xb") as file:
            _write(trace, file, False)
        with pq.ParquetFile(folder / "calls.parquet") as table:
            yield table


def _write(trace: Path, file: Any, is_csv: bool) -> int:
    import pyarrow.csv

    writer: Any = None
    count = 0

    def take(rows: Mapping[str, Any]) -> None:
        nonlocal writer, count
        table = table_of(rows["calls"])
        if writer is None:
            make = pyarrow.csv.CSVWriter if is_csv else pq.ParquetWriter
            writer = make(file, table.schema)
        writer.write_table(table)
        count += table.num_rows

    try:
        _each(trace, take)
    finally:
        if writer is not None:
            writer.close()
    return count


def _each(trace: Path, take: Callable[[Mapping[str, Any]], None]) -> None:
    try:
        from_files = sorted(set(filter(userfiles.is_external, introduced(trace))))
        if from_files:
            name = str(trace.resolve())
            listener = _listener(take)
            userfiles.ask(from_files, "calls", {"path": name}, listener=listener, read=[name])
        else:
            _native.cc.calls(str(trace), take)
    except OSError as error:
        raise UserError(f"{trace}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UserError(f"{trace}: {error}") from None


def _listener(take: Callable[[Mapping[str, Any]], None]) -> protocol.Listener:
    from fullpipe.congestion.userfiles.protocol import Listener

    return Listener(rows=take)
