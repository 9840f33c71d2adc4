"""What the manual promises of its pages: short lines, short cells of tables, few words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Pages and what writes them, as each page says.
GENERATED = {
    "reference/scenario.md": "fullpipe schema --markdown",
    "reference/commands.md": "scripts/commands.py",
    "reference/recordings.md": "scripts/recordings.py",
    "reference/metrics.md": "scripts/metrics.py",
    "gallery.md": "scripts/gallery.py",
    "results.md": "scripts/results.py",
}
#: Generated evidence whose lines and cells are the sentences of papers and of verdicts.
_OF_PAPERS = {"evidence/claims.md", "evidence/published.md", "evidence/published_held_out.md"}
_MOST_WORDS = 45_000
_LONGEST_LINE, _LONGEST_CELL = 100, 120
_LINK, _ANCHOR = re.compile(r"\[([^\]]*)\]\([^)]*\)"), re.compile(r'<a id="[^"]*"></a>')
_OTHERS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")
PAGES = [ROOT / name for name in _OTHERS] + [
    page for page in sorted(DOCS.rglob("*.md")) if str(page.relative_to(DOCS)) not in _OF_PAPERS
]


def written(page: Path) -> str:
    """Its name, from the folder of the manual."""
    return str(page.relative_to(DOCS))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_and_cells_of_tables_are_short(page: Path) -> None:
    is_code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        is_code ^= line.lstrip().startswith("```")
        row = line.strip()
        if row.startswith("|") and not is_code:
            for cell in re.split(r"(?<!\\)\|", row.strip("|")):
                shown = _ANCHOR.sub("", _LINK.sub(r"\1", cell)).strip()
                assert len(shown) <= _LONGEST_CELL, f"{page}:{number}: {shown}"
        elif not line.startswith("#"):  # a heading is one line
            assert len(line) <= _LONGEST_LINE, f"{page}:{number}: {line}"


def test_the_manual_that_people_wrote_has_at_most_45_000_words() -> None:
    counts = {
        written(page): len(page.read_text(encoding="utf-8").split())
        for page in DOCS.rglob("*.md")
        if not written(page).startswith("evidence/") and written(page) not in GENERATED
    }
    assert len(counts) > 60
    assert sum(counts.values()) <= _MOST_WORDS, sorted(counts.items(), key=lambda item: -item[1])


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_says_what_writes_it(name: str) -> None:
    head = " ".join((DOCS / name).read_text(encoding="utf-8").split()[:120])
    assert GENERATED[name] in head
    script = ROOT / GENERATED[name]
    assert script.is_file() or name == "reference/scenario.md"
