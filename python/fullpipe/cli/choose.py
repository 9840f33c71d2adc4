"""`fullpipe choose`: queue disciplines and congestion controls for a path, ranked."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.cli.folders import new_folder
from fullpipe.cli.options import Json, Recordings, parsed
from fullpipe.cli.output import console, message, number, text_table
from fullpipe.cli.progress import progress

if TYPE_CHECKING:
    from fullpipe.choose.ranking import Option


def choose(
    rate: Annotated[str, typer.Option(help="Rate of the line.")],
    rtt: Annotated[str, typer.Option(help="Base RTT to the servers that matter.")],
    web: Annotated[
        str, typer.Option(metavar="SHARE", help="Share of the rate that pages of 100 KiB take.")
    ] = "0%",
    goal: Annotated[
        Literal["balance", "throughput", "latency", "fair"],
        typer.Option("--for", help="What matters."),
    ] = "balance",
    out: Recordings = None,
    json_: Json = False,
) -> None:
    """Ranks queues and congestion controls for a path.

    Runs every pair in the simulator: two bulk flows, pages and a ping share the line. Each pair
    has one run, which is advice; `fullpipe compare` with repetitions is evidence."""
    from fullpipe.choose import ranking

    share = parsed("--web", units.parse_ratio, web)
    if share > 0.8:
        raise UserError(f"--web {web!r}: at most 80%; the rest is for the bulk flows")
    base = out or new_folder("choose")
    if base.exists():
        raise UserError(f"{base}: exists already; name another folder with --out")
    question = ranking.Question(rate, rtt, share, goal)
    with progress("choose", 0.0) as update:
        options, length, _ = ranking.choose(question, base, update, max(2, os.cpu_count() or 2))
    from fullpipe.choose.figure import write_tradeoffs

    title = f"{rate}, {rtt}" + (f", {web} pages" if share else "")
    plots = write_tradeoffs(options, base, title)
    if json_:
        document = {
            "rate": rate,
            "rtt": rtt,
            "web": share,
            "for": goal,
            "exponents": ranking.GOALS[goal],
            "duration_s": length.duration_s,
            "cut": length.cut,
            "options": [asdict(option) for option in options],
        }
        print(json.dumps(document))
    else:
        _print(options, ranking.GOALS[goal], goal)
    if length.cut:
        message(f"cut: {length.cut}", "yellow")
    message(f"plot: {plots[0]}")
    message(f"recordings: {base}; for a page: fullpipe report {base} --light")


def _print(options: list[Option], exponents: tuple[float, float, float], goal: str) -> None:
    has_pages = any(option.page_p95_s is not None for option in options)
    pages = ["page s"] if has_pages else []
    table = text_table("", "queue", "control", right=("Mbit/s", "ping ms", *pages, "Jain", "score"))
    table.columns[1].no_wrap = table.columns[2].no_wrap = True
    table.add_column("against the best in each", overflow="fold")
    for rank, option in enumerate(options):
        times = [number(option.page_p95_s, 1, 2)] if has_pages else []
        table.add_row(
            str(rank + 1),
            option.queue,
            option.cc,
            number(option.goodput_bps, 1e6, 1),
            number(option.ping_p95_ms, 1, 1),
            *times,
            number(option.jain, 1, 3),
            number(option.score, 1, 2),
            option.why,
        )
    console.print(table)
    a, b, c = exponents
    console.print(
        f"score for {goal}: utilisation^{a:g} x (base RTT / ping)^{b:g} x Jain^{c:g};\nping and "
        "pages: 95th percentile; one run of each pair: scores a few percent apart are equal"
    )
