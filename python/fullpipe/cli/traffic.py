"""`fullpipe traffic`: traces of flows, from a capture or generated."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.base.errors import UserError
from fullpipe.base.units import format_rate, format_size, parse_rate, parse_time
from fullpipe.cli.options import parsed
from fullpipe.cli.output import message

if TYPE_CHECKING:
    from fullpipe.scenario.traffic.traces import Integers

app = typer.Typer(help="Makes traces of flows.", no_args_is_help=True)
#: Flows that are named on the terminal.
_MOST_NAMED = 8

_Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FILE", help="File to write, .csv or .parquet.")
]


@app.command("from-pcap")
def from_pcap(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Capture, pcap or pcapng.")],
    out: _Out,
    silence: Annotated[str, typer.Option(help="Pause that begins a new chunk.")] = "100ms",
) -> None:
    """Makes a trace from a packet capture.

    The trace has unidirectional flows with their chunks and pauses. A chunk also ends where a TCP
    sender had nothing in flight and sent nothing: it waited for its application. Memory grows with
    flows and chunks, not with the capture."""
    from fullpipe.scenario.traffic import captures

    silence_ns = parsed("--silence", parse_time, silence)
    _check_ending(out)
    trace = captures.read(file, max(silence_ns, 1))
    _write(trace.columns, out)
    for flow, application in itertools.islice(trace.steady.items(), _MOST_NAMED):
        message(
            f"flow {flow}: an application that writes at {format_rate(application.rate_bps)}; in a "
            f'scenario: pattern = {{ write = "{application.write_bytes}B", every = '
            f'"{application.every_us}us" }}'
        )
    if trace.untold:
        named = ", ".join(map(str, trace.untold[:_MOST_NAMED]))
        more = len(trace.untold) - _MOST_NAMED
        message(
            f"not known of flows {named}{f' and {more} more' if more > 0 else ''}: whether their "
            "applications or the path set their rates (no handshake in the capture, or always data "
            "in flight); they are replayed as fast as they can be"
        )


@app.command()
def generate(
    out: _Out,
    length: Annotated[str, typer.Option(help="Time in which flows arrive.")] = "15min",
    rate: Annotated[str, typer.Option(help="Mean rate of payload over that time.")] = "1.25gbit",
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
) -> None:
    """Generates a trace like that of a backbone link.

    It meets the published facts of bless2025's capture; docs/reference/applications.md lists what
    is assumed."""
    from fullpipe import _native
    from fullpipe.scenario.traffic.traces import columns_of

    length_ns = parsed("--length", parse_time, length)
    rate_bps = parsed("--rate", parse_rate, rate)
    try:
        made = _native.traffic.backbone(seed, length_ns, rate_bps)
    except ValueError as error:
        raise UserError(f"--length, --rate: {error}") from None
    _check_ending(out)
    _write(columns_of(made), out)


def _check_ending(out: Path) -> None:
    if out.suffix not in (".csv", ".parquet"):
        raise UserError(f"--out {out}: must end in .csv or .parquet")


def _write(columns: dict[str, Integers], out: Path) -> None:
    from fullpipe.scenario.traffic.traces import write

    write(columns, out)
    flows, volume = int(columns["flow"].max()) + 1, int(columns["bytes"].sum())
    message(f"{out}: {flows} flows, {columns['flow'].size} chunks, {format_size(volume)}")
