"""Tables and lines on stdout. Rich draws them for a terminal, and where they have to be folded;
plain ones need not wait for it to load.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

#: Tables fit this many columns, also where the output is no terminal.
WIDTH = 100
#: Variables that make Rich take a pipe for a terminal (rich.console).
_STYLES = ("FORCE_COLOR", "TTY_COMPATIBLE")


class Sheet:
    """A table of plain text: columns, and rows of as many cells or fewer."""

    def __init__(self) -> None:
        self._columns: list[tuple[str, bool, int | None]] = []
        self._rows: list[tuple[str, ...]] = []

    def add_column(self, title: str, right: bool = False, most: int | None = None) -> None:
        """A column, aligned at the right or not, in which cells are folded that have more letters
        than `most`."""
        self._columns.append((title, right, most))

    def add_row(self, *cells: str) -> None:
        """A row; cells that are missing are empty."""
        self._rows.append((*cells, *[""] * (len(self._columns) - len(cells))))

    def plain(self) -> str | None:
        """The table as text; None where it has to be folded, or has other letters than ASCII."""
        titles = tuple(title for title, _, _ in self._columns)
        rows = [titles, *self._rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        folded = any(
            most is not None and width > most
            for (_, _, most), width in zip(self._columns, widths, strict=True)
        )
        text = "\n".join(
            "".join(
                f" {cell.rjust(width) if right else cell.ljust(width)} "
                for cell, (_, right, _), width in zip(row, self._columns, widths, strict=True)
            )
            for row in rows
        )
        wide = sum(widths) + 2 * len(widths) > WIDTH
        return None if folded or wide or not _is_plain(text.replace("\n", "")) else text

    def rich(self) -> Table:
        """The table for Rich."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 1), header_style="bold")
        for title, right, most in self._columns:
            table.add_column(
                Text(title),
                justify="right" if right else "left",
                overflow="ellipsis" if most is None else "fold",
                max_width=most,
            )
        for row in self._rows:
            table.add_row(*map(Text, row))
        return table


def show(what: Sheet | str) -> None:
    """Prints a table or a line."""
    text = what.plain() if isinstance(what, Sheet) else what
    is_styled = sys.stdout.isatty() or not os.environ.keys().isdisjoint(_STYLES)
    fits = isinstance(what, Sheet) or (len(what) <= WIDTH and _is_plain(what))
    if text is not None and fits and not is_styled:
        print(text)
        return
    from fullpipe.cli.output import console

    console.print(what.rich() if isinstance(what, Sheet) else what, markup=False)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def number(value: float | None, unit: float, digits: int) -> str:
    """A value in a unit, or a dash."""
    return "-" if value is None else f"{value / unit:.{digits}f}"


def percent(value: float | None) -> str:
    """A ratio as a percentage, or a dash."""
    return "-" if value is None else f"{100 * value:.2f} %"
