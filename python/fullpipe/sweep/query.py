"""A store as SQL sees it: DuckDB views over its files.

| view | a row | columns |
|---|---|---|
| `cells` | a cell | `sweep`, `cell`, axes, `runs` |
| `runs` | a run | `sweep`, `cell`, axes, `seed`, `key`, and those of the table (measures.py) |
| `flows` | a flow of a run | the same, and the flow's |
| `path` | the bottleneck of a run | the same, and its own |
| `pages`, `streams`, `probes`, `traffic` | one of these in a run | the same, and its own |

The rows are those of one sweep, the newest unless another is named. Of `all` sweeps a run that
several ask for is listed once, as the newest asks for it.
An axis whose values have units has two columns, as written and in base units: `rtt` and `rtt_s`,
`rate` and `rate_bps`. If a view has a column of its own with the name of an axis, such as `cc` in
`flows`, the plain name is refused: `axis_cc` is the cell's value, `flow_cc` (`run_...`, `path_...`)
what the row has, and `own_cc` whether the flow takes its value from the axis. A question reads the
store's files alone: DuckDB gets no other file, no network and no extension. Must never write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa

from fullpipe.base.columns import empty
from fullpipe.base.errors import UserError
from fullpipe.sweep import applications
from fullpipe.sweep.listing import chosen
from fullpipe.sweep.store import IDENTITY, Store
from fullpipe.sweep.tables import EXTRA, OWN_FLOWS, SCHEMAS, schema_of, verify

T = TypeVar("T")
VIEWS = ("cells", "runs", "flows", "path", *applications.COLUMNS)
#: View -> what a row is called.
_ROWS = {"runs": "run", "flows": "flow", "path": "path", **applications.NAMES}
#: View of rows -> its columns beside the cell's.
COLUMNS: dict[str, list[str]] = {
    **{view: schema.names for view, schema in SCHEMAS.items()},
    **{kind: [applications.NAMES[kind], *names] for kind, names in applications.COLUMNS.items()},
}
_APPLICATIONS = "applications"
#: DuckDB would otherwise download extensions, and take Python's variables for tables.
_CONFIGURATION: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
}


def connect(
    store: Store, allow_files: bool = False, sweep: str | None = None
) -> duckdb.DuckDBPyConnection:
    """A connection in memory with the views of a sweep (`listing.chosen`). Statements on it read
    the store's files and no others, unless `allow_files` says so, and change no setting.

    Raises UserError where a file of the store is damaged, it holds no sweep, or none of that
    name."""
    listed = store.listing()
    if not listed:
        raise UserError(f"{store.folder}: holds no sweep yet; `fullpipe sweep FILE --out` fills it")
    files_of = store.sweep_files()
    sweeps = {entry.id: files_of[entry.id] for entry in chosen(listed, sweep)}
    schemas = {name: schema_of(file) for name, file in sweeps.items()}
    parts = store.parts()
    tables = (*SCHEMAS, _APPLICATIONS)
    files = [file for part in parts for table in tables if (file := _file(part, table)).exists()]
    for file in files:  # DuckDB verifies no checksum of a page
        verify(file)
    connection = duckdb.connect(config=_CONFIGURATION)
    files += sweeps.values()
    if not allow_files:
        connection.execute(
            f"set allowed_paths = [{', '.join(sql_text(str(file)) for file in files)}]"
        )
        connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
    connection.execute(f"create view asked as {_asked(sweeps, schemas)}")
    connection.execute(f"create view asked_once as {_once([*sweeps])}")
    names = dict.fromkeys(name for schema in schemas.values() for name in schema.names)
    axes = axis_columns(names)
    for table in tables:
        _add_rows(connection, table, [file for file in files if file.stem == table])
    for kind in applications.COLUMNS:
        select_rows = applications.view_of_kind(kind, f"{_APPLICATIONS}_rows")
        connection.execute(f"create view {kind}_rows as {select_rows}")
    for view, columns in COLUMNS.items():
        _add_view(connection, view, columns, [*names], axes)
    point = ", ".join(["asked.sweep", "asked.cell", *(f"asked.{quoted(name)}" for name in axes)])
    connection.execute(
        f"create view cells as select {point}, count(r.key) as runs "
        f"from asked left join runs_rows r using (key) group by {point}"
    )
    return connection


def _file(part: Path, table: str) -> Path:
    return part / f"{table}.parquet"


def _add_rows(connection: duckdb.DuckDBPyConnection, table: str, files: Sequence[Path]) -> None:
    """Adds the view `TABLE_rows` of all rows of a table in these files."""
    schema = {**SCHEMAS, **EXTRA}[table]
    if not files:
        connection.register(f"{table}_rows", empty(schema))
        return
    rows = ", ".join(sql_text(str(file)) for file in files)
    # Sweeps at once may have stored a run each; `compact` keeps one.
    once = f" qualify row_number() over (partition by {', '.join(IDENTITY[table])}) = 1"
    # Parts that an older version wrote have fewer columns.
    connection.register(f"{table}_none", empty(schema))
    connection.execute(
        f"create view {table}_rows as select * from (select * from "
        f"read_parquet([{rows}], union_by_name = true) union all by name "
        f"select * from {table}_none){once if len(files) > 1 else ''}"
    )


def _add_view(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    own_columns: Sequence[str],
    names: Sequence[str],
    axes: Sequence[str],
) -> None:
    """Adds a view: the rows of `VIEW_rows` beside the axes of their cells. `names`: the columns of
    what the sweeps ask for."""
    columns = [f"asked.{quoted(name)} as {quoted(axis_column(name, view))}" for name in axes]
    columns += ["asked.seed", "asked.key"]
    for name in own_columns:
        if name not in ("key", "seed"):
            column = f"{_ROWS[view]}_{name}" if name in axes else name
            columns.append(f"r.{quoted(name)} as {quoted(column)}")
    if view == "flows":
        for name in names:
            if name.startswith(OWN_FLOWS):
                column = quoted(f"own_{name.removeprefix(OWN_FLOWS)}")
                columns.append(f"list_contains(asked.{quoted(name)}, r.flow_id) as {column}")
    connection.execute(
        f"create view {view} as select asked.sweep, asked.cell, {', '.join(columns)} "
        f"from asked_once asked join {view}_rows r using (key)"
    )


def axis_columns(names: Iterable[str]) -> list[str]:
    """The axes, and their companions in base units, among the columns of what a sweep asks for."""
    no_axes = ("cell", "seed", "key")
    return [name for name in names if name not in no_axes and not name.startswith(OWN_FLOWS)]


def axis_column(axis: str, view: str) -> str:
    """What an axis, or its companion in base units, is called in a view."""
    return f"axis_{axis}" if axis in COLUMNS.get(view, ()) else axis


def metric_column(metric: str, view: str, columns: Sequence[str]) -> str:
    """What a metric is called in a view with these columns: a metric is always the row's own."""
    return metric if metric in columns else f"{_ROWS[view]}_{metric}"


