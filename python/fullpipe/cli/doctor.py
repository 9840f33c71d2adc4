"""`fullpipe doctor`: what this machine can run."""

from __future__ import annotations

from typing import Annotated

import typer

from fullpipe.cli.output import console, message, text_table
from fullpipe.engines.base import EngineName


def doctor(
    install_: Annotated[
        bool,
        typer.Option("--install", help="Install what is missing and download the kernels."),
    ] = False,
    for_: Annotated[EngineName | None, typer.Option("--for", help="Check one engine only.")] = None,
) -> None:
    """Checks what this machine can run, and how to install the rest.

    Exit status 1: the engine of --for lacks what every scenario needs."""
    from fullpipe import __version__
    from fullpipe.doctor import checks, install

    if install_:
        install(message)
    found = checks(for_)
    console.print(f"fullpipe {__version__}")
    table = text_table("", "what", "found")
    for check in found:
        table.add_row("ok" if check.ok else "no", check.name, check.detail)
    console.print(table)
    missing = [check for check in found if not check.ok]
    if missing:
        console.print()
        losses = text_table("missing", "lost without it", "remedy")
        for check in missing:
            losses.add_row(check.name, check.lost, check.remedy)
        console.print(losses)
    if any(for_ in check.needed for check in missing):
        raise typer.Exit(1)
