"""A paper's experiment with another algorithm beside the paper's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from experiment_entries import CATALOGUE, SMALL, command, entry_of, of_catalogue
from fullpipe.base.errors import UserError
from fullpipe.experiments.own_algorithm import with_algorithm

AIMD = str(Path(__file__).parents[2] / "examples" / "cc" / "aimd.h")


def catalogued(name: str) -> Path:
    return next(path for path in CATALOGUE if path.stem == name)


def test_an_axis_of_algorithms_gets_one_more() -> None:
    entry = of_catalogue(catalogued("ahsan2026_fig18_random_loss"))
    both = with_algorithm(entry, "reno")
    cells = both.cells("default")
    assert len(cells) == len(entry.cells("default")) * 4 // 3
    assert {cell.axes["cc"] for cell in cells} == {"bbr3-linux", "bbrnplus", "cubic", "reno"}
    for cell in cells:
        assert cell.document["flow"][0]["cc"] == cell.axes["cc"]
    # The paper's cells stay as they are, so that their runs are found again.
    own = [cell.document | {"name": ""} for cell in cells if cell.axes["cc"] != "reno"]
    assert own == [cell.document | {"name": ""} for cell in entry.cells("default")]
    assert both.claim == [] and both.published == entry.published


def test_an_algorithm_that_the_paper_has_adds_no_cell() -> None:
    entry = of_catalogue(catalogued("ahsan2026_fig18_random_loss"))
    cells = with_algorithm(entry, "cubic").cells("default")
    assert [cell.axes for cell in cells] == [cell.axes for cell in entry.cells("default")]


def test_a_papers_only_algorithm_gets_another_beside_it() -> None:
    entry = of_catalogue(catalogued("ahsan2025b_fig7_fairness"))
    both = with_algorithm(entry, AIMD)
    cells = both.cells("default")
    assert len(cells) == 2 * len(entry.cells("default"))
    for cell in cells:
        first, second = cell.document["flow"]
        is_own = cell.axes["algorithm"] == "aimd"
        assert (first["cc"], second["cc"]) == (AIMD if is_own else "bbr3-linux", "cubic")
    assert both.metric["share"].value == "share('{algorithm.label}')"
    assert both.metric["within_cubic"].value == "jain('cubic')"
    assert all("algorithm" in plot.by for plot in both.plot)
    assert both.published[0].at == {"algorithm": "bbr3-linux"}, "the paper's numbers are its own"


def test_a_files_path_is_relative_to_the_callers_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(AIMD, tmp_path / "mine.h")
    monkeypatch.chdir(tmp_path)
    entry = of_catalogue(catalogued("ahsan2025b_fig7_fairness"))
    cells = with_algorithm(entry, "./mine.h").cells("default")
    files = {cell.document["flow"][0]["cc"] for cell in cells}
    assert files == {"bbr3-linux", str(tmp_path / "mine.h")}


def test_pairs_of_algorithms_are_refused() -> None:
    entry = of_catalogue(catalogued("ahsan2025a_fig15_rtt_fairness"))
    with pytest.raises(UserError, match=r"fig15_rtt_fairness.toml: --cc: .*\{pair.one\}"):
        with_algorithm(entry, "reno")
    with pytest.raises(UserError, match="unknown congestion control 'ren'"):
        with_algorithm(entry, "ren")


def test_a_file_runs_beside_the_papers_algorithm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = SMALL.replace('cc = "cubic"', 'cc = "bbr1"').replace("rtt = [10, 20]", "rtt = [10]")
    entry_of(tmp_path / "catalogue", one.replace("rate = [2, 4]", "rate = [4]"))
    where = ["--catalogue", str(tmp_path / "catalogue"), "--store", str(tmp_path / "store")]
    page = tmp_path / "page.html"
    run = ["run", "small", *where, "--cc", AIMD, "--jobs", "1", "--out", str(page)]
    assert command(run, monkeypatch) == 0
    said = capsys.readouterr()
    assert "aimd" in said.out and "bbr1" in said.out and "4 runs" in said.err
    assert "aimd" in page.read_text(encoding="utf-8")
    assert command([*run, "--confirm"], monkeypatch) == 2