def columns_of(connection: duckdb.DuckDBPyConnection, view: str) -> list[str]:
    """The names of a view's columns."""
    return [row[0] for row in connection.execute(f"describe {view}").fetchall()]


def choices(name: str, view: str, columns: Sequence[str]) -> str | None:
    """What to write instead of a name that is both an axis and a column of a view; None for any
    other name."""
    axis, row_column = f"axis_{name}", f"{_ROWS.get(view)}_{name}"
    if axis not in columns or row_column not in columns:
        return None
    text = (
        f"{name} is an axis and a column of {view}: write {axis} for the cell's value or "
        f"{row_column} for the {_ROWS[view]}'s own"
    )
    if f"own_{name}" in columns:
        text += f"; own_{name} says whether the flow takes its value from the axis"
    return text


def reason(error: duckdb.Error, connection: duckdb.DuckDBPyConnection) -> str:
    """Why a question failed: DuckDB's words, or `choices`."""
    missing = re.search(r'column (?:named )?"([^"]+)"', str(error))
    for view in VIEWS if missing else ():
        assert missing is not None
        if ambiguity := choices(missing[1].lower(), view, columns_of(connection, view)):
            return ambiguity
    first, _, details = str(error).partition("\n")
    if "file system operations are disabled" in first:
        return f"{first}; `fullpipe query --allow-files` reads files beside the store's"
    hint = details.partition("\n")[0]
    return f"{first} {hint}" if hint.startswith(("Did you mean", "Candidate")) else first


