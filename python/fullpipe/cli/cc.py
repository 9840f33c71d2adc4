"""`fullpipe cc`: the congestion controls and their constants."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from fullpipe.authoring.new import LIKE, Like, write_new
from fullpipe.base.errors import UserError
from fullpipe.cli.options import CcName, Json
from fullpipe.cli.output import console, fail, message, messages, text_table

if TYPE_CHECKING:
    from fullpipe.authoring.cost import Cost
    from fullpipe.congestion.registry import Param

app = typer.Typer(help="Congestion controls and their constants.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """Lists the congestion controls.

    Each is a parameter set of an algorithm."""
    from fullpipe.congestion.registry import cc_sets
    from fullpipe.congestion.stacks import STACKS

    table = text_table("name", "algorithm", "in the kernel", "what it is")
    for item in cc_sets().values():
        table.add_row(item.name, item.algorithm, item.kernel_name, item.title)
    for name, stack in STACKS.items():
        for control in stack.controls:
            title = f"{stack.title}: an extra"
            table.add_row(f"{name}:{control}", "", "", title)
    console.print(table)


@app.command()
def show(name: CcName, json_: Json = False) -> None:
    """Prints the constants and the variables of a congestion control.

    A constant has a value, a unit, a range, the meaning of 0 and a source; a variable is a column
    of `cc_samples`."""
    from fullpipe.authoring.kernel_import import never_set
    from fullpipe.congestion.registry import cc_set, variables_of

    control = cc_set(name)
    variables = [
        variable
        for variable in variables_of(control.algorithm)
        if variable.name not in never_set(control.algorithm)
    ]
    if json_:
        items = [
            {
                "name": param.name,
                "value": param.value(value),
                "unit": param.unit,
                "min": param.value(param.min),
                "max": param.value(param.max),
                "zero": param.zero,
                "source": param.source,
                "meaning": param.meaning,
                "default": param.value(param.default),
            }
            for param, value in zip(control.params, control.values, strict=True)
        ]
        shown = [
            {"column": variable.column, "unit": variable.unit, "meaning": variable.meaning}
            for variable in variables
        ]
        document = {
            "name": control.name,
            "algorithm": control.algorithm,
            "constants": items,
            "variables": shown,
        }
        print(json.dumps(document))
        return
    _print_entry(f"{control.name}: {control.title}")
    _print_entry(f"algorithm {control.algorithm}: {control.sources}")
    for param, value in zip(control.params, control.values, strict=True):
        mark = "" if value == param.default else "   (differs from the algorithm's default)"
        choice = f"{param.choices[value]} ({param.unit})" if param.choices else None
        value_text = f" = {choice or f'{_decimal(param, value)} {param.unit}'}{mark}"
        limits = f"{_decimal(param, param.min)} to {_decimal(param, param.max)}"
        console.print()
        _print_entry(f"{param.name}{value_text}", bold=len(param.name))
        _print_entry(param.meaning, "    ")
        _print_entry(f"range {limits}; 0: {param.zero}; source: {param.source}", "    ")
    if not variables:
        console.print("\nrecorded (cc_samples): nothing of its own")
        return
    console.print("\nrecorded (cc_samples):")
    for variable in variables:
        unit = f" ({variable.unit})" if variable.unit else ""
        _print_entry(
            f"{variable.column}{unit}: {variable.meaning}", "  ", bold=len(variable.column)
        )


def _decimal(param: Param, stored: int) -> str:
    """A stored value as a decimal; an integer with all its digits."""
    whole, fraction = divmod(stored - param.origin, param.scale)
    return f"{param.value(stored):g}" if fraction else str(whole)


def _print_entry(text: str, first: str = "", indent: str | None = None, bold: int = 0) -> None:
    """Prints lines, the first after `first`; what does not fit goes on after `indent`, by default
    four columns further. `bold`: letters at the begin."""
    indent = f"{first}    " if indent is None else indent
    lines = [
        textwrap.fill(
            line,
            console.width,
            initial_indent=indent if number else first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for number, line in enumerate(text.splitlines())
    ]
    folded = Text("\n".join(lines))
    folded.stylize("bold", len(first), len(first) + bold)
    console.print(folded, soft_wrap=True)


@app.command()
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the algorithm; its file is NAME.h.")
    ],
    like: Annotated[
        Like | None,
        typer.Option(
            metavar="NAME",
            help=f"Start from one of {', '.join(LIKE)}; by default from the smallest possible.",
        ),
    ] = None,
) -> None:
    """Writes the file of a new congestion control, which runs at once."""
    path = write_new(name, like, Path())
    message(f"{path}: `fullpipe compare ./{path} cubic` runs it,")
    message(f"`fullpipe cc check ./{path}` checks it")


@app.command("import")
def import_(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A kernel's file, such as net/ipv4/tcp_illinois.c or linux-6.1:tcp_illinois.c.",
        ),
    ],
    as_: Annotated[
        str | None,
        typer.Option("--as", help="Name of the algorithm; by default the kernel's."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace NAME.h.")] = False,
) -> None:
    """Writes NAME.h for a congestion control of a Linux kernel.

    The kernel's file runs without this: name it where algorithms are named, as ./tcp_NAME.c. NAME.h
    is written here, with copies of the kernel's files if they lie elsewhere."""
    from fullpipe.authoring.kernel_import import import_kernel_file
    from fullpipe.authoring.kernel_sources import find

    path, algorithm = import_kernel_file(find(file), as_, Path(), force)
    message(f"{path}: {algorithm} of {file}; `fullpipe compare ./{path} cubic` runs it")


