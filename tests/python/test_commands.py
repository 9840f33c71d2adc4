"""Generated pages are up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from repository_scripts import script

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["commands", "metric_functions", "metrics", "recordings"])
def test_a_generated_page_is_what_its_script_writes(name: str) -> None:
    written = (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
    assert written == script(name).page(), f"python scripts/{name}.py writes it anew"
