"""`fullpipe traffic`: traces of flows, from a capture or made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli.saying import say

if TYPE_CHECKING:  # help waits for none of these
    from fullpipe.scenario.traffic.traces import Integers

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Traces of flows.")

_Out = Annotated[Path, typer.Option(help="file to write, .csv or .parquet")]


@app.command("from-pcap")
def from_pcap(
    file: Annotated[Path, typer.Argument(help="capture, pcap or pcapng")],
    out: _Out,
    silence: Annotated[str, typer.Option(help="a pause this long begins a chunk")] = "100ms",
) -> int:
    """Makes a trace from a capture: unidirectional flows, their chunks and pauses.

    It is read packet by packet: memory grows with flows and chunks, not with the file."""
    from fullpipe.base.units import UnitError, parse_time
    from fullpipe.scenario.traffic import captures

    try:
        silence_ns = parse_time(silence)
    except UnitError as error:
        raise UserError(f"--silence: {error}") from None
    _write(captures.read(_checked(out, file), max(silence_ns, 1)), out)
    return 0


@app.command()
def generate(
    out: _Out,
    length: Annotated[str, typer.Option(help="how long flows come")] = "15min",
    rate: Annotated[str, typer.Option(help="payload over that time")] = "1.25gbit",
    seed: Annotated[int, typer.Option(min=0, help="of its random numbers")] = 1,
) -> int:
    """Makes a trace that meets the published facts of bless2025's capture; docs/traffic.md says
    what of it is assumed."""
    from fullpipe import _native
    from fullpipe.base.units import UnitError, parse_rate, parse_time
    from fullpipe.scenario.traffic.traces import columns_of

    try:
        made = _native.traffic.backbone(seed, parse_time(length), parse_rate(rate))
    except (UnitError, ValueError) as error:
        raise UserError(f"--length, --rate: {error}") from None
    _checked(out, out)
    _write(columns_of(made), out)
    return 0


def _checked(out: Path, source: Path) -> Path:
    if out.suffix not in (".csv", ".parquet"):
        raise UserError(f"--out {out}: must end in .csv or .parquet")
    return source


def _write(columns: dict[str, Integers], out: Path) -> None:
    from fullpipe.scenario.traffic.traces import write

    write(columns, out)
    flows, volume = int(columns["flow"].max()) + 1, int(columns["bytes"].sum())
    say(f"{out}: {flows} flows, {columns['flow'].size} chunks, {volume / 1e6:.1f} MB")
