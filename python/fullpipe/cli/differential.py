"""`fullpipe differential`: a kernel's TCP or queues and the simulator's, event by event."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli.options import Json
from fullpipe.cli.output import console, message
from fullpipe.cli.progress import progress

if TYPE_CHECKING:
    from fullpipe.differential.record import Recorded
    from fullpipe.differential.trial import Difference

_ALL = "all"


def differential(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Answers that --out wrote; no machine is needed."),
    ] = None,
    kernel: Annotated[
        str, typer.Option(metavar="VERSION", help="Kernel of the virtual machine: 6.1, 6.12, 7.3.")
    ] = "6.12",
    scripts: Annotated[int, typer.Option(min=1, help="Random scripts.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the scripts.")] = 1,
    queue: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Queue discipline in place of TCP: fq_codel, ..., all."),
    ] = None,
    reduce: Annotated[
        int, typer.Option(min=0, help="Of so many kinds, reduce the first script.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the scripts and the answers.")
    ] = None,
    least: Annotated[
        float,
        typer.Option(
            min=0, max=100, metavar="PERCENT", help="Exit code 1 if fewer of the scripts agree."
        ),
    ] = 0,
    json_: Json = False,
) -> None:
    """Compares TCP or queues with a kernel's, event by event.

    Random peers (losses, SACK, DSACK, marks, late and lost ACKs) and applications are played to a
    socket in the virtual machine and to the simulator's sender. After every event the fields of
    TCP_INFO and the packets sent are compared. With --queue, random packets arrive at a queue with
    random options, and what leaves is compared: which packet, when, with which mark. The same seed
    gives the same scripts."""
    from fullpipe.differential import machine, record, subjects, trial

    if kernel not in machine.MODELS:
        raise UserError(f"--kernel {kernel}: must be one of {', '.join(machine.MODELS)}")
    if queue not in (None, _ALL, *subjects.QUEUES):
        names = ", ".join((*subjects.QUEUES, _ALL))
        raise UserError(f"--queue {queue}: must be one of {names}")
    recorded = record.read(file) if file is not None else _recorded(kernel, seed, scripts, queue)
    if out is not None:
        record.write(out, recorded)
    model = machine.MODELS[recorded.origin["kernel"]]
    subject = recorded.subject
    differing = trial.differences(recorded.scripts, recorded.answers, model, subject)
    kinds: dict[str, list[Difference]] = {}
    for each in differing:
        kinds.setdefault(each.kind, []).append(each)
    for kind in sorted(kinds, key=lambda kind: -len(kinds[kind]))[:reduce]:
        with progress(f"reduce {kind}", 0.0):
            shortest = trial.reduced(
                kinds[kind][0],
                lambda few: machine.answers(few, recorded.origin["kernel"], subject=subject)[0],
                model,
                subject,
            )
        kinds[kind][0] = shortest
    if json_:
        print(json.dumps(_document(recorded, differing, kinds)))
    else:
        _print(recorded, differing, kinds, reduce)
    count = len(recorded.scripts)
    if 100 * (count - len(differing)) < least * count:
        raise typer.Exit(1)


def _recorded(kernel: str, seed: int, count: int, queue: str | None) -> Recorded:
    from fullpipe.differential import machine, record, subjects

    model = machine.MODELS[kernel]
    origin = {"kernel": kernel, "seed": seed, "drawn": count}
    if queue is None:
        subject, drawn = subjects.TCP, subjects.draw(seed, count, model)
    else:
        kinds = machine.queues(kernel) if queue == _ALL else (queue,)
        subject, drawn = subjects.QUEUE, subjects.draw_queues(seed, count, model, kinds)
        origin["subject"] = subject.name
    with progress(f"{len(drawn)} scripts on Linux {kernel}", 0.0) as update:
        answered, release = machine.answers(
            drawn, kernel, lambda done: update(done / max(len(drawn), 1)), subject
        )
    return record.Recorded({**origin, "release": release}, drawn, answered)


def _document(
    recorded: Recorded, differing: Sequence[Difference], kinds: dict[str, list[Difference]]
) -> dict[str, Any]:
    return {
        **recorded.origin,
        "scripts": len(recorded.scripts),
        "agree": len(recorded.scripts) - len(differing),
        "kinds": {kind: len(alike) for kind, alike in kinds.items()},
        "differences": [
            {"script": json.loads(each.script), "event": each.event, "values": each.values}
            for alike in kinds.values()
            for each in alike
        ],
    }


def _print(
    recorded: Recorded,
    differing: Sequence[Difference],
    kinds: dict[str, list[Difference]],
    reduced: int,
) -> None:
    count = len(recorded.scripts)
    release = recorded.origin.get("release", recorded.origin["kernel"])
    console.print(
        f"{count - len(differing)} of {count} scripts agree with Linux {release} in everything",
        style="bold",
    )
    by_count = Counter({kind: len(alike) for kind, alike in kinds.items()}).most_common()
    for rank, (kind, number) in enumerate(by_count):
        console.print(f"\n{number} differ first in: {kind}", markup=False)
        console.print(f"  {kinds[kind][0].sentence()}", markup=False)
        if rank < reduced:
            message(kinds[kind][0].script)
