"""`fullpipe doctor`: what this machine can run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fullpipe.cli.output import console, message, text_table
from fullpipe.engines.base import EngineName


def doctor(
    install_: Annotated[
        bool,
        typer.Option("--install", help="Build and install what is missing; download the kernels."),
    ] = False,
    build: Annotated[
        Literal["uml"] | None,
        typer.Option(
            help="Build uml, the kernel of --machine uml, which takes some 8 CPU minutes."
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Kernel to build: 6.1, 6.12 (default), 7.3; to install also an exact version.",
        ),
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Take Debian's packages from a folder."),
    ] = None,
    linux_source: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Get the source of a kernel for `cc import`."),
    ] = None,
    headers: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Print the folder of a kernel's headers, for `make -C`."),
    ] = None,
    for_: Annotated[EngineName | None, typer.Option("--for", help="Check one engine only.")] = None,
) -> None:
    """Checks what this machine can run, and how to get the rest.

    Exit status 1: the engine of --for lacks what every scenario needs."""
    from fullpipe.base.commit import build_version
    from fullpipe.base.errors import UserError
    from fullpipe.doctor import build_uml, checks, install

    if kernel is not None and build is None and not install_:
        raise UserError("--kernel: only with --install or --build uml")
    if from_ is not None and not install_:
        raise UserError("--from: only with --install")
    if linux_source is not None:
        from fullpipe.authoring.kernel_sources import fetch

        message(f"{fetch(linux_source, message)}: the congestion controls of Linux {linux_source}")
        return
    if headers is not None:
        from fullpipe.engines.vm.headers import tree
        from fullpipe.engines.vm.kernels import find

        print(tree(find(headers, None)))
        return
    if install_:
        install(message, None if build else kernel, from_)
    if build is not None:
        build_uml(kernel, message)
    results = checks(for_)
    console.print(f"fullpipe {build_version()}")
    table = text_table("", "what", "found")
    for check in results:
        table.add_row("ok" if check.ok else "no", check.name, check.detail)
    console.print(table)
    missing = [check for check in results if not check.ok]
    if missing:
        console.print()
        losses = text_table("missing", "lost without it", "remedy")
        for check in missing:
            losses.add_row(check.name, check.lost, check.remedy)
        console.print(losses)
    if any(for_ in check.needed for check in missing):
        raise typer.Exit(1)