def select(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.DuckDBPyRelation:
    """The rows of one SELECT. Raises UserError for anything else, duckdb.Error where it fails."""
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise UserError("the text is not Unicode: DuckDB takes UTF-8") from None
    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UserError("one SELECT, please; a store is changed by sweeps alone")
    return connection.sql(sql)


def ask(store: Store, sql: str, allow_files: bool = False, sweep: str | None = None) -> pa.Table:
    """The answer to one SELECT about a sweep (`connect`). `allow_files`: it may read other files
    than the store's. Raises UserError with DuckDB's reason for what is wrong."""

    def read(connection: duckdb.DuckDBPyConnection) -> pa.Table:
        try:
            return select(connection, sql).to_arrow_table()
        except duckdb.Error as error:
            why = reason(error, connection)
            raise UserError(f"query: {why}; views are {', '.join(VIEWS)}") from None

    answer: pa.Table = connected(store, read, allow_files, sweep)
    return answer


def connected(
    store: Store,
    read: Callable[[duckdb.DuckDBPyConnection], T],
    allow_files: bool = False,
    sweep: str | None = None,
) -> T:
    """What a function reads on a connection (`connect`); once more where another program compacted
    the store meanwhile. Raises UserError as the function does."""

    def read_once(_parts: Sequence[Path]) -> T:
        connection = connect(store, allow_files, sweep)
        try:
            return read(connection)
        finally:
            connection.close()

    return store.settled(read_once)


def _once(sweeps: Sequence[str]) -> str:
    """A SELECT of what is asked for, each run once: as the last of these sweeps asks for it. Cells
    of one sweep may share a run."""
    order = ", ".join(map(sql_text, reversed(sweeps)))
    return (
        "select * from asked qualify "
        f"rank() over (partition by key order by list_position([{order}], sweep)) = 1"
        if len(sweeps) > 1
        else "select * from asked"
    )


def _asked(sweeps: Mapping[str, Path], schemas: Mapping[str, pa.Schema]) -> str:
    """A SELECT of what sweeps ask for, with the columns of all: DuckDB reads of them what a
    question needs. A column that is text in one sweep and numbers in another is text."""

    def type_of(column: str) -> str:
        is_number = all(map(is_numeric, kinds[column]))
        return "double" if is_number else "varchar"

    kinds: dict[str, set[pa.DataType]] = {}
    for schema in schemas.values():
        for field in schema:
            kinds.setdefault(field.name, set()).add(field.type)
    return " union all by name ".join(
        f"select {sql_text(name)} as sweep, "
        + ", ".join(
            f"cast({quoted(column)} as {type_of(column)}) as {quoted(column)}"
            if len(kinds[column]) > 1
            else quoted(column)
            for column in schema.names
        )
        + f" from read_parquet({sql_text(str(sweeps[name]))})"
        for name, schema in schemas.items()
    )


def is_numeric(kind: pa.DataType) -> bool:
    """Whether values are numbers; truths are none."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def quoted(name: str) -> str:
    """A column's name as SQL takes it, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def sql_text(value: str) -> str:
    """Text as SQL takes it, whatever it holds."""
    return "'" + value.replace("'", "''") + "'"


def export(table: pa.Table, path: Path) -> None:
    """Writes an answer as CSV or Parquet, by the file's name. Raises UserError otherwise."""
    import pyarrow.csv

    from fullpipe.base.writing import atomic_file
    from fullpipe.recording.parquet import write_parquet

    check_export(path)
    with atomic_file(path) as partial:
        if path.suffix == ".csv":
            with partial.open("wb") as file:
                pyarrow.csv.write_csv(table, file)
        else:
            write_parquet(table, partial)


def check_export(path: Path) -> None:
    """Raises UserError unless `export` knows the format of this file's name."""
    if path.suffix not in (".csv", ".parquet"):
        raise UserError(f"--to {path}: must end in .csv or .parquet")
