"""A page for each paper: its figures, the verdicts on its sentences, and all verdicts as CSV."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from experiment_entries import CATALOGUE, MadeStore, claims, command, entry_of, of_catalogue
from fullpipe.base.errors import UserError
from fullpipe.experiments import judge
from fullpipe.experiments.paper_pages import agreement, paper_pages, require_right_if
from fullpipe.experiments.reference_values import observed_values, points_of
from fullpipe.experiments.verdicts import EntryVerdicts

#: Holds, fails in every cell, is no claim of the paper, and cannot be tested.
CHECKS = ("all(share > 0.1)", "all(share > 0.9)", "all(goodput > 99)", "all(share > 0.2)")


def judged(folder: Path, name: str, figure: str, change: str = "") -> EntryVerdicts:
    """The verdicts on an entry of four claims over values of 0.5."""
    text = claims(*CHECKS).replace("Fig. 0", figure)
    text = text.replace('id = "c2"', 'id = "c2"\nabout = "simulator"')
    text = text.replace(f'check = """{CHECKS[3]}"""', 'needs = "a radio"')
    text = text.replace('id = "c1"', f'id = "c1"\n{change}')
    return judge(entry_of(folder, text, name), MadeStore(folder, lambda *_: 0.5))


RIGHT = 'right_if = "shares were near one."'


def test_a_page_has_a_papers_figures_in_their_order_with_sentences_and_pictures(
    tmp_path: Path,
) -> None:
    found = [
        judged(tmp_path, name, figure, RIGHT)
        for name, figure in (("one", "Table I"), ("two", "Fig. 10"), ("six", "Figs. 9 and 11"))
    ]
    pages = paper_pages(found, "docs/evidence", "Built from abc.")
    page = pages["papers/bless2025.md"]
    assert re.findall(r"^## (.+?):", page, re.M) == ["Figs. 9 and 11", "Fig. 10", "Table I"]
    assert "fullpipe experiment report bless2025 --evidence docs/evidence" in page
    assert "Built from abc." in page and "The paper is right if shares were near one." in page
    pictures = re.findall(r"!\[.*?\]\((images/.+?)\)", page)
    assert pictures == ["images/six-1.svg", "images/two-1.svg", "images/one-1.svg"]
    assert all(ET.fromstring(pages[f"papers/{picture}"]) is not None for picture in pictures)
    assert paper_pages(found, "docs/evidence", "Built from abc.") == pages


def test_one_sentence_says_what_agrees(tmp_path: Path) -> None:
    found = judged(tmp_path, "one", "Fig. 1")
    assert agreement(found.verdicts) == (
        "1 of 2 sentences hold; contradicted: `c1`; not testable here: `c3`."
    )


def test_what_a_second_reading_changed_is_counted_and_told(tmp_path: Path) -> None:
    changed = RIGHT + '\nreread = "It had been averaged over all buffers."'
    found = [judged(tmp_path, "one", "Fig. 1", changed), judged(tmp_path, "two", "Fig. 2", RIGHT)]
    pages = paper_pages(found, "docs/evidence")
    for name in ("claims.md", "papers/bless2025.md"):
        assert "1 of 8 claims were changed when they were read again" in pages[name]
    assert "Read again: It had been averaged over all buffers." in pages["papers/bless2025.md"]
    rows = list(csv.DictReader(io.StringIO(pages["claims.csv"])))
    assert [bool(row["reread"]) for row in rows] == [False, True, *[False] * 6]


def test_all_verdicts_are_rows_of_a_table(tmp_path: Path) -> None:
    pages = paper_pages([judged(tmp_path, "one", "Fig. 1", RIGHT)], "docs/evidence")
    rows = list(csv.DictReader(io.StringIO(pages["claims.csv"])))
    assert [row["verdict"] for row in rows] == [
        "reproduced", "contradicted", "contradicted", "not testable here",
    ]  # fmt: skip
    assert [row["kind"] for row in rows] == ["printed", "printed", "target", "printed"]
    assert rows[1]["right_if"] == "shares were near one." and rows[1]["value"] == "0.5"
    assert "[bless2025](papers/bless2025.md)" in pages["claims.md"]
    assert "```{toctree}\n:hidden:\n\npapers/bless2025\n```" in pages["claims.md"]
    assert "| bless2025 | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 1 |" in pages["claims.md"]


def test_a_contradiction_without_right_if_is_named(tmp_path: Path) -> None:
    require_right_if([judged(tmp_path, "one", "Fig. 1", RIGHT)])
    with pytest.raises(UserError, match=r"without right_if \(1\): .*two.toml: c1$"):
        require_right_if([judged(tmp_path, "two", "Fig. 1")])


def test_measured_points_come_with_fullpipe() -> None:
    """sarpkaya2025, Fig. 2: one BBRv1 flow at 1 BDP against CUBIC, as in the artifact."""
    [path] = [one for one in CATALOGUE if one.stem == "sarpkaya2025_fig2_share_bbr1"]
    entry = of_catalogue(path)
    points = points_of(entry, "full", ["sim"])
    found = observed_values(entry, points, ())["observed", "share", ""]
    assert {points[point].axes["panel"] for point in found} == {"a", "b", "c"}
    [first] = [
        value
        for point, value in found.items()
        if (points[point].axes["panel"], points[point].axes["n"], points[point].axes["buffer"])
        == ("a", 1, 1)
    ]
    assert first == pytest.approx(0.81407)


def test_the_command_writes_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry_of(tmp_path / "catalogue", claims("all(share > 0.1)"))
    monkeypatch.chdir(tmp_path)
    arguments = [
        "report",
        "--all",
        "--catalogue",
        "catalogue",
        "--store",
        "store",
        "--out",
        "a.html",
    ]
    assert command([*arguments, "--evidence", "evidence"], monkeypatch) == 0
    assert "not run" in (tmp_path / "evidence" / "papers" / "bless2025.md").read_text()
    assert (tmp_path / "evidence" / "claims.csv").read_text().count("\n") == 2


#: Two runs of twice the length with --full, one by default.
TWO_SIZES = """
[default]
repetitions = 1

[full]
repetitions = 2
scenario = { duration = "2s" }
"""


def test_short_runs_stand_in_until_the_papers_size_has_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = entry_of(tmp_path / "catalogue", claims("all(share > 0.1)") + TWO_SIZES)
    monkeypatch.chdir(tmp_path)
    where = ["--catalogue", "catalogue", "--store", "store"]
    pages = ["report", "small", *where, "--full", "--or-short", "--evidence", "evidence"]
    page = tmp_path / "evidence" / "papers" / "bless2025.md"
    cells = len(entry.cells("full"))
    for size, says in (
        ((), f"1 run of each of {cells} cells, short size"),
        (("--full",), f"2 runs of each of {cells} cells, the paper's size"),
    ):
        assert command(["run", "small", *where, *size, "--once", "--jobs", "1"], monkeypatch) == 0
        assert command(pages, monkeypatch) == 0
        assert says in page.read_text(encoding="utf-8")
    assert command([*pages[:6], "--or-short"], monkeypatch) == 2
