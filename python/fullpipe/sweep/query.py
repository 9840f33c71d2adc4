"""A store as SQL sees it: DuckDB views over its files.

| view | a row | columns |
|---|---|---|
| `cells` | a cell | `sweep`, `cell`, axes, `runs` |
| `runs` | a run | `sweep`, `cell`, axes, `seed`, `key`, and those of the table (measures.py) |
| `flows` | a flow of a run | the same, and the flow's |
| `path` | the bottleneck of a run | the same, and its own |

An axis whose values have units stands there as written and as a number in base units: `rtt` and
`rtt_s`, `rate` and `rate_bps`. Where a table has a column of an axis's name, such as `cc` of
`flows`, that is the row's own, and the axis is `axis_cc`. Must never write.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa

from fullpipe.base.columns import empty
from fullpipe.base.errors import UserError
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import SCHEMAS, schema_of

VIEWS = ("cells", "runs", "flows", "path")


def connect(store: Store) -> duckdb.DuckDBPyConnection:
    """A connection in memory with the views; nothing that is asked can change a file.

    Raises UserError where a file of the store is damaged or it holds no sweep."""
    connection = duckdb.connect()
    sweeps = {name: schema_of(file) for name, file in store.sweep_files().items()}
    if not sweeps:
        raise UserError(f"{store.folder}: holds no sweep yet; `fullpipe sweep FILE --out` fills it")
    connection.execute(f"create view asked as {_asked(store, sweeps)}")
    names = dict.fromkeys(name for schema in sweeps.values() for name in schema.names)
    axes = [name for name in names if name not in ("cell", "seed", "key")]
    parts = [str(part) for part in store.parts()]
    for name, schema in SCHEMAS.items():
        if parts:
            files = ", ".join(_text(f"{part}/{name}.parquet") for part in parts)
            connection.execute(f"create view {name}_rows as select * from read_parquet([{files}])")
        else:
            connection.register(f"{name}_rows", empty(schema))
        columns = "".join(
            f", r.{quoted(field.name)}" for field in schema if field.name not in ("key", "seed")
        )
        connection.execute(
            f"create view {name} as select asked.sweep, asked.cell{_axes(axes, schema.names)}, "
            f"asked.seed, asked.key{columns} from asked join {name}_rows r using (key)"
        )
    own = _axes(axes, [])
    connection.execute(
        f"create view cells as select asked.sweep, asked.cell{own}, count(r.key) as runs "
        f"from asked left join runs_rows r using (key) group by asked.sweep, asked.cell{own}"
    )
    return connection


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
        raise UserError(f"query: {error}; views are {', '.join(VIEWS)}") from None
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


def _axes(axes: list[str], taken: list[str]) -> str:
    """Axes as columns of a view, those renamed whose names its table has."""
    return "".join(
        f", asked.{quoted(name)} as {quoted(f'axis_{name}')}"
        if name in taken
        else f", asked.{quoted(name)}"
        for name in axes
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
