"""`fullpipe test`: Flent's tests by name, over a path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli.folders import new_folder
from fullpipe.cli.options import (
    Changes,
    Engine,
    Jobs,
    Json,
    KernelImage,
    KernelModules,
    Recordings,
    cc_names,
    engine_options,
)
from fullpipe.cli.output import console, message, text_table


def test_names() -> list[str]:
    """Names of Flent's tests."""
    from fullpipe.flent.templates import names

    return ["list", *names()]


def test(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A test, such as rrul; `list` prints all.",
            autocompletion=test_names,
        ),
    ],
    path: Annotated[
        Path | None,
        typer.Option(metavar="SCENARIO", help="Scenario file whose network the test runs over."),
    ] = None,
    cc: Annotated[
        str | None,
        typer.Option(
            help="Congestion control of streams for which the test names none.",
            autocompletion=cc_names,
        ),
    ] = None,
    length: Annotated[str, typer.Option(help="How long the streams last.")] = "60s",
    streams: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of streams of tcp_nup and tcp_ndown.")
    ] = 1,
    rtts: Annotated[
        str, typer.Option(help="Base RTTs of the hosts of rtt_fair, such as 20ms,40ms.")
    ] = "",
    har: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="HAR file with the page's sizes (http, http-rrul)."),
    ] = None,
    har_page: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Page load of a HAR file with several, by its pageref."),
    ] = None,
    engine: Engine = "sim",
    repeat: Annotated[
        int, typer.Option(min=1, max=10000, help="Number of runs, each with another seed.")
    ] = 1,
    out: Recordings = None,
    set_: Changes = None,
    show: Annotated[bool, typer.Option("--show", help="Print the scenario; run nothing.")] = False,
    json_: Json = False,
    report: Annotated[bool, typer.Option(help="Write an HTML report beside the recording.")] = True,
    jobs: Jobs = None,
    kernel: KernelImage = None,
    modules: KernelModules = None,
) -> None:
    """Runs one of Flent's tests over a scenario's network.

    The test decides streams, DSCPs, probes and times; the scenario file, the network. `fullpipe
    flent export` writes the recording as a file of that test."""
    import tomli_w

    from fullpipe.cli.run import Output, record
    from fullpipe.engines.run import runs_of, seeds_of
    from fullpipe.flent.templates import scenario_of, template
    from fullpipe.scenario.document import changed, load_document
    from fullpipe.scenario.har import page_of_har
    from fullpipe.scenario.model import make_scenario

    if name == "list":
        _list(json_)
        return
    chosen = template(name)
    if path is None:
        raise UserError("--path: name the scenario file whose network the test runs over")
    options = engine_options(engine, kernel=kernel, modules=modules)
    network = load_document(path)
    rtt_texts = [text.strip() for text in rtts.split(",") if text.strip()]
    if har_page is not None and har is None:
        raise UserError("--har-page: names a page load of --har; give that too")
    levels = []
    if har is not None:
        page = page_of_har(har, har_page)
        levels = page.levels
        for sentence in page.notes:
            message(f"note: {har.name}: {sentence}")
    document = scenario_of(chosen, network, str(path), cc, length, streams, rtt_texts, levels)
    document = changed(document, set_ or [], path)
    text = tomli_w.dumps(document)
    made = make_scenario(document, f"{path} as {name}")
    if show:
        print(text, end="")
        return
    runs = runs_of(made, text, seeds_of(made, repeat), engine, options)
    base = out or new_folder(name)
    record(made, runs, base, Output(json_=json_, report=report), jobs)


def _list(as_json: bool) -> None:
    from fullpipe.flent.templates import names, template

    if as_json:
        print(json.dumps([{"test": name, "about": template(name).about} for name in names()]))
        return
    table = text_table("test", "streams and probes")
    for name in names():
        table.add_row(name, template(name).about)
    console.print(table)
