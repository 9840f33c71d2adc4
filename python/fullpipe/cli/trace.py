"""`fullpipe trace`: files by which links change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.cli.options import parsed
from fullpipe.scenario.link_trace_generators import Kind, Shape
from fullpipe.scenario.link_trace_generators import generate as make_trace

app = typer.Typer(
    help="Generates and checks traces: files by which links change.", no_args_is_help=True
)


@app.command()
def generate(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="How the rate varies.")],
    out: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to write; leo writes FILE.delay as well.")
    ],
    rate: Annotated[str, typer.Option(help="Rate about which the trace varies.")] = "20mbit",
    duration: Annotated[str, typer.Option(help="Time after which it repeats.")] = "60s",
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of cellular, leo and wifi-fade.")
    ] = 1,
    period: Annotated[str, typer.Option(help="Period of steps and sawtooth.")] = "10s",
    low: Annotated[
        float, typer.Option(help="Lowest over highest rate of steps and sawtooth.")
    ] = 0.1,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Writes a trace; the same options give the same file."""
    from fullpipe.base.writing import write_text

    shape = Shape(
        rate_bps=parsed("--rate", units.parse_rate, rate),
        duration_s=parsed("--duration", units.parse_time, duration) / 1e9,
        seed=seed,
        period_s=max(parsed("--period", units.parse_time, period) / 1e9, 0.02),
        low=low,
    )
    made = make_trace(kind, shape)
    texts = {out: made.rate_text()}
    if made.delays_ms:
        texts[out.with_suffix(".delay")] = made.delay_text()
    for path, text in texts.items():
        if path.exists() and not force:
            raise UserError(f"{path}: exists already; --force replaces it")
        write_text(path, text)
        print(f"{path}: {text.count(chr(10))} lines")


@app.command()
def show(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File of delivery opportunities (Mahimahi).")
    ],
) -> None:
    """Checks a rate trace and prints its length and rates."""
    from fullpipe import _native
    from fullpipe.scenario.link_traces import rate_trace

    try:
        found = rate_trace(str(file))
    except ValueError as error:
        raise UserError(str(error)) from None
    count, period_ms, mean = _native.traces.rates(found.path)
    steps = _native.traces.rate_steps(found.path, 1000, max(period_ms // 1000, 1) * 10**9)
    rates = sorted(rate for _, rate in steps)
    print(f"{count} opportunities in {period_ms / 1000:g} s, then it repeats")
    print(f"mean {units.format_rate(mean)} on the wire; rates over one second each:")
    print(f"lowest {units.format_rate(rates[0])}, highest {units.format_rate(rates[-1])}")