@app.command()
def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File of a congestion control, such as ./mine.h.")
    ],
    kernels: Annotated[
        str | None,
        typer.Option(
            help="Kernels of --engine vm, such as 6.1,6.12; empty: none.", show_default="6.12"
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Checks the file of a congestion control.

    Compiler warnings, hostile paths in the simulator, eBPF, the verifiers of the kernels at hand,
    every call of a kernel replayed natively, simulator and kernel compared, and what an ACK
    costs. Exit status 2: a check failed."""
    from fullpipe.authoring.check import check as steps
    from fullpipe.authoring.check import machine_for
    from fullpipe.congestion.userfiles import is_file_name
    from fullpipe.congestion.userfiles.classes import is_class_name
    from fullpipe.congestion.userfiles.source import read_text

    if "[" in file:
        raise UserError(f"{file}: checks take the file alone; leave out [...]")
    if not is_file_name(file):
        raise UserError(f"{file}: name a file, such as ./{file}.h")
    if is_class_name(file):
        raise UserError(f"{file}: checks are for files of C; a class runs in the simulator alone")
    releases = [name.strip() for name in (kernels or "").split(",") if name.strip()]
    for release in releases:
        machine_for(release)
    read_text(Path(file), "a file of C")
    done = []
    wanted = ["6.12"] if kernels is None else releases
    with messages.status("") as status:  # on a terminal, what is being done
        for step in steps(file, wanted, begins=status.update):
            done.append(step)
            if json_:
                continue
            mark = {True: "holds", False: "FAILS", None: "not run"}[step.holds]
            _print_entry(f"{mark:9} {step.name}: {step.words}", indent=" " * 10)
            if step.costs:
                console.print(_cost_table(step.costs))
    if json_:
        document = {
            "file": file,
            "steps": [
                {"name": step.name, "holds": step.holds, "words": step.words}
                | ({"costs": [cost.document() for cost in step.costs]} if step.costs else {})
                for step in done
            ],
        }
        print(json.dumps(document))
    failed = sum(step.holds is False for step in done)
    if failed:
        fail(f"{file}: {failed} of its checks failed", 2)


def _cost_table(costs: Sequence[Cost]) -> Table:
    table = text_table(
        "instructions",
        right=("algorithm\nper ACK", "glue\nper ACK", "whole guest\nper packet", "ACKs"),
    )
    for cost in costs:
        glue = "-" if cost.glue_an_ack is None else f"{cost.glue_an_ack:,.0f}"
        table.add_row(
            cost.name,
            f"{cost.own_an_ack:,.0f}",
            glue,
            f"{cost.guest_a_packet:,.0f}",
            f"{cost.acks:,}",
        )
    return table
