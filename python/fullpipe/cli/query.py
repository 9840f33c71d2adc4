"""`fullpipe query`: SQL over a store of sweeps."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from fullpipe.base.errors import UserError
from fullpipe.cli.chosen_sweep import say_which
from fullpipe.cli.options import ChosenSweep, Json, StoreFolder
from fullpipe.cli.output import console, message, text_table

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 200
VIEWS = ("cells", "runs", "flows", "path")
#: An answer with more columns is transposed, and so many of its rows are shown.
_COLUMNS = 9
_TRANSPOSED_ROWS = 3


def query(
    store: StoreFolder,
    sql: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL", help="One SELECT over cells, runs, flows and path; none: list columns."
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answer as .csv or .parquet.")
    ] = None,
    json_: Json = False,
    allow_files: Annotated[
        bool,
        typer.Option(
            "--allow-files", help="Let SQL read files beside the store's (read_csv, ...)."
        ),
    ] = False,
    sweep: ChosenSweep = None,
) -> None:
    """Answers an SQL query over the results of a sweep.

    The views `cells`, `runs`, `flows` and `path` have the axes as columns: as written, and as
    numbers in base units where they have any (`rtt`, `rtt_s`). Without SQL it lists their columns.
    See docs/reference/sweeps.md."""
    from fullpipe.sweep.query import ask, check_export, export
    from fullpipe.sweep.store import Store

    if to is not None:
        check_export(to)
    opened = Store(store)
    if sql is None:
        if to is not None or json_:
            raise UserError("query: --to and --json need a SELECT")
        for view in VIEWS:
            columns = ask(opened, f"select * from {view} limit 0", sweep=sweep).column_names
            console.print(f"{view}: {', '.join(columns)}\n", highlight=False)
        say_which(opened, sweep)
        return
    answer = ask(opened, sql, allow_files, sweep)
    say_which(opened, sweep)
    if to is not None:
        export(answer, to)
        message(f"wrote {to}")
        return
    if json_:
        print(json.dumps([_finite(row) for row in _rows(answer)], default=str))
    else:
        is_wide = len(answer.schema) > _COLUMNS
        most = _TRANSPOSED_ROWS if is_wide else _ROWS
        rows = _rows(answer.slice(0, most))
        console.print(_transposed(answer, rows) if is_wide else _table(answer, rows))
        if not rows:
            message("no rows")
        if answer.num_rows > most:
            remedy = (
                "name the columns that you want, or --to FILE.csv" if is_wide else "--to FILE.csv"
            )
            message(f"{most} of {answer.num_rows} rows are shown; for all: {remedy}")


def _rows(answer: pa.Table) -> list[dict[str, Any]]:
    """The rows as Python's values. Raises UserError for what SQL has and Python has not."""
    try:
        rows: list[dict[str, Any]] = answer.to_pylist()
    except (OverflowError, ValueError) as error:
        raise UserError(
            f"query: a value cannot be shown ({error}); write it as text, CAST(... AS VARCHAR)"
        ) from None
    return rows


def _table(answer: pa.Table, rows: list[dict[str, Any]]) -> Table:
    table = text_table()
    for field in answer.schema:
        is_number = "int" in str(field.type) or str(field.type) in ("double", "float")
        table.add_column(field.name, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_shown, row.values()))
    return table


def _transposed(answer: pa.Table, rows: list[dict[str, Any]]) -> Table:
    """A line for each column of the answer and a column for each of its rows."""
    table = text_table()
    table.show_header = False
    table.add_column(style="bold", overflow="fold")
    for _ in rows:
        table.add_column(justify="right", overflow="fold", max_width=18)
    for name in answer.column_names:
        table.add_row(name, *(_shown(row[name]) for row in rows))
    return table


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON allows it: null for infinity and NaN."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
