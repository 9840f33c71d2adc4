"""The catalogue itself: every entry is sound, every figure has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiment_entries import CATALOGUE, PUBLISHED, of_catalogue
from fullpipe.plan.resolve import resolve
from repository_scripts import script

#: What the papers number: figures, tables.
NUMBERED = {
    "ahsan2025a": (set(range(1, 18)), {"1", "2", "3", "4"}),
    "ahsan2025b": (set(range(1, 9)), {"1", "2"}),
    "ahsan2026": (set(range(1, 34)), {"1", "2", "3", "4", "5", "6", "7"}),
    "sarpkaya2025": ({2, 3, 4, 5, 6}, set()),
    "bless2025": (set(range(1, 16)), {"I"}),
}


@pytest.mark.parametrize("path", CATALOGUE + PUBLISHED, ids=lambda path: str(path.stem))
def test_every_entry_is_read_and_validated_in_both_sizes(path: Path) -> None:
    entry = of_catalogue(path)
    assert entry.claim, "an entry without a claim judges nothing"
    assert bool(entry.cells("full")) == entry.runnable
    if entry.runnable:
        # --full is at least as large as what finishes in minutes.
        assert entry.repetitions_of("full") >= entry.repetitions_of("default")
        assert len(entry.cells("full")) >= len(entry.cells("default"))


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_figure_and_table_of_a_paper_has_an_entry(paper: str) -> None:
    figures, tables = set(), set()
    for entry in map(of_catalogue, CATALOGUE):
        if entry.paper == paper:
            for span in re.findall(r"Figs?\. ([\d, and to]+)", entry.figure):
                numbers = [int(number) for number in re.findall(r"\d+", span)]
                ends = re.findall(r"(\d+) to (\d+)", span)
                figures |= {*numbers, *(n for a, b in ends for n in range(int(a), int(b) + 1))}
            for names in re.findall(r"Tables? ([IVX\d, and]+)", entry.figure):
                tables |= set(re.findall(r"[IVX]+|\d+", names))
    wanted_figures, wanted_tables = NUMBERED[paper]
    assert wanted_figures <= figures
    assert wanted_tables <= tables


@pytest.mark.parametrize("path", CATALOGUE, ids=lambda path: str(path.stem))
def test_what_a_figure_shows_is_drawn(path: Path) -> None:
    entry = of_catalogue(path)
    assert entry.plot or not entry.runnable or "Fig" not in entry.figure


@pytest.mark.parametrize("path", CATALOGUE, ids=lambda path: str(path.stem))
def test_short_runs_last_as_long_as_a_papers_or_the_entry_says_so(path: Path) -> None:
    entry = of_catalogue(path)
    if entry.paper in NUMBERED and entry.runnable:
        short, whole = (
            {cell.scenario.duration for cell in entry.cells(s)} for s in ("default", "full")
        )
        assert short <= whole or "default" in entry.differs


@pytest.mark.parametrize("path", CATALOGUE, ids=lambda path: str(path.stem))
def test_what_runs_may_contradict_says_what_would_make_the_paper_right(path: Path) -> None:
    entry = of_catalogue(path)
    for claim in entry.claim:
        if entry.paper in NUMBERED and claim.check and claim.about != "simulator":
            told = claim.right_if or claim.unexplained
            assert told or claim.about == "arithmetic", claim.id


def test_the_bibliography_has_the_papers_of_the_catalogue_and_no_others() -> None:
    entries = [of_catalogue(path) for path in CATALOGUE + PUBLISHED]
    used = {entry.paper for entry in entries} - {"agreement"}
    page = (Path(__file__).parents[2] / "docs" / "background" / "papers.md").read_text()
    assert set(re.findall(r'<a id="(\w+)"></a>', page)) == used
    assert all(entry.id.startswith(entry.paper) for entry in entries)


def test_eight_works_of_others_have_a_hundred_figures() -> None:
    entries = [of_catalogue(path) for path in PUBLISHED]
    assert len({entry.paper for entry in entries}) >= 8
    assert sum(len(entry.claim) for entry in entries) >= 100


def test_half_of_the_figures_of_the_drawn_works_are_held_out_and_are_those_of_the_draw() -> None:
    entries = [of_catalogue(path) for path in PUBLISHED]
    draw = script("held_out")
    held_out = draw.drawn(entries)
    assert draw.marked(entries) == held_out
    figures = sum(len(entry.cells("full")) for entry in entries if entry.paper in draw.WORKS)
    assert len(held_out) == figures // 2


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: str(path.stem))
def test_a_figure_of_others_is_compared_by_the_rule_that_was_set_before_the_runs(
    path: Path,
) -> None:
    """The mean is within 0.05 of a share or Jain's index, or within a tenth of anything else."""
    rule = r"abs\((mean\(.*?\)) - ([\d.]+)\) <= (0\.05|0\.1 \* ([\d.]+))"
    for claim in of_catalogue(path).claim:
        found = re.fullmatch(rule, claim.check or "")
        assert found, f"{claim.id}: {claim.check}"
        value, number, bound, of = found.groups()
        assert claim.value == value
        assert claim.published.split()[0] == number
        assert (bound == "0.05") == value.startswith(("mean(share", "mean(jain"))
        assert of in (None, number)


def test_published_table_one_is_the_papers_48_ratios() -> None:
    (entry,) = (of_catalogue(path) for path in CATALOGUE if path.stem == "bless2025_table1")
    values = [value for published in entry.published for value in published.values]
    assert len(values) == 48
    # Row sums of the printed table, added by hand: 0.8, 1, 2 and 8 BDP.
    sums = {0.8: 3.51, 1.0: 3.57, 2.0: 4.65, 8.0: 6.08}
    for buffer, total in sums.items():
        row = [v for p in entry.published if p.at["buffer"] == buffer for v in p.values]
        assert sum(row) == pytest.approx(total)


def test_a_cell_of_a_paper_has_its_kernels_tcp_only_where_an_engine_has_none_of_its_own() -> None:
    (entry,) = (of_catalogue(p) for p in CATALOGUE if p.stem == "sarpkaya2025_fig3_share_bbr2")
    [cell, *_] = entry.cells("default")
    assert resolve(cell.on("sim").scenario)["host"]["tcp"] == "5.13"
    hosts = resolve(cell.on("vm").scenario)["host"]
    of_its_kernel = {"tcp", "gso_max_segments"}
    assert {k: v for k, v in hosts.items() if k not in of_its_kernel} == {
        k: v for k, v in resolve(cell.scenario)["host"].items() if k not in of_its_kernel
    }
    assert "tcp" not in hosts
    assert "tcp" not in cell.on("live").document["host"]
