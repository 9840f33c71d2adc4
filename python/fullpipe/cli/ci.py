"""`fullpipe ci`: did an algorithm's file get worse? One command for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli.comparison import AllowFile, FailIf, print_comparison
from fullpipe.cli.options import Changes, Jobs, RunsFolder
from fullpipe.cli.output import message
from fullpipe.cli.progress import progress_of_runs

if TYPE_CHECKING:
    from fullpipe.scorecard.items import Item


def ci(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="An algorithm's file, such as ./mine.h or ./mine.py."),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="COMMIT|NAME|DIR",
            help="Compare with the file at this commit, another file or name, or an earlier --out; "
            "by default with the file at the merge base with the main branch.",
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="ITEM", help="rfc9743, c4, robustness, or the id of one item."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=2, max=1000, help="Runs of each cell: more find smaller changes.")
    ] = 10,
    set_: Changes = None,
    fail_if: FailIf = None,
    allow: AllowFile = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder for the page, JSON, JUnit and Markdown."
        ),
    ] = Path("fullpipe-ci"),
    jobs: Jobs = None,
    store: RunsFolder = None,
) -> None:
    """Tests whether an algorithm's file got worse.

    Runs the quick scorecard of the file and of its baseline, about a CPU minute in all, and writes
    scorecard.json, scorecard.html, junit.xml and summary.md. Exit status: 0 not worse; 1 worse, or
    a run failed; 2 bad input."""
    from fullpipe.base.writing import check_folder, write_text
    from fullpipe.cli.kept_runs import kept_runs
    from fullpipe.scorecard import outcome
    from fullpipe.scorecard.comparing import Settings, file_of, is_new, run_against
    from fullpipe.scorecard.gate import Gate
    from fullpipe.scorecard.git_files import usual_baseline

    check_folder("--out", out)
    path = file_of(file)
    if path is None or not path.is_file():
        raise UserError(f"{file}: is no file of an algorithm; name one such as ./mine.h")
    chosen = _items(only)
    gate = Gate(chosen, fail_if or [], allow)
    baseline = baseline or usual_baseline(path)
    if baseline is None or is_new(file, baseline):
        print(f"{file}: has no earlier version; there is nothing to compare it with")
        write_text(out / "summary.md", "### fullpipe: the file has no earlier version\n")
        return
    runs = kept_runs(store)
    with progress_of_runs() as update:
        settings = Settings((), True, "sim", seeds, set_ or [], jobs, update)
        card, comparison = run_against(file, baseline, chosen, runs, settings)
    judged = gate.judge(comparison)
    outcome.write_card(card, out, comparison, judged)
    outcome.write_reports(card, comparison, judged, out / "junit.xml", out / "summary.md")
    print_comparison(comparison, judged)
    for failure in card["failures"]:
        message(f"failed: {failure}", "bold red")
    message(f"page: {out / 'scorecard.html'}")
    if judged.is_worse or card["failures"]:
        raise typer.Exit(1)


def _items(only: str | None) -> list[Item]:
    from fullpipe.scorecard.items import items

    chosen = [item for item in items() if item.is_of(only)]
    if not chosen:
        ids = ", ".join(item.id for item in items())
        raise UserError(f"--only {only}: unknown; known are rfc9743, c4, {ids}")
    return chosen
