"""The files that a scorecard and a comparison leave. Must never run anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fullpipe.base.writing import write_text
from fullpipe.scorecard.card_page import card_page
from fullpipe.scorecard.change_markdown import markdown
from fullpipe.scorecard.change_texts import document
from fullpipe.scorecard.changes import Comparison
from fullpipe.scorecard.gate import Judged
from fullpipe.scorecard.junit import junit


def write_card(
    card: Mapping[str, Any],
    folder: Path,
    comparison: Comparison | None = None,
    judged: Judged | None = None,
) -> None:
    """Writes scorecard.json and scorecard.html. Raises UserError where it cannot."""
    write_text(folder / "scorecard.json", as_json(card, comparison, judged) + "\n")
    write_text(folder / "scorecard.html", card_page(card, comparison, judged))


def as_json(
    card: Mapping[str, Any], comparison: Comparison | None = None, judged: Judged | None = None
) -> str:
    """The scorecard, with the comparison where there is one."""
    if comparison is not None and judged is not None:
        card = {**card, "comparison": document(comparison, judged)}
    return json.dumps(card, allow_nan=False)


def write_reports(
    card: Mapping[str, Any],
    comparison: Comparison,
    judged: Judged,
    junit_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Writes the comparison as JUnit XML and as Markdown. Raises UserError where it cannot."""
    if junit_file is not None:
        write_text(junit_file, junit(card, comparison, judged))
    if markdown_file is not None:
        write_text(markdown_file, markdown(card, comparison, judged))
