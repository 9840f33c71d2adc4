"""What commands share on the screen: a table of means, and the two consoles. Loads Rich."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fullpipe.cli.sheet import WIDTH, number

if TYPE_CHECKING:
    from fullpipe.report.comparison import Cell, Row, Test

console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False, emoji=False)
#: Progress and messages go to stderr, so that stdout can be piped.
messages = Console(stderr=True, highlight=False, emoji=False)


def comparison_table(rows: Sequence[Row], alarms: Mapping[str, str]) -> Table:
    """Means with intervals, a row for each metric and group; `alarms`: group -> why not to trust
    it, empty where it is."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("metric")
    table.add_column("of", overflow="fold", max_width=28)
    table.add_column("n", justify="right")
    table.add_column("mean", justify="right")
    table.add_column("95 % interval")
    test = next((row.test.name for row in rows if row.test is not None), None)
    if test is not None:
        table.add_column(test, overflow="fold", max_width=24)
    for row in rows:
        name = f"{row.metric} ({row.unit})" if row.unit else row.metric
        for position, (label, cell) in enumerate(row.cells.items()):
            mark = "  [bold red]UNHEALTHY[/]" if alarms.get(label) else ""
            cells = [
                "" if position else name, escape(label) + mark, str(cell.n),
                number(cell.mean, 1, row.digits), _interval(cell, row.digits),
            ]  # fmt: skip
            if row.test is not None:
                cells.append("" if position else _p_value(row.test))
            table.add_row(*cells)
    return table


def _interval(cell: Cell, digits: int) -> str:
    if cell.low is None or cell.high is None:
        return "needs 3 runs"
    if cell.method == "constant":
        return "all runs are equal"
    return f"{cell.low:.{digits}f} to {cell.high:.{digits}f}"


def _p_value(test: Test) -> str:
    return f"none: {test.missing}" if test.p_value is None else f"p = {test.p_value:.2g}"
