"""A store of several sweeps shows one of them: the newest, or the one that is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fullpipe.api.stores import SweepResults
from fullpipe.base.errors import UserError
from fullpipe.cli.app import app
from fullpipe.serve import cells
from fullpipe.sweep.chart import Request, make_chart, run_values
from fullpipe.sweep.file import Sweep, read_sweep
from fullpipe.sweep.listing import Listed, chosen
from fullpipe.sweep.merging import merge
from fullpipe.sweep.query import ask
from fullpipe.sweep.store import Store
from sweep_files import filled


def _at(rate: str, source: str = "line.toml") -> Sweep:
    """Two RTTs with two seeds, as a user edits them: with another rate of the line."""
    path = {"rate": rate, "rtt": "{rtt}", "buffer": "1bdp"}
    scenario = {"duration": "1s", "warmup": "0s", "path": path, "flow": [{"cc": "reno"}]}
    axis = {"rtt": ["10ms", "20ms"]}
    return read_sweep({"scenario": scenario, "axis": axis, "sweep": {"seeds": 2}}, source)


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A sweep at 4 Mbit/s, and the same file at 8 Mbit/s, which is the newest."""
    folder = tmp_path_factory.mktemp("edited") / "store"
    filled(folder, _at("4mbit"))
    return filled(folder, _at("8mbit"))[0]


def _means(store: Store, sweep: str | None = None) -> list[float]:
    found = ask(store, "select goodput_bps from runs", sweep=sweep)
    return sorted(found["goodput_bps"].to_pylist())


def test_what_a_user_changed_is_not_mixed_with_what_was_there(edited: Store) -> None:
    older, newer = (one.id for one in edited.listing())
    assert _means(edited) == _means(edited, newer)
    assert len(_means(edited)) == 4 and min(_means(edited)) > max(_means(edited, older))
    assert len(_means(edited, "all")) == 8
    values, _ = run_values(edited, "goodput_bps", ["rtt"])
    assert len(values) == 4 and min(values) > max(_means(edited, older))
    (line,) = make_chart(edited, Request("goodput_bps", "rtt")).panels[0].traces
    assert line.y.min() * 1e6 > max(_means(edited, older))
    chart = make_chart(edited, Request("goodput_bps", "rtt", sweep=older))
    assert chart.note.startswith("means of 2 runs")
    assert cells.state(edited.folder)["asked"] == cells.state(edited.folder, older)["asked"] == 4
    assert cells.cell(edited.folder, {"rtt": "20ms"})["alike"] == 1


def test_a_result_shows_its_own_sweep_whatever_is_asked_for_later(tmp_path: Path) -> None:
    store, first = filled(tmp_path / "store", _at("4mbit"))
    mine = SweepResults(store.folder, first.sweep)
    opened = SweepResults(store.folder)
    before = mine.table("runs")
    _, second = filled(tmp_path / "store", _at("8mbit"))
    assert mine.table("runs").equals(before) and opened.table("runs").equals(before)
    assert SweepResults(store.folder).sweep == second.sweep
    assert list(mine.sweeps.items()) == [(first.sweep, "line"), (second.sweep, "line")]
    filled(tmp_path / "store", _at("4mbit"))
    assert SweepResults(store.folder).sweep == first.sweep, "it was asked for last"


@pytest.mark.parametrize(("clock_s", "of_list"), [(-1e6, True), (1e6, True), (1e6, False)])
def test_the_newest_is_the_one_that_was_asked_for_last_whatever_clocks_say(
    clock_s: float, of_list: bool, tmp_path: Path
) -> None:
    """Without the list, as in a store of an earlier program, the times of files decide."""
    store, first = filled(tmp_path / "store", _at("4mbit"))
    _, second = filled(tmp_path / "store", _at("8mbit"))
    file = store.sweep_files()[first.sweep]
    at_s = file.stat().st_mtime + clock_s
    os.utime(file, (at_s, at_s))
    if not of_list:
        (store.folder / "sweeps.json").unlink()
    newest = store.listing()[-1].id
    assert newest == (second.sweep if of_list else first.sweep)


def test_a_merged_store_has_the_names_and_the_order_of_its_source(
    edited: Store, tmp_path: Path
) -> None:
    merge(tmp_path / "copy", [edited.folder])
    assert Store(tmp_path / "copy").listing() == edited.listing()


def test_a_damaged_list_is_named_and_set_aside(tmp_path: Path) -> None:
    store, found = filled(tmp_path / "store", _at("4mbit"))
    file = store.folder / "sweeps.json"
    file.write_text(file.read_text().replace("line", "lime"))
    with pytest.raises(UserError, match=r"sweeps\.json: damaged"):
        ask(store, "select * from runs")
    assert [str(file) in said for said in store.mend()] == [True]
    assert [one.id for one in store.listing()] == [found.sweep]


LISTED = [Listed("aa11", "grid"), Listed("aa22", "other"), Listed("bb33", "grid")]


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (None, ["bb33"]), ("grid", ["bb33"]), ("other", ["aa22"]), ("aa11", ["aa11"]),
        ("all", ["aa11", "aa22", "bb33"]),
    ],
)  # fmt: skip
def test_a_sweep_is_named_by_its_name_or_its_id(wanted: str | None, ids: list[str]) -> None:
    assert [one.id for one in chosen(LISTED, wanted)] == ids


@pytest.mark.parametrize("wanted", ["aa", "zz", "", "GRID"])
def test_a_name_that_no_sweep_has_is_refused_with_those_that_there_are(wanted: str) -> None:
    said = r"grid \(bb33\), other \(aa22\), grid \(aa11\)"
    with pytest.raises(UserError, match=f"--sweep {wanted}: no such sweep here; there are {said}"):
        chosen(LISTED, wanted)


def test_the_first_characters_of_an_id_name_it_if_no_other_begins_so() -> None:
    listed = [Listed("abcdef0123456789", "one"), Listed("abcdee0123456789", "two")]
    assert chosen(listed, "abcdef") == listed[:1]
    with pytest.raises(UserError, match="no such sweep"):
        chosen(listed, "abcde")


@pytest.mark.parametrize(
    "words", [["query", "STORE", "select 1"], ["effects", "STORE", "--y", "share", "--of", "rtt"]]
)
def test_a_command_says_which_of_several_sweeps_it_shows(edited: Store, words: list[str]) -> None:
    given = [str(edited.folder) if word == "STORE" else word for word in words]
    older, newer = (one.id for one in edited.listing())
    said = " ".join(CliRunner().invoke(app, given).stderr.split())
    assert f"this is line ({newer}), the newest of 2 sweeps" in said and older in said
    assert "newest" not in CliRunner().invoke(app, [*given, "--sweep", older]).stderr
