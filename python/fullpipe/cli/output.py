"""What commands share on the screen: errors, tables, progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

#: Tables fit this many columns, also where the output is no terminal.
WIDTH = 100

console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
#: Progress and messages go to stderr, so that stdout can be piped.
messages = Console(stderr=True, highlight=False)


def fail(message: str, status: int) -> NoReturn:
    """Prints one message and exits."""
    print(f"fullpipe: {message}", file=sys.stderr)
    sys.exit(status)


@contextmanager
def progress(label: str, simulated_s: float) -> Iterator[Callable[[float], None]]:
    """Shows how much is done, how fast (simulated over real time) and how long it will take.

    Gives a function that takes the share done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[speed]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    begin = time.monotonic()
    with Progress(*columns, console=messages, transient=True) as bar:
        task = bar.add_task(label, total=1.0, speed="")

        def update(share: float) -> None:
            spent = max(time.monotonic() - begin, 1e-3)
            speed = f"{share * simulated_s / spent:.3g} x real time"
            bar.update(task, completed=min(share, 1.0), speed=speed)

        yield update


def run_table(summaries: list[dict[str, Any]]) -> Table:
    """One row a flow, and one for the path, of each run."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("flow", overflow="fold", max_width=22)
    for title in ("Mbit/s", "share", "retrans", "RTT p50", "p95 ms", "cwnd", "done s"):
        table.add_column(title, justify="right")
    for summary in summaries:
        for flow in summary["flows"]:
            table.add_row(
                flow["flow"],
                number(flow["goodput_bps"], 1e6, 2),
                number(flow["share"], 1, 3),
                percent(flow["retransmit_ratio"]),
                number(flow["rtt_us"]["p50"], 1e3, 1),
                number(flow["rtt_us"]["p95"], 1e3, 1),
                number(flow["cwnd_packets"]["mean"], 1, 1),
                number(flow["completion_us"], 1e6, 2),
            )
    return table


def path_line(summary: dict[str, Any]) -> str:
    """The path's metrics in one line."""
    path, delay = summary["path"], summary["path"]["queue_delay_rttmin"]
    line = (
        f"seed {summary['seed']}: utilisation {percent(path['utilisation'])}, queueing delay "
        f"median {number(delay['p50'], 1, 2)} max {number(delay['max'], 1, 2)} RTTmin, "
        f"loss {percent(path['loss_ratio'])}, Jain {number(summary['jain'], 1, 3)}"
    )
    return line + ("" if summary["healthy"] else "  UNHEALTHY")


def number(value: float | None, unit: float, digits: int) -> str:
    """A value in a unit, or a dash."""
    return "-" if value is None else f"{value / unit:.{digits}f}"


def percent(value: float | None) -> str:
    """A ratio as a percentage, or a dash."""
    return "-" if value is None else f"{100 * value:.2f} %"
