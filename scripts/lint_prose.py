"""Holds the manual to its style: short lines, short cells of tables, few words. Prints what is too
long; exit status 1 if anything is. Needs nothing but Python.

    python scripts/lint_prose.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
#: Pages and what writes them, as each page says.
GENERATED = {
    "reference/scenario.md": "fullpipe schema --markdown",
    "reference/commands.md": "scripts/commands.py",
    "reference/recordings.md": "scripts/recordings.py",
    "reference/metrics.md": "scripts/metrics.py",
    "reference/metric_functions.md": "scripts/metric_functions.py",
    "gallery.md": "scripts/gallery.py",
    "results.md": "scripts/results.py",
}
#: Generated evidence whose lines and cells are the sentences of papers and of verdicts.
_OF_PAPERS = {"evidence/claims.md", "evidence/published.md", "evidence/published_held_out.md"}
_GENERATED_EVIDENCE = {*_OF_PAPERS, "evidence/agreement_cells.md"}
_PAGES_OF_PAPERS = "evidence/papers/"
_OTHERS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")
#: Of pages by hand. A table of cells is a file in docs/evidence/cells, not a page.
_MOST_WORDS, _MOST_WORDS_OF_EVIDENCE = 42_500, 44_000
_LONGEST_LINE, _LONGEST_CELL = 100, 120
_LINK, _ANCHOR = re.compile(r"\[([^\]]*)\]\([^)]*\)"), re.compile(r'<a id="[^"]*"></a>')


def too_long(page: Path) -> Iterator[str]:
    """`file:line: what` of lines and cells that are too long."""
    is_code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        place = f"{page.relative_to(ROOT)}:{number}"
        is_code ^= line.lstrip().startswith("```")
        row = line.strip()
        if row.startswith("|") and not is_code:
            for cell in re.split(r"(?<!\\)\|", row.strip("|")):
                shown = _ANCHOR.sub("", _LINK.sub(r"\1", cell)).strip()
                if len(shown) > _LONGEST_CELL:
                    yield f"{place}: a cell of {len(shown)} letters; at most {_LONGEST_CELL}"
        elif not line.startswith("#") and len(line) > _LONGEST_LINE:  # a heading is one line
            yield f"{place}: {len(line)} letters; at most {_LONGEST_LINE}"


def main() -> int:
    """Returns the exit status."""
    pages = {str(page.relative_to(DOCS)): page for page in sorted(DOCS.rglob("*.md"))}
    told = [line for name in _OTHERS for line in too_long(ROOT / name)]
    told += [line for name, page in pages.items() if name not in _OF_PAPERS
             and not name.startswith(_PAGES_OF_PAPERS)
             for line in too_long(page)]  # fmt: skip
    generated = {*GENERATED, *_GENERATED_EVIDENCE}
    by_hand = [
        name
        for name in pages
        if name not in generated and not name.startswith(("evidence/scorecards/", _PAGES_OF_PAPERS))
    ]
    for part, is_evidence, most in (
        ("docs/evidence", True, _MOST_WORDS_OF_EVIDENCE),
        ("other pages of docs", False, _MOST_WORDS),
    ):
        counts = {
            name: len(pages[name].read_text(encoding="utf-8").split())
            for name in by_hand if name.startswith("evidence/") is is_evidence
        }  # fmt: skip
        if (words := sum(counts.values())) > most:
            longest = ", ".join(sorted(counts, key=lambda name: -counts[name])[:5])
            told.append(f"{part}: {words} words by hand; at most {most} (longest: {longest})")
    print(*told, sep="\n", end="\n" if told else "")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
