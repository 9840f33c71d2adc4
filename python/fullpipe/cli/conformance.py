"""`fullpipe conformance`: whether an implementation does what its document asks, case by case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli import INTERRUPTED
from fullpipe.cli.options import CcName, Jobs, Json, RunsFolder
from fullpipe.cli.output import console, fail, message, text_table
from fullpipe.cli.progress import progress_of_runs

if TYPE_CHECKING:
    from fullpipe.conformance.runner import Result

#: How names of algorithms begin or end, and the document that describes them.
_BY_NAME = {"cubic": "rfc9438", "reno": "rfc5681", "bbr": "draft"}


def conformance(
    cc: CcName,
    document: Annotated[
        Literal["draft", "rfc9438", "rfc5681"] | None,
        typer.Option(
            help="draft: draft-ietf-ccwg-bbr; rfc9438: CUBIC; rfc5681: Reno. By default by name."
        ),
    ] = None,
    only: Annotated[str | None, typer.Option(metavar="CASE", help="The id of one case.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run each case on its first path only.")
    ] = False,
    traces: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write window, flight, RTT and rates over time as CSV."),
    ] = None,
    engine: Annotated[Literal["sim", "vm"], typer.Option(help="What runs it.")] = "sim",
    json_: Json = False,
    jobs: Jobs = None,
    store: RunsFolder = None,
) -> None:
    """Checks an implementation against its document, case by case.

    NAME is a congestion control, a file, or kernel:NAME with --engine vm. Each case says whether
    the implementation does as the document asks, or how it deviates, with the figure, or why it
    was not run. Exit status: 0 all cases that were run hold, 1 some deviate, 2 bad input or no case
    could run, 130 interrupted."""
    from fullpipe.cli.kept_runs import kept_runs
    from fullpipe.conformance.cases import DOCUMENTS, cases_of
    from fullpipe.conformance.runner import run_cases
    from fullpipe.congestion.registry import choose

    choose(cc, {})
    chosen = _chosen(cc, document, only)
    cases = cases_of(chosen)
    # BBR's cases all run: in some no flow reaches the phases that tell the family.
    wanted = [case for case in cases if case.id == only and not case.reads_bbr] or cases
    runs = kept_runs(store)
    try:
        with progress_of_runs() as update:
            results = run_cases(cc, wanted, runs, quick, jobs, update, engine)
    except KeyboardInterrupt:
        reason = (
            f"interrupted; the runs that ended are in {runs.folder}; the same command continues"
        )
        fail(reason, INTERRUPTED)
    results = [result for result in results if only in (None, result.case.id)]
    if traces is not None:
        _write_traces(results, traces)
    if json_:
        documents = [result.document(cc) for result in results]
        print(json.dumps({"name": cc, "document": DOCUMENTS[chosen], "cases": documents}))
    else:
        _print(cc, DOCUMENTS[chosen], results)
    if any(result.holds is False for result in results):
        raise typer.Exit(1)
    if all(result.holds is None for result in results):
        fail(f"{cc}: no case could run", 2)


def _chosen(cc: str, document: str | None, only: str | None) -> str:
    """The document to hold `cc` against. Raises UserError where the name does not tell, or for an
    unknown case."""
    from fullpipe.conformance.cases import DOCUMENTS, cases_of

    if document is None and only is not None:
        document = next((key for key in DOCUMENTS if only.startswith(f"{key}-")), None)
    if document is None:
        name = Path(cc.partition("[")[0]).stem.lower()
        document = next((candidate for word, candidate in _BY_NAME.items() if word in name), None)
    if document is None:
        documents = ", ".join(f"{key} ({title})" for key, title in DOCUMENTS.items())
        raise UserError(f"{cc}: --document is needed: {documents}")
    ids = [case.id for case in cases_of(document)]
    if only is not None and only not in ids:
        raise UserError(f"--only {only}: unknown; cases of {document} are {', '.join(ids)}")
    return document


def _write_traces(results: list[Result], folder: Path) -> None:
    from fullpipe.conformance.reference_traces import write_traces

    for result in results:
        for path_result in result.paths:
            if path_result.recording is not None:
                write_traces(path_result.recording, folder, result.case.id, path_result.path)
    message(f"traces: {folder}")


def _print(cc: str, document: str, results: list[Result]) -> None:
    console.print(f"{cc} and {document}", style="bold")
    table = text_table("case", "verdict", "paths", "what it asks")
    for result in results:
        table.add_row(result.case.id, *_verdict(result), result.case.title)
    console.print(table)
    for result in results:
        if result.why:
            message(f"{result.case.id}: not run: {result.why}")
        for path_result in result.paths:
            for text in path_result.failed:
                message(f"{result.case.id}, {path_result.path}: deviates: {text}", "yellow")


def _verdict(result: Result) -> tuple[str, str]:
    if result.holds is None:
        return "not run", ""
    hold = sum(not path_result.failed for path_result in result.paths)
    return "as asked" if result.holds else "deviates", f"{hold} of {len(result.paths)}"
