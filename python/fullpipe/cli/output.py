"""What commands print: results on stdout; messages on stderr, so that stdout can be piped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from fullpipe.base.printable import message_of, printable

if TYPE_CHECKING:
    from fullpipe.plots.look import Look
    from fullpipe.recording.recording import Recording
    from fullpipe.report.comparison import Cell, Row

#: Most characters of a cell or of a paragraph, and of a failure: an oops of a kernel is 9,000.
_MAX_TEXT, _MAX_FAILURE = 20_000, 12_000


class _Console(Console):
    """Prints no control sequences but Rich's own."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Text before it is measured."""
        return super().render_str(printable(text, _MAX_TEXT), **options)

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """Everything else, such as `Text`."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text, _MAX_TEXT), style, control)


console = _Console(markup=False, highlight=False, emoji=False)
messages = _Console(markup=False, highlight=False, emoji=False, stderr=True)


def message(line: str, style: str | None = None) -> None:
    """Prints a line on stderr, not wrapped: it may hold a path."""
    messages.print(message_of(line), style=style, soft_wrap=True)


def warn(subject: str, reasons: Sequence[str]) -> None:
    """Prints why a run is not to be trusted: the first line of each reason. Further lines are a
    machine's last words, which the command prints at its end."""
    for reason in reasons:
        first, _, _ = reason.partition("\n")
        message(f"warning: {subject}: {first}", "bold red")


def fail(reason: str, status: int) -> NoReturn:
    """Prints why the command failed and ends it with an exit status."""
    messages.print(message_of(f"fullpipe: {reason}", _MAX_FAILURE), soft_wrap=True)
    raise typer.Exit(status)


def write_figures(
    recordings: Sequence[Recording], folder: Path | None, look: Look | None = None
) -> None:
    """Writes figures into a folder, if one is wanted, and prints their names."""
    if folder is not None:
        from fullpipe.plots.look import Look
        from fullpipe.report import figures

        for path in figures.write_figures(recordings, folder, look or Look()):
            message(f"figure: {path}")


def text_table(*left: str, right: Sequence[str] = ()) -> Table:
    """A table without lines: first columns of text, which fold, then columns of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in left:
        table.add_column(title, overflow="fold")
    for title in right:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def print_table(table: Table) -> None:
    """Prints a table without the last columns that the terminal has no room for, and names those:
    Rich would cut every number and leave the first column out."""
    roomy = console.options.update(width=10_000)
    left_out: list[str] = []
    while len(table.columns) > 1 and Measurement.get(console, roomy, table).minimum > console.width:
        left_out.insert(0, str(table.columns.pop().header).replace("\n", " "))
    console.print(table)
    if left_out:
        message(f"the terminal is too narrow for {', '.join(left_out)}")


def number(value: float | None, unit: float, digits: int) -> str:
    """A value in a unit, or a dash."""
    return "-" if value is None else f"{value / unit:.{digits}f}"


def percent(value: float | None) -> str:
    """A ratio as a percentage, or a dash."""
    return "-" if value is None else f"{100 * value:.2f} %"


def duration(seconds: float) -> str:
    """A time in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def difference_table(rows: Sequence[Row]) -> Table | None:
    """How much each group differs from the first, with intervals; whether that is worth noticing;
    then the test. None where there is one group."""
    test = next((row.test.name for row in rows if row.test is not None), None)
    if test is None:
        return None
    first, *others = rows[0].cells
    of = [] if len(others) == 1 else ["of"]
    less = f"{others[0]} less {first}" if len(others) == 1 else f"less {first}"
    table = text_table("difference", *of, right=(less,))
    table.add_column("95 % interval")
    table.add_column("worth\nnoticing")
    table.add_column("p", justify="right")
    for row in rows:
        for position, (label, difference) in enumerate(row.differences.items()):
            is_first = position == 0
            is_known = difference.low is not None and difference.high is not None
            p_value = row.test.p_value if row.test is not None else None
            table.add_row(
                _named(row) if is_first else "",
                *([label] if of else []),
                f"{difference.mean:+.{row.digits}f}",
                f"{difference.low:+.{row.digits}f} to {difference.high:+.{row.digits}f}"
                if is_known
                else "-",
                _NOTICEABLE[difference.is_noticeable],
                "" if not is_first else "-" if p_value is None else f"{p_value:.2g}",
            )
    return table


def print_comparison(rows: Sequence[Row], groups: Mapping[str, Sequence[Recording]]) -> None:
    """The differences, which were asked for, then the means. Groups with a problem of a run are
    marked."""
    table = difference_table(rows)
    if table is not None:
        console.print(table)
        console.print()
    alarms = {
        name: "; ".join(why for run in runs for why in run.problems)
        for name, runs in groups.items()
    }
    console.print(comparison_table(rows, alarms))


def without_test(rows: Sequence[Row]) -> str:
    """Why some rows have no p; empty where all have."""
    reasons = [row.test.missing for row in rows if row.test is not None]
    return "; ".join(dict.fromkeys(filter(None, reasons)))


def _named(row: Row) -> str:
    return f"{row.metric} ({row.unit})" if row.unit else row.metric


_NOTICEABLE = {True: "yes", False: "no", None: "not known"}


def comparison_table(rows: Sequence[Row], alarms: Mapping[str, str]) -> Table:
    """Means with intervals: a row for each metric and group. `alarms`: group -> why it is not to be
    trusted, empty where it is."""
    table = text_table("metric", "of", right=("n", "mean"))
    table.add_column("95 % interval")
    for row in rows:
        for position, (label, cell) in enumerate(row.cells.items()):
            censored = row.censored.get(label, 0)
            table.add_row(
                _named(row) if position == 0 else "",
                f"{label}  UNHEALTHY" if alarms.get(label) else label,
                str(cell.n),
                (">= " if censored else "") + number(cell.mean, 1, row.digits),
                f"{censored} of {cell.n} not done" if censored else _interval(cell, row.digits),
                style="bold red" if alarms.get(label) else None,
            )
    return table


def equal_runs(rows: Sequence[Row]) -> str:
    """What to say where repetitions do not differ in anything; empty where they do."""
    cells = [cell for row in rows for cell in row.cells.values() if cell.n > 1]
    if not cells or any(cell.method != "constant" for cell in cells):
        return ""
    return (
        "all runs are equal, since nothing in them is random: "
        "`--set rtt_spread=1pkt` gives each another RTT"
    )


def _interval(cell: Cell, digits: int) -> str:
    if cell.low is None or cell.high is None:
        return "needs 3 runs"
    if cell.method == "constant":
        return "all runs are equal"
    return f"{cell.low:.{digits}f} to {cell.high:.{digits}f}"
