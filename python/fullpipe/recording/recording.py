"""A recording on disk: `metadata.json`, `scenario.toml`, one Parquet file a table, and checksums.

This is the only writer of recordings, for every engine and for imports. It must never compute a
metric. Input is untrusted, so it is checked before use.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from fullpipe.base.errors import UserError
from fullpipe.base.toml import parse_toml
from fullpipe.recording import checksums
from fullpipe.recording.parquet import opened_parquet, write_parquet, write_pieces
from fullpipe.recording.replacing import restore

#: Increased by one when a table loses or renames a column.
FORMAT_VERSION = 1

_U, _F, _T = pa.uint64(), pa.float64(), pa.string()

#: The tables of a recording; the columns of crates/fullpipe-plan/src/rows.rs.
TABLES: dict[str, pa.Schema] = {
    "flows": pa.schema(
        [
            ("flow_id", _U),
            ("flow", _T),
            ("cc", _T),
            ("direction", _T),
            ("start_us", _U),
            ("completion_us", _U),
            ("bytes_delivered", _U),
            ("bytes_acked", _U),
            ("packets_sent", _U),
            ("packets_retransmitted", _U),
            ("packets_lost", _U),
            ("packets_delivered", _U),
            ("packets_delivered_ce", _U),
            ("recoveries", _U),
            ("timeouts", _U),
            ("undos", _U),
            ("base_rtt_us", _U),
            ("mss_bytes", _U),
        ]
    ),
    "flow_samples": pa.schema(
        [
            ("t_us", _U),
            ("flow_id", _U),
            ("bytes_delivered", _U),
            ("bytes_acked", _U),
            ("cwnd_packets", _U),
            ("ssthresh_packets", _U),
            ("inflight_packets", _U),
            ("srtt_us", _U),
            ("min_rtt_us", _U),
            ("pacing_rate_bps", _U),
            ("delivery_rate_bps", _U),
            ("packets_sent", _U),
            ("packets_retransmitted", _U),
            ("packets_lost", _U),
            ("packets_delivered", _U),
            ("packets_delivered_ce", _U),
            ("receive_window_bytes", _U),
            ("ca_state", _U),
        ]
    ),
    "queue_samples": pa.schema(
        [
            ("t_us", _U),
            ("queue", _T),
            ("queue_bytes", _U),
            ("queue_packets", _U),
            ("sent_bytes", _U),
            ("sent_packets", _U),
            ("dropped_packets", _U),
            ("filtered_packets", _U),
            ("marked_packets", _U),
            ("random_lost_packets", _U),
            ("random_marked_packets", _U),
        ]
    ),
    "ping_samples": pa.schema([("t_us", _U), ("probe", _T), ("seq", _U), ("rtt_us", _U)]),
    "cc_samples": pa.schema(
        [
            ("t_us", _U),
            ("flow_id", _U),
            ("phase", _T),
            ("bw_bps", _U),
            ("max_bw_bps", _U),
            ("bw_shortterm_bps", _U),
            ("min_rtt_us", _U),
            ("pacing_gain", _F),
            ("cwnd_gain", _F),
            ("inflight_longterm_packets", _U),
            ("inflight_shortterm_packets", _U),
            ("extra_acked_packets", _U),
            ("round_count", _U),
        ]
    ),
    "events": pa.schema([("t_us", _U), ("flow_id", _U), ("event", _T), ("value", _U)]),
}

#: The table whose last columns are variables that algorithms declare, real numbers.
_WITH_VARIABLES = "cc_samples"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")

#: Columns that recordings of earlier versions lack: they are read as null.
_ADDED = {"queue_samples": {"filtered_packets"}}

#: Of a recording's `facts`: what a kernel, or a kernel's file in the simulator, logged in the run.
KERNEL_LOG = "kernel log"

#: Columns of `queue_samples` that count from a run's start.
QUEUE_COUNTERS = tuple(
    name
    for name in TABLES["queue_samples"].names
    if name not in ("t_us", "queue", "queue_bytes", "queue_packets")
)

#: Tables that exist only in recordings of runs that have such features.
OPTIONAL_TABLES: dict[str, pa.Schema] = {
    "page_loads": pa.schema(
        [
            ("page_id", _U),
            ("page", _T),
            ("load", _U),
            ("start_us", _U),
            ("done_us", _U),
            ("objects", _U),
            ("bytes", _U),
        ]
    ),
    "page_objects": pa.schema(
        [
            (name, _U)
            for name in (
                "page_id",
                "load",
                "object",
                "connection",
                "asked_us",
                "first_byte_us",
                "done_us",
                "bytes",
            )
        ]
    ),
    "datagrams": pa.schema(
        [(name, _U) for name in ("t_us", "stream_id", "seq", "frame", "bytes", "delay_us")]
    ),
    "traffic": pa.schema(
        [
            (name, _U)
            for name in (
                "group_id",
                "number",
                "sender",
                "base_rtt_us",
                "start_us",
                "size_bytes",
                "completion_us",
                "chunks",
                "pause_us",
                "bytes_acked",
                "packets_sent",
                "packets_retransmitted",
                "timeouts",
            )
        ]
    ),
    "traffic_samples": pa.schema(
        [
            (name, _U)
            for name in (
                "t_us",
                "group_id",
                "number",
                "bytes_acked",
                "cwnd_packets",
                "ssthresh_packets",
                "inflight_packets",
                "srtt_us",
                "pacing_rate_bps",
                "delivery_rate_bps",
                "packets_sent",
                "packets_retransmitted",
                "packets_lost",
                "ca_state",
            )
        ]
    ),
    "cpu_samples": pa.schema(
        [
            ("t_us", _U),
            ("machine", _T),
            ("cpu", _U),
            ("user_us", _U),
            ("system_us", _U),
            ("irq_us", _U),
            ("softirq_us", _U),
            ("steal_us", _U),
            ("idle_us", _U),
        ]
    ),
    "nic_samples": pa.schema(
        [
            ("t_us", _U),
            ("host", _T),
            ("nic", _T),
            ("received_bytes", _U),
            ("received_packets", _U),
            ("sent_bytes", _U),
            ("sent_packets", _U),
        ]
    ),
    "tcp_memory_samples": pa.schema(
        [
            ("t_us", _U),
            ("machine", _T),
            ("memory_bytes", _U),
            ("sockets", _U),
            ("orphans", _U),
        ]
    ),
}


def schema_of(name: str, columns: Iterable[str]) -> pa.Schema:
    """The schema of a table that comes with these columns: that of TABLES or OPTIONAL_TABLES, and
    in `cc_samples` the algorithms' own variables behind it. Raises ValueError where the name of a
    variable cannot be a column's."""
    schema = {**TABLES, **OPTIONAL_TABLES}[name]
    if name == _WITH_VARIABLES:
        for column in columns:
            if column not in schema.names:
                if not _VARIABLE.fullmatch(column):
                    raise ValueError(f"{column!r} is no name of a variable")
                schema = schema.append(pa.field(column, _F))
    return schema


