"""Options and arguments that several commands share, and what completes their values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from fullpipe.base.errors import UserError
from fullpipe.base.units import UnitError
from fullpipe.engines.base import EngineName

Value = TypeVar("Value")


def cc_names() -> list[str]:
    """The congestion controls that are built in: what completes the name of one."""
    from fullpipe.congestion.registry import cc_sets

    return list(cc_sets())


def kernel_names() -> list[str]:
    """The kernels that --engine vm knows by name."""
    from fullpipe.engines.vm import kernels

    return [*kernels.VERSIONS, *kernels.own()]


ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML); see `fullpipe schema`.")
]
CcName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A congestion control: a name of `fullpipe cc list`, or a file such as ./mine.h.",
        autocompletion=cc_names,
    ),
]
StoreFolder = Annotated[Path, typer.Argument(metavar="STORE", help="A store that a sweep filled.")]
Engine = Annotated[EngineName, typer.Option(help="What runs it.")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the file, such as path.rate=10mbit; repeatable.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, max=4096, help="Runs at the same time; by default one per core."),
]
Light = Annotated[bool, typer.Option("--light", help="Write a small report with static plots.")]
Figures = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write figures (PNG, SVG) into this folder.")
]
Recordings = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder for the recordings and the report.")
]
KernelImage = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Kernel for --engine vm: 6.1, 6.12 (the default), 7.3, one that was built here, or an "
        "image.",
        autocompletion=kernel_names,
    ),
]
KernelModules = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Modules of a kernel image (lib/modules/RELEASE)."),
]


def parsed(option: str, parse: Callable[[object], Value], text: str) -> Value:
    """What an option's text says. Raises UserError, which names the option."""
    try:
        return parse(text)
    except UnitError as error:
        raise UserError(f"{option}: {error}") from None
