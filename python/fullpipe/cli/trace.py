"""`fullpipe trace`: files by which links change, and traces of an algorithm's calls."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.cli.options import DEFAULT_LOOK, LookOptions, parsed, with_groups
from fullpipe.cli.output import console, fail, message, text_table
from fullpipe.scenario.link_trace_generators import Kind, Shape
from fullpipe.scenario.link_trace_generators import generate as make_trace

if TYPE_CHECKING:
    from fullpipe.plots.look import Look
    from fullpipe.plots.model import Grid

#: How the files end that a chart can be written to.
_DRAWN = (".pdf", ".svg", ".png", ".html")

app = typer.Typer(
    help="Makes and checks traces of links; shows traces of calls.",
    no_args_is_help=True,
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
        trace = rate_trace(str(file))
    except ValueError as error:
        raise UserError(str(error)) from None
    count, period_ms, mean = _native.traces.rates(trace.path)
    steps = _native.traces.rate_steps(trace.path, 1000, max(period_ms // 1000, 1) * 10**9)
    rates = sorted(rate for _, rate in steps)
    print(f"{count} opportunities in {period_ms / 1000:g} s, then it repeats")
    print(f"mean {units.format_rate(mean)} on the wire; rates over one second each:")
    print(f"lowest {units.format_rate(rates[0])}, highest {units.format_rate(rates[-1])}")


@app.command("from-capture")
def from_capture(
    file: Annotated[
        Path, typer.Argument(metavar="CAPTURE", help="Capture at the receiver, pcap or pcapng.")
    ],
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Trace to write (Mahimahi).")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Makes a link's trace from what left it while it was full.

    Whether packets waited for the link is told by TCP's timestamps. Where none did, its rate is not
    known and taken from before and after; how often is printed."""
    from fullpipe.base.writing import write_text
    from fullpipe.scenario.link_trace_captures import link_trace

    if out.exists() and not force:
        raise UserError(f"{out}: exists already; --force replaces it")
    trace = link_trace(file)
    write_text(out, trace.made.rate_text())
    count = len(trace.made.times_ms)
    print(f"{out}: {count} opportunities in {trace.length_s:.3g} s")
    print(
        f"the link was full in {100 * trace.full:.1f} % of the time; in the other "
        f"{100 * (1 - trace.full):.1f} % its rate is not known"
    )


@app.command()
@with_groups
def sequence(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Capture, pcap or pcapng.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="FILE.pdf, .svg, .png or .html.")
    ] = Path("sequence.png"),
    connection: Annotated[
        int, typer.Option(min=1, help="Which TCP connection, in the order of the capture.")
    ] = 1,
    start: Annotated[str, typer.Option("--from", help="Draw from this time on.")] = "0s",
    end: Annotated[str | None, typer.Option("--to", help="Draw until this time.")] = None,
    looks: LookOptions = DEFAULT_LOOK,
) -> None:
    """Draws time and sequence of a connection, as tcptrace does.

    What was sent and sent again, acknowledged and SACKed, and the receiver's window. Best of a
    capture that was taken at the sender."""
    from fullpipe.plots.model import Grid
    from fullpipe.report.time_sequence import time_sequence

    if out.suffix not in _DRAWN:
        raise UserError(f"--out {out}: must end in {', '.join(_DRAWN[:-1])} or {_DRAWN[-1]}")
    start_s = parsed("--from", units.parse_time, start) / 1e9
    end_s = math.inf if end is None else parsed("--to", units.parse_time, end) / 1e9
    _write(Grid("", [time_sequence(file, connection, start_s, end_s)]), out, looks.look())


_CallTrace = Annotated[
    Path, typer.Argument(metavar="FILE", help="What `--cc-trace` or `kernel trace` wrote.")
]


@app.command()
def calls(
    file: _CallTrace,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT", help="OUT.parquet or .csv; with --plot OUT.svg, .pdf, .png or .html."
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Columns to draw over time, such as cwnd,ssthresh."),
    ] = None,
) -> None:
    """Shows every call of an algorithm as a table.

    A row a call: all facts (conn_, ack_, event_), the controls before it (before_) and after it,
    and the algorithm's own variables after it. Without options: the columns and their ranges."""
    from fullpipe.kernel.calls import ranges, write_calls

    if plot is not None:
        _draw(file, [name.strip() for name in plot.split(",") if name.strip()], to)
    elif to is not None:
        message(f"{to}: {write_calls(file, to)} calls")
    else:
        table = text_table("column", right=("calls", "least", "largest"))
        for name, count, *ends in ranges(file):
            table.add_row(name, str(count), *("" if end is None else f"{end}" for end in ends))
        console.print(table)


