"""`fullpipe tune`: the constants of a congestion control that serve an objective best."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.cli import INTERRUPTED
from fullpipe.cli.options import Jobs, Json
from fullpipe.cli.output import console, fail, message, text_table
from fullpipe.cli.progress import progress

if TYPE_CHECKING:
    from fullpipe.tune.file import Search
    from fullpipe.tune.settings import Bench

#: Columns of measures that a table of 80 characters has room for.
_MEASURES = 4


def tune(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The search (TOML).")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="For the results; default: tunes/NAME."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Settings to try; by default the file's.")
    ] = None,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out",
            help="Measure what an earlier search found on the held-out paths, once.",
        ),
    ] = False,
    json_: Json = False,
    jobs: Jobs = None,
) -> None:
    """Searches for the constants that serve an objective best.

    The objective is an expression over rows: scenarios of the file, or items of the scorecard.
    Afterwards each constant goes back to its default, and a little to either side: a table says
    what each is worth. After Ctrl-C the same command continues. Exit status: 0 done, 1 some runs
    failed, 2 bad input, 130 interrupted."""
    from fullpipe.sweep.store import Store
    from fullpipe.tune.file import load_search
    from fullpipe.tune.settings import Bench

    wanted = load_search(file)
    folder = out or Path("tunes") / file.stem
    bench = Bench(wanted, Store(folder / "store", create=True), held_out, jobs)
    try:
        if held_out:
            _look(wanted, bench, folder, json_)
        else:
            _search(wanted, bench, folder, trials or wanted.options.trials, json_)
    except KeyboardInterrupt:
        fail("interrupted; the same command continues where it stopped", INTERRUPTED)
    for reason in sorted(set(bench.failures.values())):
        message(f"failed: {reason}", "bold red")
    if bench.failures:
        raise typer.Exit(1)


def _search(wanted: Search, bench: Bench, folder: Path, trials: int, as_json: bool) -> None:
    from fullpipe.tune.outcome import document_of, write_search
    from fullpipe.tune.searching import search

    with progress(f"tune {wanted.base.name}", 0.0) as update:
        outcome = search(wanted, bench, trials, lambda done, _least: update(done / trials))
    document = document_of(wanted, outcome)
    path = write_search(document, folder)
    if as_json:
        json.dump(document, sys.stdout)
        print()
        return
    _print_search(document)
    message(f"trials: {path}")


def _look(wanted: Search, bench: Bench, folder: Path, as_json: bool) -> None:
    from fullpipe.tune.outcome import looked_at, read_best, write_held_out

    setting = read_best(folder, wanted)
    document = looked_at(folder, wanted, setting)
    if document is None:
        names = dict.fromkeys([bench.name(setting), bench.name({}), *wanted.options.against])
        results = bench.measure_names(list(names))
        document = write_held_out(folder, wanted, setting, results)
    if as_json:
        print(json.dumps(document))
        return
    console.print(
        f"held-out paths of seed {document['held_out_seed']}, looked at on {document['date']}"
    )
    for result in document["results"]:
        console.print(f"\n{result['cc']}: objective {_text(result['objective'])}", style="bold")
        table = text_table("measure", right=["value"])
        table.add_column("95 % interval")
        for name, value in result["values"].items():
            low, high = result["intervals"].get(name, (None, None))
            interval = "" if low is None else f"{_text(low)} to {_text(high)}"
            table.add_row(name, _text(value), interval)
        console.print(table)


def _print_search(document: dict[str, Any]) -> None:
    best, default = document["best"], document["default"]
    console.print(
        f"{len(document['trials'])} settings; objective {_text(best['objective'])}, with the "
        f"defaults {_text(default['objective'])}"
    )
    table = text_table("constant", right=["best", "default"])
    table.add_column("unit")
    for name, about in document["parameters"].items():
        table.add_row(name, best["setting"][name], about["default"], about["unit"])
    console.print(table)
    console.print()
    names = list(best["values"])[:_MEASURES]
    table = text_table("change", right=["objective", *names])
    for label, result in _lines(document):
        table.add_row(
            label, _text(result["objective"]), *(_text(result["values"][name]) for name in names)
        )
    console.print(table)
    more = len(best["values"]) - len(names)
    if more > 0:
        console.print(f"{more} more measures are in the JSON")


def _lines(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The rows of the table of changes: the best, the defaults, each variant."""
    lines = [("best", document["best"]), ("all defaults", document["default"])]
    for variant in document["variants"]:
        change = "" if variant["kind"] == "ablation" else f" {variant['kind']}"
        value = (
            ""
            if variant["kind"] in ("ablation", "off")
            else f" ({variant['setting'][variant['change']]})"
        )
        lines.append((f"{variant['change']}{change}{value}", variant))
    return lines


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
