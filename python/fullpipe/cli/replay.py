"""`fullpipe replay`: a trace of the kernel's calls through the native build."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape
from rich.table import Table

from fullpipe.cli.ending import fail
from fullpipe.cli.output import console
from fullpipe.cli.saying import say

if TYPE_CHECKING:
    import typer

    from fullpipe.kernel import Replay
else:
    from fullpipe.cli.later import typer


def replay(
    trace: Annotated[Path, typer.Argument(help="what `fullpipe kernel trace` wrote")],
    json_: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Replays a kernel's calls through the native build and holds every output against the
    kernel's, bit for bit. Exit status 1: they differ, or no call could be replayed."""
    from fullpipe.kernel import replay as replay_trace

    found = replay_trace(trace)
    if json_:
        print(json.dumps(dataclasses.asdict(found)))
    else:
        console.print(_table(found))
        if found.is_cut_off:
            say(f"{trace}: its last record is cut off")
    for item in found.algorithms:
        if item.difference is not None:
            at = item.difference
            say(
                f"{item.kernel_name}: connection {at.connection}, call {at.sequence} ({at.call}): "
                f"{at.field} is {at.kernel} in the kernel, {at.native} natively"
            )
    if any(item.difference is not None for item in found.algorithms):
        fail(f"{trace}: the native build differs from the kernel", 1)
    if not any(item.calls for item in found.algorithms):
        fail(f"{trace}: it holds no call that can be replayed", 1)


def _table(found: Replay) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("in the kernel", "algorithm", "release", "connections", "calls", "ACKs", "lost",
                  "skipped", "outputs"):  # fmt: skip
        table.add_column(title, overflow="fold")
    for item in found.algorithms:
        outputs = "identical" if item.difference is None else "differ"
        row = (item.kernel_name, item.algorithm, item.release, item.connections, item.calls,
               item.acks, item.lost, item.skipped, outputs)  # fmt: skip
        table.add_row(*(escape(str(cell)) for cell in row))
    return table