class PiecewiseTables(Mapping[str, pa.Table]):
    """Tables that may not fit into memory, and whose rows can be had piece by piece."""

    @abstractmethod
    def pieces(self, name: str) -> Iterator[pa.Table]:
        """The rows of a table in their order."""


class RecordingError(UserError):
    """A folder that is not a recording, or a damaged one."""


@dataclass(frozen=True)
class Recording:
    """A recording on disk. Tables are read on demand."""

    path: Path
    metadata: dict[str, Any]
    #: What is to live as long as this object: a temporary folder that holds it.
    keeps: object = field(default=None, compare=False, repr=False)
    #: Files whose checksums were verified by this object.
    _verified: set[Path] = field(default_factory=set, compare=False, repr=False)

    @classmethod
    def open(cls, path: Path | str) -> Recording:
        """The recording in this folder.

        Raises RecordingError if it is not one, is of a later format, or lacks a table."""
        path = Path(path)
        if not path.exists():
            restore(path)
        if not path.is_dir():
            reason = "is a file" if path.exists() else "no such folder"
            raise RecordingError(f"{path}: {reason}; a recording is a folder")
        try:
            _verify(path / "metadata.json")
            metadata = json.loads(checksums.read_text(path / "metadata.json"))
        except FileNotFoundError:
            raise RecordingError(f"{path}: not a recording, it has no metadata.json") from None
        except (OSError, ValueError, RecursionError) as error:
            raise RecordingError(f"{path}/metadata.json: cannot be read: {error}") from None
        version = metadata.get("format_version") if isinstance(metadata, dict) else None
        if version != FORMAT_VERSION:
            raise RecordingError(
                f"{path}/metadata.json: format_version is {version!r}, this program reads "
                f"{FORMAT_VERSION}; a newer fullpipe may have written it"
            )
        for name in TABLES:
            if not (path / f"{name}.parquet").is_file():
                raise RecordingError(f"{path}: damaged, {name}.parquet is missing")
        return cls(path, metadata)

    def table(self, name: str) -> pa.Table:
        """One table of TABLES or OPTIONAL_TABLES, with exactly its columns, and in `cc_samples`
        the algorithms' own variables.

        Raises RecordingError if the file is damaged or has other columns."""
        return self.columns(name, self.names(name))

    def names(self, name: str) -> list[str]:
        """The names of a table's columns. Raises RecordingError as `table`."""
        if name == _WITH_VARIABLES:
            return [*TABLES[name].names, *self.variables]
        return list({**TABLES, **OPTIONAL_TABLES}[name].names)

    @cached_property
    def variables(self) -> list[str]:
        """The columns of `cc_samples` that only some algorithms have. Raises RecordingError as
        `table`."""
        file = self.path / f"{_WITH_VARIABLES}.parquet"
        try:
            with opened_parquet(file) as opened:
                names = opened.schema_arrow.names
            columns = schema_of(_WITH_VARIABLES, names).names
            return list(columns[len(TABLES[_WITH_VARIABLES]) :])
        except (OSError, pa.ArrowException, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise RecordingError(f"{file}: cannot be read: {reason}") from None

    def rows(self, name: str) -> int:
        """How many rows a table has. Raises RecordingError as `table`."""
        file = self.path / f"{name}.parquet"
        try:
            with opened_parquet(file) as opened:
                return int(opened.metadata.num_rows)
        except (OSError, pa.ArrowException, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise RecordingError(f"{file}: cannot be read: {reason}") from None

    def columns(self, name: str, names: Sequence[str]) -> pa.Table:
        """Some columns of a table. Raises RecordingError as `table`."""
        schema = schema_of(name, names if name == _WITH_VARIABLES else ())
        schema = pa.schema([schema.field(column) for column in names])
        file = self.path / f"{name}.parquet"
        if file not in self._verified:
            _verify(file)
            self._verified.add(file)
        try:
            with opened_parquet(file) as opened:
                table = opened.read(columns=schema.names)
            return _fitted(_with_added(name, table), schema)
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise RecordingError(f"{file}: cannot be read: {reason}") from None

    def has(self, name: str) -> bool:
        """Whether it has this table of OPTIONAL_TABLES."""
        return (self.path / f"{name}.parquet").is_file()

    @cached_property
    def scenario_toml(self) -> str:
        """The scenario's text; empty if the recording was imported without one.

        Raises RecordingError if the file is damaged."""
        file = self.path / "scenario.toml"
        try:
            _verify(file)
            return checksums.read_text(file)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise RecordingError(f"{file}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise RecordingError(f"{file}: not a text file; a scenario is TOML in UTF-8") from None

    @cached_property
    def document(self) -> dict[str, Any]:
        """The scenario as written, not checked; empty if there is none, or it is no TOML.

        Raises RecordingError if the file is damaged."""
        try:
            return parse_toml(self.scenario_toml)
        except tomllib.TOMLDecodeError:
            return {}

    @property
    def problems(self) -> list[str]:
        """Problems that the engine reported, which make its figures unreliable; empty if it
        reported none."""
        health = self.metadata.get("health")
        problems = health.get("problems", []) if isinstance(health, dict) else []
        return (
            [str(problem) for problem in problems]
            if isinstance(problems, list)
            else [str(problems)]
        )

    @property
    def warnings(self) -> list[str]:
        """Why the run is unreliable: unhealthy, interrupted or failed; empty if it is reliable.
        Every view of the run's figures must show these too."""
        warnings = [f"unhealthy: {problem}" for problem in self.problems]
        if self.metadata.get("interrupted"):
            warnings.append("interrupted before its end; what was recorded until then is shown")
        if self.metadata.get("failure"):
            warnings.append(f"failed: {self.metadata['failure']}")
        return warnings


def write_recording(
    path: Path | str,
    metadata: Mapping[str, Any],
    scenario_toml: str,
    tables: Mapping[str, pa.Table],
) -> Recording:
    """Writes a recording atomically: into a temporary sibling folder, which is then renamed.

    `tables` holds every table of TABLES, and any of OPTIONAL_TABLES; metadata gains
    `format_version`. The bytes written depend on the arguments alone. Raises UserError if
    `path` exists or cannot be written."""
    path = Path(path)
    if path.exists():
        raise UserError(f"{path}: exists already; name another folder with --out")
    partial = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.partial")
    try:
        partial.mkdir(parents=True)
        optional = [name for name in OPTIONAL_TABLES if name in tables]
        for name in (*TABLES, *optional):
            file = partial / f"{name}.parquet"
            if isinstance(tables, PiecewiseTables):
                schema = schema_of(name, next(tables.pieces(name)).column_names)
                pieces = (_fitted(piece, schema) for piece in tables.pieces(name))
                write_pieces(pieces, schema, file)
            else:
                table = tables[name]
                write_parquet(_fitted(table, schema_of(name, table.column_names)), file)
        (partial / "scenario.toml").write_text(scenario_toml, encoding="utf-8")
        document = {"format_version": FORMAT_VERSION, **metadata}
        text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False)
        (partial / "metadata.json").write_text(text + "\n", encoding="utf-8")
        checksums.seal(partial, [file.name for file in partial.iterdir()])
        partial.rename(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Recording.open(path)


def _with_added(name: str, table: pa.Table) -> pa.Table:
    """With the columns, empty, that recordings of earlier versions lack."""
    for column in _ADDED.get(name, set()) - set(table.column_names):
        nulls = pa.nulls(table.num_rows, TABLES[name].field(column).type)
        table = table.append_column(column, nulls)
    return table


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    table = table.select(schema.names)
    return table if table.schema == schema else table.cast(schema)


def verify_recording(path: Path) -> None:
    """Raises RecordingError naming the first damaged file of a recording."""
    for file in sorted(path.iterdir()):
        _verify(file)


def _verify(file: Path) -> None:
    try:
        checksums.verify(file)
    except checksums.DamagedError as error:
        raise RecordingError(
            f"{error.file}: damaged: {error}; run the scenario again, or remove "
            f"{checksums.FILE} if you changed the file yourself"
        ) from None


def empty_table(name: str) -> pa.Table:
    """A table of TABLES without rows."""
    return TABLES[name].empty_table()
