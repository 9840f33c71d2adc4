"""`fullpipe scorecard`: what a congestion control is worth, item by item."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli.comparison import (
    AllowFile,
    FailIf,
    JunitFile,
    MarkdownFile,
    Seeds,
    print_comparison,
)
from fullpipe.cli.longer import UntilSettled
from fullpipe.cli.options import CcName, Changes, Jobs, Json, RunsFolder
from fullpipe.cli.output import console, message, text_table
from fullpipe.cli.progress import progress_of_runs

if TYPE_CHECKING:
    from fullpipe.conformance.runner import Result
    from fullpipe.scorecard.changes import Comparison
    from fullpipe.scorecard.comparing import Settings
    from fullpipe.scorecard.gate import Judged
    from fullpipe.scorecard.items import Item
    from fullpipe.sweep.store import Store

_DRAFT = "draft"


def scorecard(
    cc: CcName,
    against: Annotated[
        str,
        typer.Option(metavar="NAMES", help="Others to compare with, separated by commas."),
    ] = "cubic,reno,bbr1,bbr3",
    only: Annotated[
        str | None,
        typer.Option(metavar="ITEM", help="draft, rfc9743, c4, robustness, or the id of one item."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use fewer paths: minutes on two cores.")
    ] = False,
    seeds: Seeds = None,
    set_: Changes = None,
    until_settled: UntilSettled = False,
    engine: Annotated[Literal["sim", "vm"], typer.Option(help="What runs it.")] = "sim",
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|NAME|COMMIT",
            help="Test for changes since an earlier --out, beside another congestion control or "
            "file, or since a commit of git; exit status 1 if anything got worse.",
        ),
    ] = None,
    fail_if: FailIf = None,
    allow: AllowFile = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for the page and the JSON."),
    ] = None,
    junit: JunitFile = None,
    markdown: MarkdownFile = None,
    json_: Json = False,
    cell: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="INDEX",
            help="With --only ITEM: print this cell's scenario; run nothing.",
        ),
    ] = None,
    jobs: Jobs = None,
    store: RunsFolder = None,
) -> None:
    """Rates a congestion control over fixed scenarios.

    RFC 9743's items, scenarios of other makers, 1,000 random paths, and for BBR's family the
    draft's test cases. Exit status: 0 done; 1 a run failed, a case of --only draft failed, or
    something is worse than --baseline; 2 bad input."""
    from fullpipe.cli.kept_runs import kept_runs
    from fullpipe.congestion.registry import listed
    from fullpipe.scorecard.comparing import Settings
    from fullpipe.scorecard.gate import Gate
    from fullpipe.scorecard.items import items

    _check(
        baseline, {"--fail-if": fail_if, "--allow": allow, "--junit": junit, "--markdown": markdown}
    )
    chosen = [item for item in items() if item.is_of(only)]
    changes = set_ or []
    if cell is not None:
        print(_scenario(cc, chosen, cell, quick, engine, changes), end="")
        return
    runs = kept_runs(store)
    if only is not None and (only == _DRAFT or only.startswith("draft-")):
        if baseline or changes or seeds:
            raise UserError(
                f"--only {only}: a case is one run; it takes no --baseline, --seeds or --set"
            )
        if _draft(cc, only, quick, json_, jobs, runs):
            raise typer.Exit(1)
        return
    if not chosen:
        ids = ", ".join(item.id for item in items())
        raise UserError(f"--only {only}: unknown; known are draft, rfc9743, c4, {ids}")
    gate = Gate(chosen, fail_if or [], allow) if baseline is not None else None
    names = listed(against)
    with progress_of_runs() as update:
        settings = Settings(names, quick, engine, seeds, changes, jobs, update, until_settled)
        card, comparison = _run(cc, chosen, runs, settings, baseline)
        if baseline is None and engine == "sim" and not changes and not until_settled:
            _add_knife_edges(card, cc, chosen, runs, settings)
        if only is None and engine == "sim" and not changes:
            _add_draft(card, cc, quick, jobs, runs, update)
    judged = gate.judge(comparison) if gate is not None and comparison is not None else None
    if _finish(card, comparison, judged, out, junit, markdown, json_):
        raise typer.Exit(1)


def _check(baseline: str | None, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value and baseline is None:
            raise UserError(f"{name}: belongs to --baseline")


def _scenario(
    cc: str, chosen: Sequence[Item], cell: int, quick: bool, engine: str, changes: Sequence[str]
) -> str:
    """The scenario of one cell of one item, as TOML."""
    import tomli_w

    from fullpipe.sweep.cells import cells_of, scenario_of

    if len(chosen) != 1 or chosen[0].needs:
        raise UserError("--cell: belongs to --only ITEM, an item that runs")
    sweep = chosen[0].runs(cc, quick, engine, overrides=changes)
    cells = cells_of(sweep)
    if cell >= len(cells):
        raise UserError(f"--cell {cell}: {chosen[0].id} has cells 0 to {len(cells) - 1}")
    document, scenario = scenario_of(sweep, cells[cell])
    return tomli_w.dumps({**document, "seed": scenario.seed})


def _run(
    cc: str, chosen: Sequence[Item], store: Store, settings: Settings, baseline: str | None
) -> tuple[dict[str, Any], Comparison | None]:
    from fullpipe.scorecard.comparing import run_against, run_alone

    if baseline is None:
        return run_alone(cc, chosen, store, settings), None
    return run_against(cc, baseline, chosen, store, settings)


def _add_knife_edges(
    card: dict[str, Any], cc: str, chosen: Sequence[Item], store: Store, settings: Settings
) -> None:
    """Adds what a little jitter changes."""
    from fullpipe.scorecard.knife_edges import knife_edges

    said = knife_edges(cc, chosen, store, settings)
    for item in card["items"]:
        item["knife_edge"] = said.get(item["id"], "")


def _add_draft(
    card: dict[str, Any], cc: str, quick: bool, jobs: int | None, store: Store, update: Any
) -> None:
    """Adds the draft's cases, where they can be held against the algorithm."""
    from fullpipe.conformance.cases import DRAFT, cases_of
    from fullpipe.conformance.runner import run_cases

    results = run_cases(cc, cases_of(DRAFT), store, quick, jobs, update)
    if any(result.holds is not None for result in results):
        card["draft"] = [result.document(cc) for result in results]


