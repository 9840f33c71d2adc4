"""`fullpipe trace`: files by which links change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.cli.ending import fail
from fullpipe.scenario import link_trace_generators
from fullpipe.scenario.link_trace_generators import Shape

app = typer.Typer(
    help="Files by which links change: `rate_trace` and `delay_trace` of a link.",
    no_args_is_help=True,
)


@app.command()
def generate(
    kind: Annotated[str, typer.Argument(help=", ".join(link_trace_generators.KINDS))],
    out: Annotated[Path, typer.Argument(help="file to write; leo writes its delays beside it")],
    rate: Annotated[str, typer.Option(help="the rate about which it moves")] = "20mbit",
    duration: Annotated[str, typer.Option(help="until it repeats")] = "60s",
    seed: Annotated[int, typer.Option(min=0, help="of cellular, leo and wifi-fade")] = 1,
    period: Annotated[str, typer.Option(help="of steps and sawtooth: one round")] = "10s",
    low: Annotated[float, typer.Option(help="of steps and sawtooth: lowest over highest")] = 0.1,
    force: Annotated[bool, typer.Option("--force", help="replace what is there")] = False,
) -> None:
    """Writes a trace; the same numbers give the same file."""
    if kind not in link_trace_generators.KINDS:
        raise UserError(f"{kind!r}: is no kind; known are {', '.join(link_trace_generators.KINDS)}")
    shape = Shape(
        rate_bps=_read("--rate", rate, units.parse_rate),
        duration_s=_read("--duration", duration, units.parse_time) / 1e9,
        seed=seed,
        period_s=max(_read("--period", period, units.parse_time) / 1e9, 0.02),
        low=low,
    )
    made = link_trace_generators.generate(kind, shape)
    texts = {out: made.rate_text()}
    if made.delays_ms:
        texts[out.with_suffix(".delay")] = made.delay_text()
    for path, text in texts.items():
        if path.exists() and not force:
            raise UserError(f"{path}: is there already; --force replaces it")
        try:
            path.write_text(text, encoding="ascii")
        except OSError as error:
            fail(f"{path}: cannot be written: {error.strerror}", 1)
        print(f"{path}: {text.count(chr(10))} lines")


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="a file of delivery opportunities (Mahimahi)")],
) -> None:
    """Checks a rate trace, and says how long it is and what it carries in each second."""
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
    print(f"mean {units.format_rate(mean)} on the wire; of the rates in seconds that differ:")
    print(f"lowest {units.format_rate(rates[0])}, highest {units.format_rate(rates[-1])}")


def _read(option: str, text: str, parse: object) -> int:
    try:
        value: int = parse(text)  # type: ignore[operator]
    except units.UnitError as error:
        raise UserError(f"{option} {text!r}: {error}") from None
    return value
