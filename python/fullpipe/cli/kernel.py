"""`fullpipe kernel`: our congestion controls in this host's kernel, for any program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from fullpipe.cli.completion import congestion_controls
from fullpipe.cli.output import console, say
from fullpipe.errors import UserError

app = typer.Typer(
    help="Our congestion controls in this host's kernel, for any program (needs root).",
    no_args_is_help=True,
)

_Name = Annotated[
    str,
    typer.Argument(help="a name of `fullpipe cc list`", autocompletion=congestion_controls),
]
_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="another value for a constant; repeatable"),
]
_As = Annotated[
    str | None,
    typer.Option("--as", metavar="KERNEL_NAME", help="what sockets write, instead of fp_..."),
]


@app.command()
def load(name: _Name, set_: _Set = None, as_: _As = None) -> None:
    """Loads a congestion control into this host's kernel, where it stays until `unload` or the
    next boot. Programs then choose it by its kernel name."""
    from fullpipe import kernel

    wanted = kernel.request(name, _overrides(set_), as_)
    kernel.load(wanted)
    chosen = wanted.kernel_name
    say(f"{chosen} is loaded: iperf3 -C {chosen}, setsockopt(TCP_CONGESTION), or for all")
    say(f"programs: sysctl net.ipv4.tcp_congestion_control={chosen}")


@app.command("list")
def list_(json_: Annotated[bool, typer.Option("--json", help="print as JSON")] = False) -> None:
    """Lists what is loaded: names, constants that differ from the set's, sockets."""
    from fullpipe import kernel

    found = kernel.list_loaded()
    if json_:
        items = [
            {
                "kernel_name": item.kernel_name, "algorithm": item.algorithm,
                "name": item.base.name, "changes": item.changes, "sockets": item.sockets,
                "opened": item.opened, "is_registered": item.is_registered,
                "constants": {
                    param.name: value / param.scale
                    for param, value in zip(item.base.params, item.params, strict=True)
                },
            }
            for item in found
        ]  # fmt: skip
        print(json.dumps(items))
        return
    if not found:
        say("nothing is loaded")
        return
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("in the kernel", "is", "with", "sockets", "ever"):
        table.add_column(title, overflow="fold")
    for item in found:
        mark = "" if item.is_registered else " (unloaded)"
        changes = ", ".join(f"{name}={value:g}" for name, value in item.changes.items())
        row = (item.kernel_name + mark, item.base.name, changes, item.sockets, item.opened)
        table.add_row(*(escape(str(cell)) for cell in row))
    console.print(table)


@app.command()
def unload(
    name: Annotated[str, typer.Argument(help="what `fullpipe kernel list` shows, or its set")],
) -> None:
    """Takes a congestion control away. Sockets that use it keep it until they close."""
    from fullpipe import kernel

    kernel_name, sockets = kernel.unload(name)
    left = f"; {sockets} sockets go on with it until they close" if sockets else ""
    say(f"{kernel_name} is unloaded{left}")


@app.command()
def trace(
    name: _Name,
    out: Annotated[Path, typer.Option("--out", "-o", help="file for the trace")],
    command: Annotated[list[str], typer.Argument(help="-- and the program to run meanwhile")],
    set_: _Set = None,
    as_: _As = None,
) -> None:
    """Loads a congestion control, runs a program, and writes every call that the kernel made of
    it to a file for `fullpipe replay`. The program chooses it by its kernel name."""
    from fullpipe import kernel

    kernel.trace(kernel.request(name, _overrides(set_), as_), out, command)
    say(f"the trace is in {out}: fullpipe replay {out}")


def _overrides(texts: list[str] | None) -> dict[str, float]:
    overrides = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        try:
            if not (name and equals):
                raise ValueError
            overrides[name] = float(value)
        except ValueError:
            raise UserError(f"--set {text}: must be NAME=VALUE, such as loss_thresh=0.02") from None
    return overrides
