"""`fullpipe packetdrill`: scripts in packetdrill's language, without root and on virtual time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli.options import Json
from fullpipe.cli.output import console

if TYPE_CHECKING:
    from fullpipe.packetdrill.judge import Verdict


class Engine(StrEnum):
    """Where scripts run."""

    SIM = "sim"
    VM = "vm"


def packetdrill(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Scripts.")],
    engine: Annotated[Engine, typer.Option(help="Simulator or virtual machine.")] = Engine.SIM,
    kernel: Annotated[
        str,
        typer.Option(metavar="VERSION", help="Kernel, or whose rules to simulate: 6.1, 6.12, 7.3."),
    ] = "6.12",
    json_: Json = False,
) -> None:
    """Runs scripts in packetdrill's language.

    A script opens sockets, sends packets to them and says what the kernel sends, when, and what
    tcp_info is. Time is virtual: a script gives the same result each time. The exit code is 1 if a
    script fails, else 2 if a file is no script or has parts that are not supported."""
    from fullpipe.differential import machine
    from fullpipe.packetdrill import judge, play

    if kernel not in machine.MODELS:
        raise UserError(f"--kernel {kernel}: must be one of {', '.join(machine.MODELS)}")
    plays = {
        Engine.SIM: play.simulator(machine.MODELS[kernel]),
        Engine.VM: play.machine(kernel),
    }
    verdicts = play.play(files, plays[engine])
    if json_:
        print(json.dumps([asdict(verdict) for verdict in verdicts]))
    else:
        _print(verdicts)
    outcomes = {verdict.outcome for verdict in verdicts}
    if judge.FAILED in outcomes:
        raise typer.Exit(1)
    if outcomes - {judge.PASSED}:
        raise typer.Exit(2)


def _print(verdicts: Sequence[Verdict]) -> None:
    for verdict in verdicts:
        console.print(verdict.words(), markup=False, soft_wrap=True)
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    console.print(f"\n{len(verdicts)} scripts: {counts}", style="bold")
    lacking = [each.sentence for each in verdicts if each.outcome == "not supported"]
    for kind, count in Counter(lacking).most_common():
        console.print(f"  {count} not supported: {kind}", markup=False)
