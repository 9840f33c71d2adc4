"""Wherever a congestion control may be named, a file may be: named relative to the file that names
it, from any folder."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import fullpipe
from external_files import works
from fullpipe import cli
from fullpipe.base.errors import UserError
from fullpipe.congestion.registry import cc_set
from fullpipe.experiments.catalogue import load_entry
from fullpipe.hunt.finding_file import write_finding
from fullpipe.hunt.hunting import Hunt
from fullpipe.scenario.model import load_scenario
from fullpipe.scorecard.card import run_card
from fullpipe.scorecard.items import items
from fullpipe.sweep.store import Store

PATH = 'path = { rate = "5mbit", rtt = "{rtt}", buffer = "1bdp" }'
FLOW = '[[scenario.flow]]\ncc = "{cc}"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Holds mine.h; the program runs elsewhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "files").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    works(tmp_path / "files")
    return tmp_path / "files"


def test_a_sweep_names_a_file_relative_to_its_own(folder: Path) -> None:
    (folder / "sweep.toml").write_text(
        f'[scenario]\nduration = "6s"\n{PATH}\n{FLOW}'
        '[axis]\nrtt = ["10ms"]\ncc = ["./mine.h", "./mine.h[beta=0.85]", "reno"]\n'
    )
    store = fullpipe.run_sweep("../files/sweep.toml", out="store")
    rows = store.query("select flow_cc as cc, goodput_bps from flows").to_pydict()
    found = dict(zip(rows["cc"], rows["goodput_bps"], strict=True))
    assert set(found) == {"mine", "mine[beta=0.85]", "reno"}
    assert found["mine"] == found["reno"]


def test_workers_look_where_the_caches_are_now(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "mine.h").open("a") as file:
        file.write("/* not what another test has compiled */\n")
    sweep = {
        "scenario": {"duration": "6s", "path": {"rate": "5mbit", "rtt": "{rtt}"},
                     "flow": [{"cc": str(folder / "mine.h")}]},
        "axis": {"rtt": ["10ms", "20ms"]},
    }  # fmt: skip
    for name in ("cache", "another"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        store = fullpipe.run_sweep(sweep, out=name, jobs=2)
        assert store.query("select count(*) as n from flows").to_pydict() == {"n": [2]}
        shutil.rmtree(tmp_path / name)


def test_an_experiment_names_a_file_relative_to_its_own(folder: Path) -> None:
    (folder / "mine_entry.toml").write_text(
        f'title = "mine"\nengines = ["sim"]\n[scenario]\nduration = "6s"\n{PATH}\n{FLOW}'
        '[[grid]]\nrtt = ["10ms"]\ncc = ["./mine.h", "cubic"]\n'
    )
    cells = load_entry(folder / "mine_entry.toml").cells("default")
    assert [cell.axes["cc"] for cell in cells] == ["./mine.h", "cubic"]
    assert cells[0].scenario.flow[0].cc == str(folder / "mine.h")


@pytest.mark.slow
def test_scorecard_and_hunt_take_a_file_with_constants(folder: Path, tmp_path: Path) -> None:
    mine, plain = "../files/mine.h[beta=0.85]", "../files/mine.h"
    chosen = [item for item in items() if item.id == "rfc9743-5.1.2"]
    card = run_card(mine, [plain, "reno"], chosen, Store(Path("store"), create=True), quick=True)
    delay = {name: one["value"] for name, one in
             card["items"][0]["measures"][0]["subjects"].items()}  # fmt: skip
    assert delay["mine"] == delay["reno"] < delay["mine[beta=0.85]"]
    (found, *_) = Hunt(mine, "loss", 1, 100_000).run(["reno"])
    left = write_finding(tmp_path, "found", mine, "loss", found, "Found")
    assert load_scenario(left).flow[0].cc == f"{folder}/mine.h[beta=0.85]"


def test_python_takes_a_path_or_a_name(folder: Path) -> None:
    runs = fullpipe.run({
        "duration": "6s", "path": {"rate": "5mbit", "rtt": "20ms"},
        "flow": [{"cc": "../files/mine.h"}, {"cc": str(folder / "mine.h")}],
    })  # fmt: skip
    goodputs = runs.metrics("flows")["goodput_bps"].to_pylist()
    assert len(goodputs) == 2 and min(goodputs) > 1e6


def test_two_files_of_one_name_stand_side_by_side_in_a_comparison(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder, "other")
    mine = Path("other/mine.h")
    mine.write_text(mine.read_text().replace("CC_RATIO(1, 2)", "CC_RATIO(9, 10)"))
    words = ["compare", "../files/mine.h", "other/mine.h", "--rate", "5mbit", "--rtt", "20ms"]
    words += ["--duration", "12s", "--warmup", "4s", "--repeat", "1", "--out", "out", "--json"]
    monkeypatch.setattr(sys, "argv", ["fullpipe", *words])
    with suppress(SystemExit):
        cli.main()
    runs = json.loads(capsys.readouterr().out)["runs"]
    first, second = (runs[name][0]["path"] for name in ("../files/mine.h", "other/mine.h"))
    assert first != second
    assert len([place for place in Path("out").iterdir() if place.is_dir()]) == 2


def test_a_cache_that_cannot_be_written_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"file/fullpipe/cc: .*mine\.h.*XDG_CACHE_HOME"):
        cc_set(str(folder / "mine.h"))
