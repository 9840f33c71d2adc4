"""`fullpipe doctor`: what this machine can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.markup import escape
from rich.table import Table

from fullpipe.base.errors import UserError
from fullpipe.cli.completion import engines
from fullpipe.cli.output import console, messages

if TYPE_CHECKING:
    import typer
else:
    from fullpipe.cli.later import typer


def doctor(
    mend_: Annotated[
        bool, typer.Option("--mend", help="install what is missing and download the kernels")
    ] = False,
    for_: Annotated[
        str | None,
        typer.Option("--for", help="one engine: sim, vm or live", autocompletion=engines),
    ] = None,
) -> int:
    """Tries what runs need and says what this machine lacks, what is lost, what mends it.

    Exit status: 0, or 1 where the engine of --for lacks what every scenario needs."""
    from fullpipe import __version__
    from fullpipe.engines import engine_names
    from fullpipe.engines.requirements import checks, mend

    if for_ is not None and for_ not in engine_names():
        raise UserError(f"--for {for_}: unknown; known are {', '.join(engine_names())}")
    if mend_:
        mend(lambda what: messages.print(what))
    found = checks(for_)
    console.print(f"fullpipe {__version__}")
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("", "what", "found", "lost without it", "what mends it"):
        table.add_column(title, overflow="fold")
    for check in found:
        row = (check.name, check.detail) + (("", "") if check.ok else (check.lost, check.mend))
        table.add_row("ok" if check.ok else "[bold]no[/bold]", *map(escape, row))
    console.print(table)
    return int(any(not check.ok and for_ in check.needed for check in found))