def _finish(
    card: dict[str, Any],
    comparison: Comparison | None,
    judged: Judged | None,
    out: Path | None,
    junit: Path | None,
    markdown: Path | None,
    as_json: bool,
) -> bool:
    """Writes and prints a scorecard. Returns whether a run failed or something got worse."""
    from fullpipe.scorecard import outcome

    if out is not None:
        outcome.write_card(card, out, comparison, judged)
    if comparison is not None and judged is not None:
        outcome.write_reports(card, comparison, judged, junit, markdown)
    if as_json:
        print(outcome.as_json(card, comparison, judged))
    else:
        _print(card)
        if comparison is not None and judged is not None:
            print_comparison(comparison, judged)
    if out is not None:
        message(f"page: {out / 'scorecard.html'}")
    for failure in card["failures"]:
        message(f"failed: {failure}", "bold red")
    return bool(card["failures"]) or (judged is not None and judged.is_worse)


def _print(card: dict[str, Any]) -> None:
    from fullpipe.scorecard.beside_others import beside_others
    from fullpipe.scorecard.change_texts import shown, shown_with_interval

    table = text_table("item", "measure", right=list(card["subjects"]))
    table.add_column("")
    for item in card["items"]:
        for index, measure in enumerate(item["measures"]):
            unit = f", {measure['unit']}" if measure["unit"] else ""
            values = [
                shown_with_interval(subject_value)
                if name == card["scorecard"]
                else shown(subject_value["value"])
                for name, subject_value in measure["subjects"].items()
            ]
            standing = beside_others(measure, card["scorecard"])
            table.add_row(
                "" if index else item["id"].removeprefix("rfc9743-"),
                measure["title"] + unit,
                *values,
                "" if standing == "between" else standing,
            )
        if item["not_run"]:
            table.add_row(item["id"].removeprefix("rfc9743-"), f"not run: needs {item['not_run']}")
    console.print(table)
    for item in card["items"]:
        if item.get("settling"):
            name = item["id"].removeprefix("rfc9743-")
            console.print(f"{name}: {item['settling']}", soft_wrap=True, markup=False)
        if item.get("knife_edge"):
            console.print(f"{item['id']}: {item['knife_edge']}", soft_wrap=True, markup=False)
    if "draft" in card:
        held = [case["holds"] for case in card["draft"]]
        console.print(
            f"draft-ietf-ccwg-bbr: {held.count(True)} cases hold, {held.count(False)} do not, "
            f"{held.count(None)} not run"
        )


def _draft(cc: str, only: str, quick: bool, as_json: bool, jobs: int | None, store: Store) -> bool:
    """Runs and prints the draft's test cases. Returns whether one failed."""
    from fullpipe.conformance.cases import DRAFT, cases_of
    from fullpipe.conformance.runner import run_cases

    chosen = [case for case in cases_of(DRAFT) if only in (_DRAFT, case.id)]
    if not chosen:
        ids = ", ".join(case.id for case in cases_of(DRAFT))
        raise UserError(f"--only {only}: unknown; known are draft, {ids}")
    with progress_of_runs() as update:
        results = run_cases(cc, chosen, store, quick, jobs, update)
    if as_json:
        print(json.dumps({"items": [result.document(cc) for result in results]}))
    else:
        _print_draft(results)
    return any(result.holds is False for result in results)


def _print_draft(results: list[Result]) -> None:
    table = text_table("item", "holds", "paths", "case")
    for result in results:
        word = {True: "yes", False: "no", None: "-"}[result.holds]
        hold = sum(not path_result.failed for path_result in result.paths)
        paths = f"{hold} of {len(result.paths)}" if result.paths else ""
        title = f"{result.case.title} ({result.why})" if result.why else result.case.title
        table.add_row(result.case.id, word, paths, title)
    console.print(table)
    for result in results:
        for path_result in result.paths:
            for text in path_result.failed:
                message(f"{result.case.id}, {path_result.path}: does not hold: {text}", "yellow")
