"""The gallery and the page of results are what their scripts make of scenarios and evidence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from repository_scripts import script

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "images" / "gallery"
MOST_BYTES = 1_500_000


@pytest.mark.parametrize("name", ["gallery", "results"])
def test_the_page_is_what_its_script_writes(name: str) -> None:
    written = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert written == script(name).page(), f"python scripts/{name}.py"


def test_every_scenario_has_its_picture_and_nothing_else_has() -> None:
    shipped = {path.stem for path in (ROOT / "scenarios").glob("*.toml")}
    pictures = list(PICTURES.iterdir())
    shown = set(re.findall(r"images/gallery/([a-z0-9-]+)\.png", script("gallery").page()))
    assert {path.stem for path in pictures} == shipped == shown
    assert sum(path.stat().st_size for path in pictures) < MOST_BYTES


def test_the_results_show_every_figure_that_their_script_draws() -> None:
    shown = set(re.findall(r"images/results/([a-z]+)\.png", script("results").page()))
    drawn = {path.stem for path in (ROOT / "docs" / "images" / "results").iterdir()}
    assert shown == drawn == set(script("results_figures").FIGURES)


def test_a_row_that_the_scorecard_no_longer_has_is_an_error_and_not_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = script("results")
    (tmp_path / "scorecards").mkdir()
    text = (results.EVIDENCE / "scorecards" / "README.md").read_text(encoding="utf-8")
    (tmp_path / "scorecards" / "README.md").write_text(text.replace("| 6.4-wifi |", "| 6.5 |"))
    monkeypatch.setattr(results, "EVIDENCE", tmp_path)
    with pytest.raises(KeyError, match=r"6\.4-wifi"):
        results.page()
