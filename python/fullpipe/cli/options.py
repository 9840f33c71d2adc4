"""Options and arguments that several commands share, and what completes their values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from fullpipe.base.errors import UserError
from fullpipe.base.units import UnitError
from fullpipe.engines.base import CcForm, EngineName, MachineName, refuse_foreign

if TYPE_CHECKING:
    from fullpipe.plots.look import Look

Value = TypeVar("Value")


def cc_names() -> list[str]:
    """The congestion controls that are built in: what completes the name of one."""
    from fullpipe.congestion.registry import cc_sets

    return list(cc_sets())


def kernel_names() -> list[str]:
    """The kernels that --engine vm knows by name."""
    from fullpipe.engines.vm import kernels

    return [*kernels.VERSIONS, *kernels.built_here()]


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
ChosenSweep = Annotated[
    str | None,
    typer.Option(
        "--sweep",
        metavar="NAME|ID|all",
        help="Which sweep of the store; by default the one that was asked for last.",
    ),
]
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
    typer.Option(min=1, max=4096, help="Runs at the same time; default: all cores."),
]
RunsFolder = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where runs are kept; by default the user's cache."),
]
Light = Annotated[bool, typer.Option("--light", help="Write a small report with static plots.")]
Figures = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write figures (PDF, SVG, PNG) into this folder.")
]
Recordings = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Folder for the recordings and the report."),
]
KernelImage = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE|TREE",
        help="Kernel for --engine vm: 6.1, 6.12 (the default), 7.3, one that was built here, an "
        "image, or a kernel's tree after `make`.",
        autocompletion=kernel_names,
    ),
]
Machine = Annotated[
    MachineName,
    typer.Option(
        help="Machine of --engine vm: qemu, uml (User Mode Linux: fast, its processor takes no "
        "time), or auto (uml where it is built and can run the scenario)."
    ),
]
Form = Annotated[
    CcForm | None,
    typer.Option(
        help="How the kernel of --engine vm gets fullpipe's algorithms: as ebpf, or as a module "
        "that is built for it (the default of --machine uml and of files ./tcp_NAME.c)."
    ),
]
KernelModules = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Modules of a kernel image (lib/modules/RELEASE)."),
]
OwnModule = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A module for the kernel of --engine vm, or eBPF programs (struct_ops); flows name "
        "what it registers as kernel:NAME.",
    ),
]


def engine_options(engine: str, machine: str = "qemu", **values: object) -> dict[str, str]:
    """Options of the engine as it takes them, without those that are None. Raises UserError for
    those of another engine."""
    every = {"machine": machine if machine != "qemu" else None, **values}
    options = {name: str(value) for name, value in every.items() if value is not None}
    refuse_foreign(engine, options)
    return options


@dataclass(frozen=True)
class LookOptions:
    """How figures are to look."""

    width: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="Width of figures, such as 3.3in or 84mm.")
    ] = None
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=TEXT",
            help="Call an axis, a plot or a line of figures otherwise; repeatable.",
        ),
    ] = None
    style: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="How all figures look: text, title, legend, scales (TOML)."
        ),
    ] = None

    def look_of(self, figures: Path | None) -> Look:
        """The look of the figures in a folder. Raises UserError, which names the option, also where
        there is no folder: a page draws its own way."""
        for field in fields(self):
            if figures is None and getattr(self, field.name) != field.default:
                option = field.name.replace("_", "-")
                raise UserError(f"--{option}: is for figures; add --figures DIR")
        return self.look()

    def look(self) -> Look:
        """The look. Raises UserError, which names the option, or file and key."""
        from fullpipe.plots.look import Look
        from fullpipe.plots.style_file import inches, read_style

        look = Look() if self.style is None else read_style(self.style)
        if self.width is not None:
            look = replace(look, width_in=parsed("--width", inches, self.width))
        labels = {}
        for label in self.label or []:
            name, is_there, text = label.partition("=")
            if not is_there or not name:
                raise UserError(f'--label {label}: write NAME=TEXT, such as rtt="Base RTT (ms)"')
            labels[name] = text
        return replace(look, labels=labels)


DEFAULT_LOOK = LookOptions()


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field of its parameters that are dataclasses: options
    that several commands share are declared once."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    flat = []
    for parameter in inspect.signature(command).parameters.values():
        kind = groups.get(parameter.name)
        if kind is None:
            flat.append(parameter.replace(annotation=hints[parameter.name]))
            continue
        kinds = get_type_hints(kind, include_extras=True)
        flat += [
            parameter.replace(name=field.name, default=field.default, annotation=kinds[field.name])
            for field in fields(kind)
        ]

    @functools.wraps(command)
    def called(**arguments: Any) -> None:
        for name, kind in groups.items():
            arguments[name] = kind(
                **{field.name: arguments.pop(field.name) for field in fields(kind)}
            )
        command(**arguments)

    called.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return called


def parsed(option: str, parse: Callable[[object], Value], text: str) -> Value:
    """What an option's text says. Raises UserError, which names the option."""
    try:
        return parse(text)
    except UnitError as error:
        raise UserError(f"{option}: {error}") from None
