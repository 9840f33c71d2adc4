"""Recordings become Flent files: what goes in comes out again, and what does not fit is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flent_documents import flent_document, write_document
from fullpipe.base.errors import UserError
from fullpipe.cli.app import app
from fullpipe.engines.runner import run_scenario
from fullpipe.flent import export_flent, import_flent, read_flent
from fullpipe.recording.recording import Recording
from fullpipe.scenario.model import make_scenario


def recorded(folder: Path, flows: list[dict[str, Any]], **more: Any) -> Recording:
    """A simulated recording of 6 s."""
    document = {
        "duration": "6s", "path": {"rate": "10mbit", "rtt": "20ms", "reverse_rate": "10mbit"},
        "flow": flows, "probe": [{"kind": "ping"}], **more,
    }  # fmt: skip
    return run_scenario(make_scenario(document), "", [folder]).recordings[0]


def rows(recording: Recording, table: str) -> list[dict[str, Any]]:
    """The rows of a table."""
    found: list[dict[str, Any]] = recording.table(table).to_pylist()
    return found


@pytest.mark.parametrize(
    ("flows", "test"),
    [
        ([{"cc": "bbr3"}], "tcp_1up"),
        ([{"cc": "bbr3", "direction": "down"}], "tcp_1down"),
        ([{"cc": "bbr3", "count": 3}, {"cc": "cubic", "start": "2s", "stop": "5s"}], "tcp_nup"),
        ([{"cc": "cubic"}, {"cc": "reno", "direction": "down"}], "rrul"),
        ([{"cc": "bbr3", "rtt": "20ms"}, {"cc": "bbr3", "rtt": "80ms", "name": "far"}], "rtt_fair"),
    ],
)
def test_an_export_read_back_carries_the_same_bytes_names_and_pings(
    flows: list[dict[str, Any]], test: str, tmp_path: Path
) -> None:
    recording = recorded(tmp_path / "recording", flows)
    assert export_flent(recording, tmp_path / "made.flent.gz").test == test
    file = read_flent(tmp_path / "made.flent.gz")
    assert file.test == test
    back = import_flent(file, tmp_path / "back")
    before, after = rows(recording, "flows"), rows(back, "flows")
    before.sort(key=lambda row: row["direction"] != "up")
    for ours, theirs in zip(before, after, strict=True):
        assert theirs["bytes_delivered"] == pytest.approx(ours["bytes_delivered"], abs=1)
        assert (theirs["cc"], theirs["direction"]) == (ours["cc"], ours["direction"])
        assert theirs["start_us"] == pytest.approx(ours["start_us"] + 5_000_000, abs=2)
    answers, read = (
        [row["rtt_us"] for row in rows(one, "ping_samples") if row["rtt_us"] is not None]
        for one in (recording, back)
    )
    assert read == pytest.approx(answers, abs=1)
    assert back.metadata["flent"]["warnings"] == []


PAGE = {"name": "news", "cc": "cubic", "levels": [["10KB"]], "interval": "1s"}
CALL = {"name": "call", "rate": "64kbit", "payload": "160B"}
VIDEO = {"name": "video", "rate": "500kbit", "frames": 25}


@pytest.mark.parametrize(
    ("senders", "test", "series"),
    [
        ({"flow": [{"cc": "cubic"}], "page": [PAGE], "udp": [CALL]}, "tcp_1up",
         {"TCP upload", "HTTP latency", "VoIP::delay"}),
        ({"flow": [], "page": [PAGE]}, "http", {"HTTP latency"}),
        ({"flow": [], "udp": [CALL, VIDEO]}, "voip", {"VoIP call::loss", "VoIP video::jitter"}),
    ],
)  # fmt: skip
def test_pages_and_streams_are_in_the_file_whatever_else_is(
    senders: dict[str, Any], test: str, series: set[str], tmp_path: Path
) -> None:
    recording = recorded(tmp_path / "recording", senders.pop("flow"), **senders)
    assert export_flent(recording, tmp_path / "made.flent.gz").test == test
    file = json.loads(gzip.decompress((tmp_path / "made.flent.gz").read_bytes()))
    assert series <= file["results"].keys()
    if "HTTP latency" in series:
        took = [point["val"] for point in file["raw_values"]["HTTP latency"]]
        loads = [row for row in rows(recording, "page_loads") if row["done_us"] is not None]
        expected = [(row["done_us"] - row["start_us"]) / 1e3 for row in loads]
        assert len(took) > 3 and took == pytest.approx(expected)


def test_what_no_test_of_flents_has_is_said(tmp_path: Path) -> None:
    group = {"name": "web", "cc": "reno", "load": 0.1, "sizes": "10KB"}
    recorded(tmp_path / "recording", [{"cc": "cubic"}], traffic=[group])
    done = CliRunner().invoke(
        app, ["flent", "export", str(tmp_path / "recording"), "-o", str(tmp_path / "x.flent.gz")]
    )
    assert done.exit_code == 0, done.output
    assert "left out, web" in " ".join(done.output.split())


def test_a_flent_file_imported_and_exported_keeps_its_totals(tmp_path: Path) -> None:
    first = read_flent(write_document(tmp_path / "first.flent.gz", flent_document()))
    recording = import_flent(first, tmp_path / "recording")
    export_flent(recording, tmp_path / "again.flent.gz")
    again = read_flent(tmp_path / "again.flent.gz")
    assert (again.test, again.title, again.t0) == (first.test, first.title, first.t0)
    for series in ("TCP upload::1", "TCP upload::2", "TCP upload sum"):
        mean = first.meta_number(series, "MEAN_VALUE")
        assert again.meta_number(series, "MEAN_VALUE") == pytest.approx(mean, rel=1e-9)


def test_on_the_grid_rates_add_up_to_the_bytes(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "recording", [{"cc": "cubic", "count": 2}])
    export_flent(recording, tmp_path / "made.flent.gz")
    file = read_flent(tmp_path / "made.flent.gz")
    for index, row in enumerate(rows(recording, "flows"), 1):
        values = file.results[f"TCP upload::{index}"]
        carried = sum(value for value in values if value == value) * 1e6 / 8 * 0.2
        assert carried == pytest.approx(row["bytes_delivered"], rel=1e-6)


def test_the_same_recording_gives_the_same_file(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "recording", [{"cc": "bbr3"}])
    for folder in ("one", "other"):
        export_flent(recording, tmp_path / folder / "made.flent.gz")
    one, other = ((tmp_path / name / "made.flent.gz").read_bytes() for name in ("one", "other"))
    assert one == other


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("tcp_3up", "--test tcp_3up: unknown; known are tcp_1up"),
        ("tcp_4up", "tcp_nup fits"),
        ("tcp_1down", "the recording has 0 flow"),
        ("rrul", "holds 4 flows in each direction"),
    ],
)
def test_a_test_that_does_not_fit_is_refused_with_one_that_does(
    test: str, message: str, tmp_path: Path
) -> None:
    recording = recorded(tmp_path / "recording", [{"cc": "reno", "count": 5}])
    with pytest.raises(UserError, match=message):
        export_flent(recording, tmp_path / "made.flent.gz", test)
    assert not (tmp_path / "made.flent.gz").exists()


def test_a_file_that_exists_is_not_touched(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "recording", [{"cc": "reno"}])
    (tmp_path / "made.flent.gz").write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        export_flent(recording, tmp_path / "made.flent.gz")
    assert (tmp_path / "made.flent.gz").read_text() == "mine"


def test_a_file_is_no_folder_for_exports(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "recording", [{"cc": "reno"}])
    file = tmp_path / "ok.toml"
    file.write_text("mine")
    words = ["flent", "export", str(recording.path), "--out", str(file)]
    answer = CliRunner().invoke(app, words)
    said = f"--out {file}: is a file; name a folder or NAME.flent.gz"
    assert isinstance(answer.exception, UserError) and str(answer.exception) == said
    for below in (file / "made.flent.gz", file / "folder" / "made.flent.gz"):
        with pytest.raises(UserError, match="a folder of its path is a file"):
            export_flent(recording, below)
    assert file.read_text() == "mine"
