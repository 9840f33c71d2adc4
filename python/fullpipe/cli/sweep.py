"""`fullpipe sweep`: its commands (`sweeping`) as a group."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from fullpipe.cli.sweeping import cell, merge, run


class _FileFirst(TyperGroup):
    """`fullpipe sweep FILE` is `fullpipe sweep run FILE`."""

    usual = "run"
    #: The module of its commands.
    home = "sweeping"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [self.usual, *args]
        return list(super().parse_args(ctx, args))


app = typer.Typer(
    cls=_FileFirst,
    no_args_is_help=True,
    help="A scenario over axes: `fullpipe sweep FILE.toml` runs what is missing of it.",
)
for command in (run, cell, merge):
    app.command()(command)
