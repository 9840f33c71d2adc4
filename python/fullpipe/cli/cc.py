"""`fullpipe cc`: the congestion controls and their constants."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fullpipe.authoring.new import LIKE, write_new
from fullpipe.base.errors import UserError
from fullpipe.cli.completion import congestion_controls
from fullpipe.cli.ending import fail
from fullpipe.cli.output import console
from fullpipe.cli.saying import say
from fullpipe.congestion.external import is_file_name
from fullpipe.congestion.registry import cc_set, cc_sets

if TYPE_CHECKING:
    from fullpipe.authoring.cost import Cost

app = typer.Typer(help="Congestion controls and their constants.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """Lists the congestion controls: parameter sets and the algorithms behind them."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("name", "algorithm", "in the kernel", "what it is"):
        table.add_column(title)
    for item in cc_sets().values():
        table.add_row(item.name, item.algorithm, item.kernel_name, item.title)
    console.print(table)


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            help="a name of `fullpipe cc list`, or a file", autocompletion=congestion_controls
        ),
    ],
    json_: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Prints every constant of a congestion control: value, unit, range, meaning of 0, source."""
    found = cc_set(name)
    if json_:
        items = [
            {
                "name": param.name, "value": value / param.scale, "unit": param.unit,
                "min": param.min / param.scale, "max": param.max / param.scale,
                "zero": param.zero, "source": param.source, "meaning": param.meaning,
                "default": param.default / param.scale,
            }
            for param, value in zip(found.params, found.values, strict=True)
        ]  # fmt: skip
        print(json.dumps({"name": found.name, "algorithm": found.algorithm, "constants": items}))
        return
    console.print(f"{found.name}: {found.title}\nalgorithm {found.algorithm}: {found.sources}")
    for param, value in zip(found.params, found.values, strict=True):
        mark = "" if value == param.default else "   (differs from the algorithm's default)"
        console.print(f"\n[bold]{param.name}[/bold] = {value / param.scale:g} {param.unit}{mark}")
        console.print(f"    {param.meaning}", markup=False)
        limits = f"{param.min / param.scale:g} to {param.max / param.scale:g}"
        console.print(f"    range {limits}; 0: {param.zero}; source: {param.source}", markup=False)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="of the algorithm, and of its file: NAME.h")],
    like: Annotated[
        str | None, typer.Option(help=f"one of {', '.join(LIKE)}; else the smallest there is")
    ] = None,
) -> None:
    """Writes NAME.h into this folder: a congestion control to start from, which runs at once."""
    path = write_new(name, like, Path())
    say(f"{path}: fullpipe compare ./{path} cubic runs it, fullpipe cc check ./{path} tries it")


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="a congestion control's file, such as ./mine.h")],
    kernels: Annotated[
        str | None,
        typer.Option(
            help="kernels of --engine vm, such as 6.1,6.12; empty: none", show_default="6.12"
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Tries a congestion control's file: warnings, hostile paths in the simulator, eBPF, the
    verifiers of the kernels at hand, every call of a kernel replayed natively, simulator beside
    kernel, what it costs an ACK. Exit status 2: something does not hold."""
    from fullpipe.authoring.check import check as steps  # engines are slow to load
    from fullpipe.authoring.check import machine_for
    from fullpipe.congestion.external.classes import is_class_name

    if "[" in file:
        raise UserError(f"{file}: checks are of a file as it stands; leave out [...]")
    if not is_file_name(file):
        raise UserError(f"{file}: name a file, such as ./{file}.h")
    if is_class_name(file):
        raise UserError(f"{file}: checks are for files of C; a class runs in the simulator alone")
    releases = [name.strip() for name in (kernels or "").split(",") if name.strip()]
    for release in releases:
        machine_for(release)
    taken = []
    for step in steps(file, ["6.12"] if kernels is None else releases):
        taken.append(step)
        if json_:
            continue
        mark = {True: "holds", False: "FAILS", None: "not asked"}[step.holds]
        console.print(f"{mark:9} {step.name}: {step.words}", markup=False, highlight=False)
        if step.costs:
            console.print(_cost_table(step.costs))
    if json_:
        print(json.dumps({"file": file, "steps": [
            {"name": step.name, "holds": step.holds, "words": step.words}
            | ({"costs": [cost.document() for cost in step.costs]} if step.costs else {})
            for step in taken
        ]}))  # fmt: skip
    failed = sum(step.holds is False for step in taken)
    if failed:
        fail(f"{file}: {failed} of its checks do not hold", 2)


def _cost_table(costs: Sequence[Cost]) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold", title="instructions")
    table.add_column("")
    for title in ("algorithm, an ACK", "glue, an ACK", "whole guest, a packet", "ACKs"):
        table.add_column(title, justify="right")
    for cost in costs:
        glue = "-" if cost.glue_an_ack is None else f"{cost.glue_an_ack:,.0f}"
        table.add_row(
            cost.name, f"{cost.own_an_ack:,.0f}", glue, f"{cost.guest_a_packet:,.0f}",
            f"{cost.acks:,}",
        )  # fmt: skip
    return table
