"""The catalogue itself: every entry is sound, every figure has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiment_entries import CATALOGUE, PUBLISHED, of_catalogue
from fullpipe.plan.resolve import resolve

#: What the papers number: figures, tables.
NUMBERED = {"sarpkaya2025": ({2, 3, 4, 5, 6}, set()), "bless2025": (set(range(1, 16)), {"I"})}


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
            tables |= set(re.findall(r"Table ([IVX]+|\d+)", entry.figure))
    wanted_figures, wanted_tables = NUMBERED[paper]
    assert wanted_figures <= figures
    assert wanted_tables <= tables


def test_the_bibliography_has_the_papers_of_the_catalogue_and_no_others() -> None:
    entries = [of_catalogue(path) for path in CATALOGUE + PUBLISHED]
    used = {entry.paper for entry in entries} - {"agreement"}
    page = (Path(__file__).parents[2] / "docs" / "background" / "papers.md").read_text()
    assert set(re.findall(r'<a id="(\w+)"></a>', page)) == used
    assert all(entry.id.startswith(entry.paper) for entry in entries)


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
