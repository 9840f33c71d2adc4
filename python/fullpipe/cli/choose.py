"""`fullpipe choose`: queue disciplines and congestion controls for a path, ranked."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.cli.bars import progress
from fullpipe.cli.output import console
from fullpipe.cli.saying import say
from fullpipe.cli.sheet import number

if TYPE_CHECKING:
    from fullpipe.choose import Option


def choose(
    rate: Annotated[str, typer.Option(help="rate of the line")],
    rtt: Annotated[str, typer.Option(help="base RTT to the servers that matter")],
    web: Annotated[str, typer.Option(help="share of the rate that pages of 100 KB take")] = "0%",
    goal: Annotated[
        str, typer.Option("--for", help="what matters: balance, throughput, latency, fair")
    ] = "balance",
    out: Annotated[Path | None, typer.Option(help="folder for recordings and plot")] = None,
    json_: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Runs every queue discipline with every congestion control on a path, in the simulator, and
    ranks them.

    Two flows that always send, pages and a ping share the line. One run of each pair: it is advice,
    and `fullpipe compare` with repetitions is evidence."""
    from fullpipe import choose as choosing

    share = _share(web)
    base = out or Path("recordings") / f"choose-{time.strftime('%Y%m%d-%H%M%S')}"
    if base.exists():
        raise UserError(f"{base}: exists already; name another folder with --out")
    question = choosing.Question(rate, rtt, share, goal)
    with progress("choose", 0.0) as update:
        options, length, _ = choosing.choose(question, base, update, max(2, os.cpu_count() or 2))
    from fullpipe.report.tradeoffs import write_tradeoffs  # draws: seconds to load

    title = f"{rate}, {rtt}" + (f", {web} pages" if share else "")
    plots = write_tradeoffs(options, base, title)
    if json_:
        print(json.dumps({
            "rate": rate, "rtt": rtt, "web": share, "for": goal,
            "exponents": choosing.GOALS[goal], "duration_s": length.duration_s,
            "cut": length.cut, "options": [asdict(option) for option in options],
        }))  # fmt: skip
    else:
        _print(options, choosing.GOALS[goal], goal)
    if length.cut:
        say(f"cut: {length.cut}", "yellow")
    say(f"plot: {plots[0]}")
    say(f"recordings: {base}; for a page: fullpipe report {base} --light")


def _share(text: str) -> float:
    try:
        share = units.parse_ratio(text)
    except units.UnitError as error:
        raise UserError(f"--web {error}") from None
    if share > 0.8:
        raise UserError(f"--web {text!r}: at most 80%; the rest is for flows that always send")
    return share


def _print(options: list[Option], exponents: tuple[float, float, float], goal: str) -> None:
    pages = any(option.page_p95_s is not None for option in options)
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("", justify="right")
    table.add_column("queue", no_wrap=True)
    table.add_column("control", no_wrap=True)
    for title in ("Mbit/s", "ping ms", *(["page s"] if pages else []), "Jain", "score"):
        table.add_column(title, justify="right")
    table.add_column("against the best in each", overflow="fold")
    for rank, option in enumerate(options):
        cells = [
            str(rank + 1), option.queue, option.cc, number(option.goodput_bps, 1e6, 1),
            number(option.ping_p95_ms, 1, 1),
        ]  # fmt: skip
        if pages:
            cells.append(number(option.page_p95_s, 1, 2))
        table.add_row(*cells, number(option.jain, 1, 3), number(option.score, 1, 2), option.why)
    console.print(table)
    a, b, c = exponents
    console.print(
        f"score for {goal}: utilisation^{a:g} x (base RTT / ping)^{b:g} x Jain^{c:g}; ping, pages: "
        "95th\npercentile; one run of each pair: scores a few percent apart are equal"
    )
