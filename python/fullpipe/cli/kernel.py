"""`fullpipe kernel`: our congestion controls in this host's kernel, for any program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from fullpipe.base.errors import UserError
from fullpipe.base.units import UnitError, parse_time
from fullpipe.cli.completion import congestion_controls
from fullpipe.cli.output import console
from fullpipe.cli.saying import say
from fullpipe.cli.sheet import number

app = typer.Typer(
    help="Our congestion controls in this host's kernel, for any program (needs root).",
    no_args_is_help=True,
)

_Name = Annotated[
    str,
    typer.Argument(
        help="a name of `fullpipe cc list`, or a file", autocompletion=congestion_controls
    ),
]
_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="another value for a constant; repeatable"),
]
_As = Annotated[
    str | None,
    typer.Option("--as", metavar="KERNEL_NAME", help="what sockets write, instead of fp_..."),
]


@app.command()
def load(name: _Name, set_: _Set = None, as_: _As = None) -> None:
    """Loads a congestion control into this host's kernel, where it stays until `unload` or the
    next boot. Programs then choose it by its kernel name."""
    from fullpipe import kernel

    wanted = kernel.request(name, _overrides(set_), as_)
    kernel.load(wanted)
    chosen = wanted.kernel_name
    say(f"{chosen} is loaded: iperf3 -C {chosen}, setsockopt(TCP_CONGESTION), or for all")
    say(f"programs: sysctl net.ipv4.tcp_congestion_control={chosen}")


@app.command("list")
def list_(json_: Annotated[bool, typer.Option("--json", help="print as JSON")] = False) -> None:
    """Lists what is loaded: names, constants that differ from the set's, sockets."""
    from fullpipe import kernel

    found = kernel.list_loaded()
    if json_:
        items = [
            {
                "kernel_name": item.kernel_name, "algorithm": item.algorithm,
                "name": item.base.name, "changes": item.changes, "sockets": item.sockets,
                "opened": item.opened, "is_registered": item.is_registered,
                "constants": {
                    param.name: value / param.scale
                    for param, value in zip(item.base.params, item.params, strict=False)
                },
            }
            for item in found
        ]  # fmt: skip
        print(json.dumps(items))
        return
    if not found:
        say("nothing is loaded")
        return
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("in the kernel", "is", "with", "sockets", "ever"):
        table.add_column(title, overflow="fold")
    for item in found:
        mark = "" if item.is_registered else " (unloaded)"
        changes = ", ".join(f"{name}={value:g}" for name, value in item.changes.items())
        row = (item.kernel_name + mark, item.base.name, changes, item.sockets, item.opened)
        table.add_row(*(escape(str(cell)) for cell in row))
    console.print(table)


@app.command()
def unload(
    name: Annotated[str, typer.Argument(help="what `fullpipe kernel list` shows, or its set")],
) -> None:
    """Takes a congestion control away. Sockets that use it keep it until they close."""
    from fullpipe import kernel

    kernel_name, sockets = kernel.unload(name)
    left = f"; {sockets} sockets go on with it until they close" if sockets else ""
    say(f"{kernel_name} is unloaded{left}")


@app.command()
def trace(
    name: _Name,
    out: Annotated[Path, typer.Option("--out", "-o", help="file for the trace")],
    command: Annotated[list[str], typer.Argument(help="-- and the program to run meanwhile")],
    set_: _Set = None,
    as_: _As = None,
) -> None:
    """Loads a congestion control, runs a program, and writes every call that the kernel made of
    it to a file for `fullpipe replay`. The program chooses it by its kernel name."""
    from fullpipe import kernel

    kernel.trace(kernel.request(name, _overrides(set_), as_), out, command)
    say(f"the trace is in {out}: fullpipe replay {out}")


@app.command()
def watch(
    interval: Annotated[str, typer.Option(help="between looks")] = "1s",
    count: Annotated[int | None, typer.Option(min=1, help="looks; until Ctrl-C")] = None,
    record: Annotated[
        Path | None, typer.Option(help="folder for a recording, which `fullpipe report` draws")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="print a line of JSON a look")] = False,
) -> None:
    """Shows the sockets of this host that run our congestion controls: phase, bandwidth, windows
    and bounds as the algorithm has them, which `ss` cannot show. Ctrl-C ends it."""
    try:
        interval_ms = parse_time(interval) // 10**6
    except UnitError as error:
        raise UserError(f"--interval {error}") from None
    if not 10 <= interval_ms <= 3600_000:
        raise UserError(f"--interval {interval}: must be 10ms to 3600s")
    from fullpipe import kernel

    looks = kernel.watch(interval_ms, record, count)
    try:
        if json_:
            for rows in looks:
                print(json.dumps(rows), flush=True)
        else:
            _show(looks)
    except KeyboardInterrupt:
        pass  # the usual end
    finally:
        looks.close()
    if record is not None:
        say(f"recording: {record}; fullpipe report {record}")


def _show(looks: Iterator[list[dict[str, Any]]]) -> None:
    if console.is_terminal:
        from rich.live import Live

        with Live(console=console, auto_refresh=False, transient=False) as live:
            for rows in looks:
                live.update(_watched(rows), refresh=True)
        return
    for rows in looks:
        console.print(_watched(rows))


def _watched(rows: list[dict[str, Any]]) -> Table:
    """One row a socket; lo and hi are the inflight bounds (inflight_shortterm and _longterm)."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("socket", overflow="fold", max_width=26)
    table.add_column("control", overflow="fold", max_width=16)
    table.add_column("phase")
    titles = ("bw Mbit/s", "delivery", "min RTT", "RTT ms", "cwnd", "flight", "lo", "hi")
    for title in titles:
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(
            escape(row["flow"]), escape(row["cc"]), row["phase"] or "-",
            number(row["bw_bps"], 1e6, 1), number(row["delivery_rate_bps"], 1e6, 1),
            number(row["min_rtt_us"], 1e3, 1), number(row["srtt_us"], 1e3, 1),
            number(row["cwnd_packets"], 1, 0), number(row["inflight_packets"], 1, 0),
            number(row["inflight_shortterm_packets"], 1, 0),
            number(row["inflight_longterm_packets"], 1, 0),
        )  # fmt: skip
    if not rows:
        table.add_row("no socket uses them now")
    return table


def _overrides(texts: list[str] | None) -> dict[str, float]:
    overrides = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        try:
            if not (name and equals):
                raise ValueError
            overrides[name] = float(value)
        except ValueError:
            raise UserError(f"--set {text}: must be NAME=VALUE, such as loss_thresh=0.02") from None
    return overrides
