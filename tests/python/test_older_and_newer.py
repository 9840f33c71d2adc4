"""Recordings of the first builds of 0.1 open and say what today's say; what a later program wrote
is refused with a clear message, and nothing is changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fullpipe import cli
from fullpipe.base.errors import UserError
from fullpipe.engines.runner import run_scenario
from fullpipe.metrics import summarise
from fullpipe.recording.recording import TABLES, Recording
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.store import Store
from sweep_files import filled, sweep

#: Keys of a plan of November 2026's first builds, whose path was one wire and no row of links, and
#: whose flows named neither routes nor hosts.
PLAN = ("name", "seed", "duration_ns", "sample_interval_ns", "path", "flows", "probes", "host")
FLOW = (
    "name", "cc", "start_ns", "stop_ns", "amount_bytes", "app_rate_bps", "direction",
    "forward_delay_ns", "reverse_delay_ns", "jitter", "receive_window_bytes", "ecn",
)  # fmt: skip
PROBE = ("name", "kind", "interval_ns", "start_ns")
METADATA = (
    "engine", "fullpipe_version", "git_commit", "python", "seed", "warmup_ns", "constants",
    "health", "interrupted", "failure",
)  # fmt: skip
SCENARIO = """
duration = "3s"
warmup = "1s"
[path]
rate = "10mbit"
rtt = "20ms"
buffer = "1bdp"
[[flow]]
cc = "bbr3"
[[flow]]
cc = "cubic"
direction = "down"
[[probe]]
kind = "ping"
"""


def run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit status of the command line."""
    monkeypatch.setattr("sys.argv", ["fullpipe", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    place = tmp_path_factory.mktemp("recording") / "today"
    document = {
        "duration": "3s", "warmup": "1s", "path": {"rate": "10mbit", "rtt": "20ms"},
        "flow": [{"cc": "bbr3"}, {"cc": "cubic", "direction": "down"}],
        "probe": [{"kind": "ping"}],
    }  # fmt: skip
    return run_scenario(make_scenario(document), SCENARIO, [place], "sim", jobs=1).recordings[0]


@pytest.fixture
def old(today: Recording, tmp_path: Path) -> Path:
    """The same run as the first builds laid it down: what they knew, in their files."""
    place = tmp_path / "old"
    place.mkdir()
    known = today.metadata
    flows = [{key: flow[key] for key in FLOW} for flow in known["plan"]["flows"]]
    probes = [{key: probe[key] for key in PROBE} for probe in known["plan"]["probes"]]
    plan = {key: known["plan"][key] for key in PLAN} | {"flows": flows, "probes": probes}
    plan["host"] = {k: v for k, v in plan["host"].items() if k != "receive_low_water_bytes"}
    about = {key: known[key] for key in METADATA} | {"format_version": 1, "plan": plan}
    (place / "metadata.json").write_text(json.dumps(about, indent=1, sort_keys=True) + "\n")
    (place / "scenario.toml").write_text(SCENARIO)
    for name in TABLES:
        pq.write_table(today.table(name), place / f"{name}.parquet", compression="zstd")
    return place


def test_a_recording_of_the_first_builds_says_what_todays_does(today: Recording, old: Path) -> None:
    now, then = summarise(today), summarise(Recording.open(old))
    assert then["flows"] == now["flows"] and then["path"] == now["path"]
    assert [flow["goodput_bps"] > 1e6 for flow in then["flows"]] == [True, True]
    # A row of links was not known, nor, where the reverse direction limits, what did.
    assert then["links"] == []
    assert then["limit"].items() >= then["path"].items()
    assert {key for key in now if now[key] != then.get(key)} <= {"links", "limit", "recording"}


def test_a_recording_of_the_first_builds_is_reported(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "report.html"
    assert run(["report", str(old), "--out", str(page)], monkeypatch) == 0
    text = page.read_text(encoding="utf-8")
    assert "bbr3.1" in text and "cubic.1" in text


def test_a_recording_of_a_later_program_is_refused(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    about: dict[str, Any] = json.loads((old / "metadata.json").read_text())
    (old / "metadata.json").write_text(json.dumps({**about, "format_version": 2}))
    assert run(["report", str(old), "--out", str(tmp_path / "report.html")], monkeypatch) == 2
    message = capsys.readouterr().err
    assert "format_version is 2, this program reads 1" in message and "newer fullpipe" in message
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["query", "STORE", "select 1"], ["plot", "STORE", "--y", "share"],
        ["sweep", "FILE", "--out", "STORE"], ["sweep", "merge", "OTHER", "STORE"],
        ["sweep", "FILE", "--out", "STORE", "--dry-run"],
    ],
    ids=lambda words: " ".join(words),
)  # fmt: skip
def test_a_store_of_a_later_program_is_refused_and_left_as_it_is(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    axes = {"rtt": ["20ms"], "buffer": [1], "cc": ["bbr3"]}
    store, _ = filled(tmp_path / "store", sweep(axis=axes))
    (store.folder / "store.json").write_text('{"format": 3}')
    before = {path: path.stat().st_mtime_ns for path in store.folder.rglob("*")}
    file = tmp_path / "sweep.toml"
    file.write_text(
        '[scenario]\nduration = "2s"\npath = { rate = "{rate}", rtt = "10ms" }\n'
        'flow = [{ cc = "reno" }]\n[axis]\nrate = ["1mbit"]\n'
    )
    places = {"STORE": store.folder, "FILE": file, "OTHER": tmp_path / "other"}
    assert run([str(places.get(word, word)) for word in words], monkeypatch) == 2
    message = capsys.readouterr().err
    assert "store.json" in message and "format is 3, this program reads 2" in message
    assert {path: path.stat().st_mtime_ns for path in store.folder.rglob("*")} == before
    assert not (tmp_path / "other").exists()


def test_a_store_whose_runs_have_other_metrics_is_refused(tmp_path: Path) -> None:
    axes = {"rtt": ["20ms"], "buffer": [1], "cc": ["bbr3"]}
    store, _ = filled(tmp_path / "store", sweep(axis=axes))
    (store.folder / "store.json").write_text('{"format": 1, "fullpipe_version": "0.1.0"}')
    with pytest.raises(UserError, match="format is 1, this program reads 2; an older fullpipe"):
        Store(store.folder)
