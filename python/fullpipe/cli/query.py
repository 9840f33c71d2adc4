"""`fullpipe query`: a store of sweeps, asked with SQL."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from fullpipe.cli.output import console
from fullpipe.cli.saying import say

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 200
#: Beyond so many columns rows are shown upright, and so many of them.
_COLUMNS = 9
_UPRIGHT_ROWS = 3


def query(
    store: Annotated[Path, typer.Argument(metavar="DIR", help="a store that a sweep filled")],
    sql: Annotated[str, typer.Argument(help="one SELECT over cells, runs, flows, path")],
    to: Annotated[
        Path | None, typer.Option(help="write the answer into FILE.csv or FILE.parquet")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="print the rows as JSON")] = False,
) -> int:
    """Answers one SELECT over the views `cells`, `runs`, `flows` and `path` of a store.

    Axes are columns: as written, and as numbers in base units where they have any (`rtt`,
    `rtt_s`). `describe` of a view: select * from flows limit 1. See docs/sweeps.md."""
    from fullpipe.sweep.query import ask, export
    from fullpipe.sweep.store import Store

    answer = ask(Store(store), sql)
    if to is not None:
        export(answer, to)
        say(f"wrote {to}")
        return 0
    if json_:
        print(json.dumps([_plain_row(row) for row in answer.to_pylist()], default=str))
        return 0
    if len(answer.schema) > _COLUMNS:
        _print_upright(answer)
    else:
        _print_table(answer)
    return 0


def _print_table(answer: pa.Table) -> None:
    numeric = [
        str(field.type) in ("double", "float") or "int" in str(field.type)
        for field in answer.schema
    ]
    rows = [[_shown(value) for value in row.values()] for row in answer.slice(0, _ROWS).to_pylist()]
    lines = _aligned([answer.column_names, *rows], numeric)
    if len(lines[0]) <= console.width and all(line.isascii() for line in lines):
        # Laid out here: Rich takes as long for two hundred rows as the question itself.
        console.print(lines[0], style="bold", markup=False, soft_wrap=True)
        console.out("\n".join(lines[1:]), end="\n" if rows else "", highlight=False)
    else:
        table = Table(box=None, padding=(0, 1), header_style="bold")
        for name, is_number in zip(answer.column_names, numeric, strict=True):
            table.add_column(escape(name), justify="right" if is_number else "left")
        for row in rows:
            table.add_row(*(escape(value) for value in row))
        console.print(table)
    if answer.num_rows > _ROWS:
        say(f"{answer.num_rows} rows, of which {_ROWS} are shown; --to FILE.csv has all")


def _aligned(rows: list[list[str]], right: list[bool]) -> list[str]:
    """Rows as lines with a space before and two between their columns."""
    widths = [max(len(text) for text in column) for column in zip(*rows, strict=True)]
    return [
        " "
        + "  ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        )
        + " "
        for row in rows
    ]


def _print_upright(answer: pa.Table) -> None:
    """A line for each column and a column for each row: many names do not fit side by side."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    rows = answer.slice(0, _UPRIGHT_ROWS).to_pylist()
    table.add_column(style="bold")
    for _ in rows:
        table.add_column(justify="right", overflow="fold", max_width=18)
    for name in answer.column_names:
        table.add_row(escape(name), *(escape(_shown(row[name])) for row in rows))
    console.print(table)
    if answer.num_rows > _UPRIGHT_ROWS:
        say(
            f"{answer.num_rows} rows, of which {_UPRIGHT_ROWS} are shown; name the columns that "
            "you want, or --to FILE.csv"
        )


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
