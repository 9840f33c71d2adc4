"""`fullpipe test`: Flent's tests by name, over a path."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tomli_w
from rich.markup import escape
from rich.table import Table

from fullpipe.base.errors import UserError
from fullpipe.cli.completion import engines
from fullpipe.cli.output import console

if TYPE_CHECKING:
    import typer
else:
    from fullpipe.cli.later import typer


def test(
    name: Annotated[str, typer.Argument(help="a test, such as rrul; list: shows them")],
    path: Annotated[
        Path | None, typer.Option(help="scenario file whose network it runs over")
    ] = None,
    cc: Annotated[
        str | None, typer.Option(help="what streams run whose algorithm the test leaves open")
    ] = None,
    length: Annotated[str, typer.Option(help="how long the streams last")] = "60s",
    streams: Annotated[int, typer.Option(min=1, max=1000, help="of tcp_nup and tcp_ndown")] = 1,
    rtts: Annotated[str, typer.Option(help="of rtt_fair's hosts, such as 20ms,40ms")] = "",
    har: Annotated[
        Path | None, typer.Option(help="HAR file: its sizes are the page's (http, http-rrul)")
    ] = None,
    engine: Annotated[str, typer.Option(help="sim, vm or live", autocompletion=engines)] = "sim",
    repeat: Annotated[int, typer.Option(min=1, max=10000, help="runs with further seeds")] = 1,
    out: Annotated[Path | None, typer.Option(help="folder for the recording(s)")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, such as path.rate=10mbit")
    ] = None,
    show: Annotated[bool, typer.Option(help="print the scenario and run nothing")] = False,
    json_: Annotated[bool, typer.Option("--json", help="print the metrics as JSON")] = False,
    report: Annotated[bool, typer.Option(help="write an HTML report beside")] = True,
    jobs: Annotated[int | None, typer.Option(min=1, help="runs at once; all cores")] = None,
    kernel: Annotated[Path | None, typer.Option(help="kernel image (vm)")] = None,
    modules: Annotated[Path | None, typer.Option(help="its modules folder (vm)")] = None,
) -> int:
    """Runs one of Flent's tests: its streams, marks, probes and times, over the network of a
    scenario file. `fullpipe flent export` writes the recording as that test."""
    from fullpipe.base.overrides import apply_changes
    from fullpipe.cli.run import record
    from fullpipe.engines import engine as engine_of
    from fullpipe.engines import engine_names
    from fullpipe.flent.templates import scenario_of, template
    from fullpipe.plan.resolve import resolve
    from fullpipe.scenario.document import load_document
    from fullpipe.scenario.har import levels_of_har
    from fullpipe.scenario.model import make_scenario

    if name == "list":
        _list()
        return 0
    chosen = template(name)
    if engine not in engine_names():
        raise UserError(f"--engine {engine}: unknown; known are {', '.join(engine_names())}")
    if path is None:
        raise UserError("--path: name the scenario file whose network the test runs over")
    network = load_document(path)
    distances = [text.strip() for text in rtts.split(",") if text.strip()]
    levels = [] if har is None else levels_of_har(har)
    document = scenario_of(chosen, network, str(path), cc, length, streams, distances, levels)
    document = apply_changes(document, set_ or [])
    text = tomli_w.dumps(document)
    parsed = make_scenario(document, f"{path} as {name}")
    if show:
        print(text, end="")
        return 0
    engine_of(engine).check(resolve(parsed))
    options = {
        key: str(value) for key, value in (("kernel", kernel), ("modules", modules)) if value
    }
    base = out or Path("recordings") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    return record(
        parsed, text, base, engine, repeat, options, json_, False, report, False, None, jobs
    )


def _list() -> None:
    from fullpipe.flent.templates import names, template

    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("test", no_wrap=True)
    table.add_column("streams and probes", overflow="fold")
    for name in names():
        table.add_row(escape(name), escape(template(name).about))
    console.print(table)
