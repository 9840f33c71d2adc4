"""`fullpipe doctor`: what this machine can run."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from fullpipe.cli.output import console, messages


def doctor(
    mend_: Annotated[
        bool, typer.Option("--mend", help="install what is missing and download the kernels")
    ] = False,
) -> int:
    """Says what this machine can run, and the one command that mends what it cannot."""
    from fullpipe import __version__, cc_sets
    from fullpipe.engines.requirements import Check, checks, mend

    if mend_:
        mend(lambda what: messages.print(what))
    sets = len(cc_sets.cc_sets())
    found = [Check("sim", True, f"{sets} congestion controls compiled in"), *checks()]
    console.print(f"fullpipe {__version__}")
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("", "what", "found", "what mends it"):
        table.add_column(title, overflow="fold")
    for check in found:
        mark = "ok" if check.ok else "[bold]no[/bold]"
        table.add_row(mark, check.name, check.detail, "" if check.ok else check.mend)
    console.print(table)
    return 0