@app.command()
def diff(
    first: Annotated[
        str, typer.Argument(metavar="A", help="A trace of calls; with --on a congestion control.")
    ],
    second: Annotated[
        str, typer.Argument(metavar="B", help="Another; with --on also a commit of A's file.")
    ],
    on: Annotated[
        Path | None,
        typer.Option(
            metavar="SCENARIO", help="Run both in the simulator, all flows with A and then with B."
        ),
    ] = None,
    decisions: Annotated[
        bool,
        typer.Option("--decisions", help="Only calls and what they decide: for two engines."),
    ] = False,
) -> None:
    """Finds the first call in which two traces of calls differ.

    Names the connection, the call and what differs: a fact, a decision, or a variable of the
    algorithm. With --decisions it is the first call that is another one or decides otherwise, and
    clocks and sequence numbers count from the connection's beginning. Exit status 1: they
    differ."""
    from fullpipe.base.scratch import scratch
    from fullpipe.kernel.calls import first_difference

    if on is None:
        difference = first_difference(Path(first), Path(second), decisions)
    else:
        with scratch("fullpipe-diff-") as folder:
            difference = first_difference(*_traced(first, second, on, folder), decisions)
    if difference is None:
        print("no call differs")
        return
    print(
        f"{difference.cc}, connection {difference.connection}, "
        f"call {difference.sequence} ({difference.call}) at {difference.t_us / 1e6:.6f} s"
    )
    if difference.only_in is not None:
        print(f"  only in {(first, second)[difference.only_in]}")
    for name, (left, right) in difference.values.items():
        print(f"  {name}: {left} in {first}, {right} in {second}")
    fail(f"{first} and {second} differ", 1)


def _traced(first: str, second: str, on: Path, folder: Path) -> tuple[Path, Path]:
    """The traces of a scenario with each of two congestion controls. Raises UserError if one cannot
    run there."""
    from fullpipe.cli.run import What, read_scenario
    from fullpipe.congestion.registry import cc_sets, is_external_name
    from fullpipe.engines.sim import SimEngine
    from fullpipe.plan.resolve import resolve
    from fullpipe.scorecard.comparing import file_of
    from fullpipe.scorecard.git_files import check_out, commit_of

    file = file_of(first)
    is_control = is_external_name(second) or second.partition("[")[0] in cc_sets()
    if file is not None and not is_control:
        if not file.is_file():
            raise UserError(f"{file}: no such file")
        try:
            second = str(check_out(file, commit_of(file, second), folder / "commit"))
        except UserError as error:
            why = str(error).removeprefix("--baseline ")
            raise UserError(f"{second}: is no congestion control; as a commit: {why}") from None
    traces = folder / "first", folder / "second"
    for name, trace in zip((first, second), traces, strict=True):
        scenario, _ = read_scenario(on, What(cc=name))
        SimEngine().run(resolve(scenario), lambda _done: True, {"cc_trace": str(trace)})
    return traces


def _draw(file: Path, columns: list[str], to: Path | None) -> None:
    from fullpipe.kernel.calls import read_calls
    from fullpipe.plots.look import Look
    from fullpipe.report.calls import calls_chart

    if to is None or to.suffix not in _DRAWN:
        raise UserError(f"--plot needs --to FILE.svg, .pdf, .png or .html; {to or 'no --to'} given")
    if not columns:
        raise UserError("--plot: names no column; write COLUMN,COLUMN")
    names = list(dict.fromkeys(["t_us", "cc", "connection", *columns]))
    _write(calls_chart(read_calls(file, names), columns), to, Look())


def _write(chart: Grid, out: Path, look: Look) -> None:
    """The chart as a page or a figure, as the file's name ends."""
    if out.suffix == ".html":
        from fullpipe.plots.plotly_renderer import write_page

        write_page(chart, out)
    else:
        from fullpipe.plots.matplotlib_renderer import write_file

        write_file(chart if chart.title or len(chart.panels) > 1 else chart.panels[0], out, look)
    message(f"wrote {out}")
