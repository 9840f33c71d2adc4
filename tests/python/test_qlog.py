"""qlog files are read whole by the data model of another project, are as the drafts' schema says,
and count what the recording counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fullpipe.base.errors import UserError
from fullpipe.recording.recording import Recording
from fullpipe.report.qlog import write_qlog
from qlog_files import check_by_the_schema, events_of_the_model, records

SCENARIO = """
duration = "4s"
[path]
rate = "20mbit"
rtt = "40ms"
buffer = "0.5bdp"
loss = 0.002
[[flow]]
cc = "bbr3"
[[flow]]
cc = "cubic"
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, list[Path]]:
    folder = tmp_path_factory.mktemp("qlog")
    (folder / "contest.toml").write_text(SCENARIO)
    words = ["run", "contest.toml", "--pcap", "capture.pcap", "--out", "recorded", "--no-report"]
    command = [str(Path(sys.executable).with_name("fullpipe")), *words]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    recording = Recording.open(folder / "recorded")
    return recording, write_qlog(recording, folder / "qlog", folder / "capture.pcap")


def events(file: Path) -> list[dict[str, Any]]:
    """The records behind the header."""
    return records(file)[1:]


@pytest.mark.slow
def test_another_projects_reader_knows_every_event(
    recorded: tuple[Recording, list[Path]],
) -> None:
    for file in recorded[1]:
        found = events_of_the_model(file)
        assert found["RecoveryMetricsUpdated"] > 0
        assert sum(found.values()) == len(events(file))


@pytest.mark.slow
def test_every_record_is_as_the_drafts_schema_says(recorded: tuple[Recording, list[Path]]) -> None:
    for file in recorded[1]:
        check_by_the_schema(file)
        assert records(file)[0]["trace"]["common_fields"]["protocol_types"] == ["TCP"]


def test_packets_are_those_of_the_recording(recorded: tuple[Recording, list[Path]]) -> None:
    recording, files = recorded
    for flow, file in zip(recording.table("flows").to_pylist(), files, strict=True):
        found = events(file)
        sent = [one for one in found if one["name"] == "quic:packet_sent"]
        lost = [one for one in found if one["name"] == "quic:packet_lost"]
        acked = [one["data"]["packet_numbers"] for one in found if "acked" in one["name"]]
        assert len(sent) == flow["packets_sent"]
        assert len(lost) == flow["packets_retransmitted"]
        numbers = [number for some in acked for number in some]
        assert len(numbers) == len(set(numbers)) <= flow["packets_delivered"]
        assert (
            sum(one["data"]["frames"][0]["raw"]["payload_length"] for one in sent)
            >= flow["bytes_acked"]
        )


def test_metrics_end_with_the_last_sample(recorded: tuple[Recording, list[Path]]) -> None:
    recording, files = recorded
    samples = [one for one in recording.table("flow_samples").to_pylist() if one["flow_id"] == 1]
    state: dict[str, Any] = {}
    for event in events(files[1]):
        if event["name"] == "quic:recovery_metrics_updated":
            state |= event["data"]
    assert state["packets_in_flight"] == samples[-1]["inflight_packets"]
    assert state["smoothed_rtt"] == samples[-1]["srtt_us"] / 1e3
    mss = recording.table("flows")["mss_bytes"][1].as_py()
    assert state["congestion_window"] == samples[-1]["cwnd_packets"] * mss


def test_times_do_not_go_back_and_phases_are_the_algorithms(
    recorded: tuple[Recording, list[Path]],
) -> None:
    found = events(recorded[1][0])
    times = [one["time"] for one in found]
    assert times == sorted(times)
    states = [one["data"]["new"] for one in found if "congestion_state" in one["name"]]
    assert states[:2] == ["startup", "drain"]


def test_a_capture_of_something_else_is_refused(
    recorded: tuple[Recording, list[Path]], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="no capture"):
        write_qlog(recorded[0], tmp_path, Path(__file__))


def qlog(recording: Recording, *words: str) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("fullpipe"))
    return subprocess.run(
        [program, "qlog", str(recording.path), *words], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_capture_of_another_run_is_refused(
    recorded: tuple[Recording, list[Path]], tmp_path: Path
) -> None:
    others = {
        "other": SCENARIO.replace('rate = "20mbit"', 'rate = "10mbit"'),
        "fewer": SCENARIO.partition('[[flow]]\ncc = "cubic"')[0],
        "more": f'{SCENARIO}[[flow]]\ncc = "reno"\n',
    }
    captures = {}
    for name, scenario in others.items():
        (tmp_path / f"{name}.toml").write_text(scenario)
        captures[name] = tmp_path / f"{name}.pcap"
        words = ["run", f"{name}.toml", "--pcap", captures[name].name, "--out", name, "--no-report"]
        command = [str(Path(sys.executable).with_name("fullpipe")), *words]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    sent = recorded[0].table("flows")["packets_sent"].to_pylist()
    with pytest.raises(
        UserError, match=rf"other.pcap: is not this run's: flow bbr3.\S* sent {sent[0]} "
    ):
        write_qlog(recorded[0], tmp_path / "qlog", captures["other"])
    with pytest.raises(UserError, match=r"fewer.pcap: is not this run's: flow \S+ sent"):
        write_qlog(recorded[0], tmp_path / "qlog", captures["fewer"])
    with pytest.raises(UserError, match="flow number 3, the run has 2 flows"):
        write_qlog(recorded[0], tmp_path / "qlog", captures["more"])
    assert not (tmp_path / "qlog").exists()


@pytest.mark.slow
def test_a_folder_is_only_replaced_with_force(
    recorded: tuple[Recording, list[Path]], tmp_path: Path
) -> None:
    out = tmp_path / "qlog"
    first = qlog(recorded[0], "--out", str(out))
    assert first.returncode == 0 and "2 files in" in first.stderr
    (out / "old.sqlog").write_text("of another recording")
    again = qlog(recorded[0], "--out", str(out))
    assert again.returncode == 2 and "--force" in again.stderr
    assert (out / "old.sqlog").exists()
    assert qlog(recorded[0], "--out", str(out), "--force").returncode == 0
    assert sorted(file.name for file in out.iterdir()) == sorted(one.name for one in recorded[1])
    (out / "thesis.tex").write_text("mine")
    refused = qlog(recorded[0], "--out", str(out), "--force")
    assert refused.returncode == 2 and "other files than .sqlog" in refused.stderr


def test_an_empty_capture_is_called_empty(
    recorded: tuple[Recording, list[Path]], tmp_path: Path
) -> None:
    empty = tmp_path / "empty.pcap"
    empty.touch()
    with pytest.raises(UserError, match=r"empty\.pcap: is empty"):
        write_qlog(recorded[0], tmp_path / "qlog", empty)
