"""`fullpipe scorecard`: what a congestion control is worth, item by item."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fullpipe.base.errors import UserError
from fullpipe.cli.options import CcName, Jobs, Json
from fullpipe.cli.output import console, message, text_table
from fullpipe.cli.progress import progress_of_runs

if TYPE_CHECKING:
    from fullpipe.scorecard.draft import Result
    from fullpipe.scorecard.items import Item

_DRAFT = "draft"


def scorecard(
    cc: CcName,
    against: Annotated[
        str, typer.Option(metavar="NAMES", help="Congestion controls to compare with, with commas.")
    ] = "cubic,reno,bbr1,bbr3",
    only: Annotated[
        str | None,
        typer.Option(metavar="ITEM", help="draft, rfc9743, c4, robustness, or the id of one item."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use fewer seeds and paths: a minute on two cores.")
    ] = False,
    engine: Annotated[Literal["sim", "vm"], typer.Option(help="What runs it.")] = "sim",
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="An earlier --out; exit status 1 if anything got worse."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the page and the JSON.")
    ] = None,
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
    store: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where runs are kept; by default the user's cache."),
    ] = None,
) -> None:
    """Rates a congestion control over fixed scenarios.

    RFC 9743's items, scenarios of other makers, 1,000 random paths, and for BBR's family the
    draft's test cases. Exit status: 0 done; 1 a run failed, a case of --only draft failed, or
    something is worse than in --baseline; 2 bad input."""
    from fullpipe.scorecard.items import items
    from fullpipe.sweep.store import Store, cached_store

    chosen = [item for item in items() if _is_chosen(item.id, only)]
    if cell is not None:
        print(_scenario(cc, chosen, cell, quick, engine), end="")
        return
    runs = Store(store or cached_store("scorecards"), create=True)
    if only is not None and (only == _DRAFT or only.startswith("draft-")):
        has_failed = _draft(cc, only, quick, json_, jobs, runs)
    else:
        if not chosen:
            known = ", ".join(item.id for item in items())
            raise UserError(f"--only {only}: unknown; known are draft, rfc9743, c4, {known}")
        earlier = _document(baseline) if baseline else None
        names = [name.strip() for name in against.split(",") if name.strip()]
        card = _card(cc, names, chosen, quick, engine, jobs, runs, only is None)
        has_failed = _finish(card, earlier, out, json_)
    if has_failed:
        raise typer.Exit(1)


def _is_chosen(name: str, only: str | None) -> bool:
    return only is None or name == only or name.startswith(f"{only}-")


def _scenario(cc: str, chosen: Sequence[Item], cell: int, quick: bool, engine: str) -> str:
    """The scenario of one cell of one item, as TOML."""
    import tomli_w

    from fullpipe.sweep.cells import cells_of, scenario_of

    if len(chosen) != 1 or chosen[0].needs:
        raise UserError("--cell: belongs to --only ITEM, an item that runs")
    sweep = chosen[0].runs(cc, quick, engine)
    cells = cells_of(sweep)
    if cell >= len(cells):
        raise UserError(f"--cell {cell}: {chosen[0].id} has cells 0 to {len(cells) - 1}")
    document, scenario = scenario_of(sweep, cells[cell])
    return tomli_w.dumps({**document, "seed": scenario.seed})


def _card(
    cc: str,
    against: list[str],
    chosen: Sequence[Item],
    quick: bool,
    engine: str,
    jobs: int | None,
    store: Any,
    whole: bool,
) -> dict[str, Any]:
    from fullpipe.scorecard.card import run_card
    from fullpipe.scorecard.draft import run_draft
    from fullpipe.scorecard.draft_items import draft_items

    with progress_of_runs() as update:
        card = run_card(cc, against, chosen, store, quick, engine, jobs, update)
        if whole and engine == "sim":
            results = run_draft(cc, draft_items(), store, quick, jobs, update)
            if any(found.holds is not None for found in results):
                card["draft"] = [found.document(cc) for found in results]
    return card


def _finish(
    card: dict[str, Any], earlier: dict[str, Any] | None, out: Path | None, as_json: bool
) -> bool:
    """Writes and prints a scorecard. Returns whether a run failed or something got worse."""
    from fullpipe.base.writing import write_text
    from fullpipe.scorecard.page import page
    from fullpipe.scorecard.standing import changes

    if earlier is not None:
        card["changes"] = changes(earlier, card)
    if out is not None:
        write_text(out / "scorecard.json", json.dumps(card, allow_nan=False) + "\n")
        write_text(out / "scorecard.html", page(card))
    if as_json:
        print(json.dumps(card, allow_nan=False))
    else:
        _print(card)
    if out is not None:
        message(f"page: {out / 'scorecard.html'}")
    for failure in card["failures"]:
        message(f"failed: {failure}", "bold red")
    worse = any(change["verdict"] == "worse" for change in card.get("changes", []))
    return worse or bool(card["failures"])


def _document(folder: Path) -> dict[str, Any]:
    place = folder / "scorecard.json"
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"--baseline {place}: cannot be read: {error}") from None
    if not isinstance(found, dict) or "items" not in found:
        raise UserError(f"--baseline {place}: is no scorecard")
    return found


def _print(card: dict[str, Any]) -> None:
    from fullpipe.scorecard.page import shown
    from fullpipe.scorecard.standing import stands

    table = text_table("item", "measure", right=list(card["subjects"]))
    table.add_column("")
    for item in card["items"]:
        for index, measure in enumerate(item["measures"]):
            unit = f", {measure['unit']}" if measure["unit"] else ""
            values = [shown(measure["subjects"][name]["value"]) for name in card["subjects"]]
            word = stands(measure, card["scorecard"])
            table.add_row(
                "" if index else item["id"].removeprefix("rfc9743-"), measure["title"] + unit,
                *values, "" if word == "among" else word,
            )  # fmt: skip
        if item["not_run"]:
            table.add_row(item["id"].removeprefix("rfc9743-"), f"not run: needs {item['not_run']}")
    console.print(table)
    if "draft" in card:
        held = [case["holds"] for case in card["draft"]]
        console.print(
            f"draft-ietf-ccwg-bbr: {held.count(True)} cases hold, {held.count(False)} do not, "
            f"{held.count(None)} not run"
        )
    for change in card.get("changes", []):
        console.print(
            f"{change['verdict']} than the baseline: {change['item']}, {change['title']}: "
            f"{shown(change['before'])} -> {shown(change['now'])} {change['unit']}"
        )


def _draft(cc: str, only: str, quick: bool, as_json: bool, jobs: int | None, store: Any) -> bool:
    """Runs and prints the draft's test cases. Returns whether one failed."""
    from fullpipe.scorecard.draft import run_draft
    from fullpipe.scorecard.draft_items import draft_items

    chosen = [item for item in draft_items() if only in (_DRAFT, item.id)]
    if not chosen:
        known = ", ".join(item.id for item in draft_items())
        raise UserError(f"--only {only}: unknown; known are draft, {known}")
    with progress_of_runs() as update:
        results = run_draft(cc, chosen, store, quick, jobs, update)
    if as_json:
        print(json.dumps({"items": [found.document(cc) for found in results]}))
    else:
        _print_draft(results)
    return any(found.holds is False for found in results)


def _print_draft(results: list[Result]) -> None:
    table = text_table("item", "holds", "paths", "case")
    for found in results:
        word = {True: "yes", False: "no", None: "-"}[found.holds]
        hold = sum(not one.failed for one in found.paths)
        paths = f"{hold} of {len(found.paths)}" if found.paths else ""
        title = f"{found.item.title} ({found.why})" if found.why else found.item.title
        table.add_row(found.item.id, word, paths, title)
    console.print(table)
    for found in results:
        for one in found.paths:
            for text in one.failed:
                message(f"{found.item.id}, {one.path}: does not hold: {text}", "yellow")
