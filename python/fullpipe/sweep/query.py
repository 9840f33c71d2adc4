"""A store as SQL sees it: DuckDB views over its files.

| view | a row | columns |
|---|---|---|
| `cells` | a cell | `sweep`, `cell`, axes, `runs` |
| `runs` | a run | `sweep`, `cell`, axes, `seed`, `key`, and those of the table (measures.py) |
| `flows` | a flow of a run | the same, and the flow's |
| `path` | the bottleneck of a run | the same, and its own |

An axis whose values have units has two columns, as written and in base units: `rtt` and `rtt_s`,
`rate` and `rate_bps`. If a view has a column of its own with the name of an axis, such as `cc` in
`flows`, the plain name is refused: `axis_cc` is the cell's value, `flow_cc` (`run_...`, `path_...`)
what the row has, and `own_cc` whether the flow takes its value from the axis. Must never write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from fullpipe.base.columns import empty
from fullpipe.base.errors import UserError
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import OWN_FLOWS, SCHEMAS, schema_of

VIEWS = ("cells", "runs", "flows", "path")
#: View -> what a row is called.
_ROWS = {"runs": "run", "flows": "flow", "path": "path"}


def connect(store: Store) -> duckdb.DuckDBPyConnection:
    """A connection in memory with the views; no statement on it can change a file.

    Raises UserError where a file of the store is damaged or it holds no sweep."""
    connection = duckdb.connect()
    sweeps = {name: schema_of(file) for name, file in store.sweep_files().items()}
    if not sweeps:
        raise UserError(f"{store.folder}: holds no sweep yet; `fullpipe sweep FILE --out` fills it")
    connection.execute(f"create view asked as {_asked(store, sweeps)}")
    names = dict.fromkeys(name for schema in sweeps.values() for name in schema.names)
    axes = axis_columns(names)
    parts = [str(part) for part in store.parts()]
    for view, schema in SCHEMAS.items():
        if parts:
            files = ", ".join(_text(f"{part}/{view}.parquet") for part in parts)
            connection.execute(f"create view {view}_rows as select * from read_parquet([{files}])")
        else:
            connection.register(f"{view}_rows", empty(schema))
        columns = [
            f"asked.{quoted(name)} as {quoted(axis_column(name, view))}" for name in axes
        ]  # fmt: skip
        columns += ["asked.seed", "asked.key"]
        for name in schema.names:
            if name not in ("key", "seed"):
                own = f"{_ROWS[view]}_{name}" if name in axes else name
                columns.append(f"r.{quoted(name)} as {quoted(own)}")
        if view == "flows":
            columns += [
                f"list_contains(asked.{quoted(name)}, r.flow_id) as "
                f"{quoted(f'own_{name.removeprefix(OWN_FLOWS)}')}"
                for name in names if name.startswith(OWN_FLOWS)
            ]  # fmt: skip
        connection.execute(
            f"create view {view} as select asked.sweep, asked.cell, {', '.join(columns)} "
            f"from asked join {view}_rows r using (key)"
        )
    point = ", ".join(["asked.sweep", "asked.cell", *(f"asked.{quoted(name)}" for name in axes)])
    connection.execute(
        f"create view cells as select {point}, count(r.key) as runs "
        f"from asked left join runs_rows r using (key) group by {point}"
    )
    return connection


def axis_columns(names: Iterable[str]) -> list[str]:
    """The axes, and their companions in base units, among the columns of what a sweep asks for."""
    others = ("cell", "seed", "key")
    return [name for name in names if name not in others and not name.startswith(OWN_FLOWS)]


def axis_column(axis: str, view: str) -> str:
    """What an axis, or its companion in base units, is called in a view."""
    return f"axis_{axis}" if view in SCHEMAS and axis in SCHEMAS[view].names else axis


def metric_column(metric: str, view: str, columns: Sequence[str]) -> str:
    """What a metric is called in a view with these columns: a metric is always the row's own."""
    return metric if metric in columns else f"{_ROWS[view]}_{metric}"


def columns_of(connection: duckdb.DuckDBPyConnection, view: str) -> list[str]:
    """The names of a view's columns."""
    return [row[0] for row in connection.execute(f"describe {view}").fetchall()]


def choices(name: str, view: str, columns: Sequence[str]) -> str | None:
    """What to write instead of a name that is both an axis and a column of a view; None for any
    other name."""
    axis, own = f"axis_{name}", f"{_ROWS.get(view)}_{name}"
    if axis not in columns or own not in columns:
        return None
    text = (
        f"{name} is an axis and a column of {view}: write {axis} for the cell's value or {own} for "
        f"the {_ROWS[view]}'s own"
    )
    if f"own_{name}" in columns:
        text += f"; own_{name} says whether the flow takes its value from the axis"
    return text


def reason(error: duckdb.Error, connection: duckdb.DuckDBPyConnection) -> str:
    """Why a question failed: DuckDB's words, or `choices`."""
    missing = re.search(r'column (?:named )?"([^"]+)"', str(error))
    for view in VIEWS if missing else ():
        assert missing is not None
        if found := choices(missing[1].lower(), view, columns_of(connection, view)):
            return found
    return str(error)


def ask(store: Store, sql: str) -> pa.Table:
    """The answer to one SELECT. Raises UserError with DuckDB's reason for what is wrong."""
    connection = connect(store)
    try:
        statements = duckdb.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UserError("query: one SELECT, please; a store is changed by sweeps alone")
        answer: pa.Table = connection.sql(sql).to_arrow_table()
        return answer
    except duckdb.Error as error:
        why = reason(error, connection)
        raise UserError(f"query: {why}; views are {', '.join(VIEWS)}") from None
    finally:
        connection.close()


def _asked(store: Store, sweeps: Mapping[str, pa.Schema]) -> str:
    """A SELECT of what all sweeps of a store ask for, with the columns of all: DuckDB reads of them
    what a question needs. A column that is text in one sweep and numbers in another is text."""
    kinds: dict[str, set[pa.DataType]] = {}
    for schema in sweeps.values():
        for field in schema:
            kinds.setdefault(field.name, set()).add(field.type)
    files = store.sweep_files()
    return " union all by name ".join(
        f"select {_text(name)} as sweep, "
        + ", ".join(
            f"cast({quoted(column)} as varchar) as {quoted(column)}"
            if len(kinds[column]) > 1
            else quoted(column)
            for column in schema.names
        )
        + f" from read_parquet({_text(str(files[name]))})"
        for name, schema in sweeps.items()
    )


def quoted(name: str) -> str:
    """A column's name as SQL takes it, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def export(table: pa.Table, path: Path) -> None:
    """Writes an answer as CSV or Parquet, by the file's name. Raises UserError otherwise."""
    import pyarrow.csv

    from fullpipe.recording.parquet import write_parquet

    try:
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, path)
        elif path.suffix == ".parquet":
            write_parquet(table, path)
        else:
            raise UserError(f"--to {path}: must end in .csv or .parquet")
    except OSError as error:
        raise UserError(f"--to {path}: cannot be written: {error.strerror}") from None
