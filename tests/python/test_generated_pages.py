"""Pages of the manual that a program writes say which."""

from __future__ import annotations

import pytest

from repository_scripts import script

PROSE = script("lint_prose")


@pytest.mark.parametrize("name", PROSE.GENERATED)
def test_a_generated_page_says_what_writes_it(name: str) -> None:
    head = " ".join((PROSE.DOCS / name).read_text(encoding="utf-8").split()[:120])
    assert PROSE.GENERATED[name] in head
    writer = PROSE.ROOT / PROSE.GENERATED[name]
    assert writer.is_file() or name == "reference/scenario.md"
