"""`fullpipe scorecard`: what a congestion control is worth, item by item."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fullpipe.cli.output import console, say
from fullpipe.errors import UserError

if TYPE_CHECKING:
    from fullpipe.scorecard.draft import Result


def scorecard(
    cc: Annotated[str, typer.Argument(metavar="NAME", help="a congestion control, or ./mine.h")],
    only: Annotated[
        str, typer.Option(metavar="ITEM", help="draft, or one item, such as draft-05")
    ] = "draft",
    quick: Annotated[bool, typer.Option("--quick", help="the first path of each case")] = False,
    json_: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="processes; all cores")] = None,
    store: Annotated[
        Path | None, typer.Option(metavar="DIR", help="where runs are kept; the user's cache")
    ] = None,
) -> int:
    """Runs the example test cases of draft-ietf-ccwg-bbr and says which hold.

    Exit status: 0 all hold that can be run, 1 some do not, 2 bad input."""
    from fullpipe.cache import user_cache
    from fullpipe.cli.sweep import progress_bar
    from fullpipe.scorecard.draft import run_draft
    from fullpipe.scorecard.draft_items import draft_items
    from fullpipe.sweep.store import Store

    items = [item for item in draft_items() if only in ("draft", item.id)]
    if not items:
        known = ", ".join(item.id for item in draft_items())
        raise UserError(f"--only {only}: unknown; known are draft, {known}")
    place = Store(store or user_cache() / "scorecards", create=True)
    with progress_bar() as update:
        results = run_draft(cc, items, place, quick, jobs, update)
    if json_:
        print(json.dumps({"items": [found.document(cc) for found in results]}))
    else:
        _print(results)
    return 1 if any(found.holds is False for found in results) else 0


def _print(results: list[Result]) -> None:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("item", "holds", "paths", "case"):
        table.add_column(title)
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
                say(f"{found.item.id}, {one.path}: does not hold: {text}", "yellow")
