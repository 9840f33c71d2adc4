"""Options that `scorecard` and `ci` share, and the text of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.cli.output import console, message

if TYPE_CHECKING:
    from fullpipe.scorecard.changes import Comparison
    from fullpipe.scorecard.gate import Judged

Seeds = Annotated[
    int | None,
    typer.Option(min=1, max=1000, help="Runs of each cell; by default as the items say, 10."),
]
FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Fail only where this holds of the worsening, such as 'item > 5%' (any item) or "
        "'rfc9743-5.1.3.utilisation > 2%'; repeatable.",
    ),
]
AllowFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Accepted changes (TOML): [[allow]] with item and reason."),
]
JunitFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the comparison as JUnit XML.")
]
MarkdownFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the comparison as Markdown.")
]


def print_comparison(comparison: Comparison, judged: Judged) -> None:
    """What changed, with intervals, and what of it counts."""
    from fullpipe.scorecard.change_texts import conclusion, sentence, what_was_tested

    accepted = dict(judged.accepted)
    for change in [*comparison.of("worse"), *comparison.of("better")]:
        reason = f" (accepted: {accepted[change]})" if change in accepted else ""
        console.print(sentence(change) + reason, soft_wrap=True)
    for name, why in comparison.untested.items():
        console.print(f"not tested: {name}: {why}", soft_wrap=True)
    for text in judged.conditions:
        console.print(f"--fail-if {text!r}: {'holds' if text in judged.holding else 'does not'}")
    console.print(conclusion(comparison, judged), soft_wrap=True)
    console.print(what_was_tested(comparison), soft_wrap=True)
    for entry in judged.unused:
        about = f"{entry.item}.{entry.measure}" if entry.measure else entry.item
        message(f"--allow: {about} is not worse; its entry can go", "yellow")
