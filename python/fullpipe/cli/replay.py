"""`fullpipe replay`: a trace of the kernel's calls through the native build."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fullpipe.cli.options import Json
from fullpipe.cli.output import console, fail, message, text_table

if TYPE_CHECKING:
    from fullpipe.kernel import Replay


def replay(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="What `fullpipe kernel trace` wrote.")
    ],
    json_: Json = False,
) -> None:
    """Compares a kernel's calls with the native build.

    Every recorded call runs through the native build, and every output must equal the kernel's
    bit for bit. Exit status 1: outputs differ, or no call could be replayed."""
    from fullpipe.kernel import replay as replay_trace

    result = replay_trace(trace)
    if json_:
        print(json.dumps(dataclasses.asdict(result)))
    else:
        releases = sorted({item.release for item in result.algorithms})
        console.print(f"calls recorded on Linux {', '.join(releases)}", highlight=False)
        console.print(_table(result))
        if result.is_cut_off:
            message(f"{trace}: its last record is cut off")
    for item in result.algorithms:
        if item.difference is not None:
            at = item.difference
            message(
                f"{item.kernel_name}: connection {at.connection}, call {at.sequence} ({at.call}): "
                f"{at.field} is {at.kernel} in the kernel, {at.native} natively"
            )
    if any(item.difference is not None for item in result.algorithms):
        fail(f"{trace}: the native build differs from the kernel", 1)
    if not any(item.calls for item in result.algorithms):
        fail(f"{trace}: it holds no call that can be replayed", 1)


def _table(result: Replay) -> Table:
    table = text_table(
        "name", "algorithm", "outputs", right=("flows", "calls", "ACKs", "lost", "skipped")
    )
    for item in result.algorithms:
        outputs = "identical" if item.difference is None else "differ"
        numbers = (item.connections, item.calls, item.acks, item.lost, item.skipped)
        table.add_row(item.kernel_name, item.algorithm, outputs, *map(str, numbers))
    return table
