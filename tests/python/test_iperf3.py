"""Results of iperf3 --json as recordings."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fullpipe.cli.app import app
from fullpipe.flent.container import FlentError
from fullpipe.flent.iperf3 import described, import_iperf3, is_iperf3, read_iperf3


def stream(socket: int, start: float, **more: Any) -> dict[str, Any]:
    return {
        "socket": socket, "start": start, "end": start + 1, "bytes": 1_000_000, "retransmits": 2,
        "snd_cwnd": 144_800, "rtt": 40_000, **more,
    }  # fmt: skip


def result(**changes: Any) -> dict[str, Any]:
    """Two streams for three seconds, of which 2.9 MB and 2.8 MB arrived."""
    ends = [
        {"sender": {"socket": socket, "bytes": 3_000_000},
         "receiver": {"socket": socket, "bytes": total}}
        for socket, total in ((5, 2_900_000), (7, 2_800_000))
    ]  # fmt: skip
    return {
        "start": {
            "version": "iperf 3.16", "tcp_mss_default": 1448, "timestamp": {"timesecs": 17},
            "test_start": {"protocol": "TCP", "num_streams": 2, "reverse": 0},
        },
        "intervals": [
            {"streams": [stream(5, at), stream(7, at)]} for at in range(3)
        ],
        "end": {"streams": ends, "sender_tcp_congestion": "cubic"},
        **changes,
    }  # fmt: skip


def written(folder: Path, document: Any) -> Path:
    path = folder / "result.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_a_recording_has_bytes_windows_rtts_and_retransmissions_over_time(tmp_path: Path) -> None:
    file = read_iperf3(written(tmp_path, result()))
    recording = import_iperf3(file, tmp_path / "out")
    flows = recording.table("flows").to_pylist()
    assert [row["bytes_delivered"] for row in flows] == [2_900_000, 2_800_000]
    assert {(row["cc"], row["direction"], row["packets_retransmitted"]) for row in flows} == {
        ("kernel:cubic", "up", 6)
    }
    samples = [row for row in recording.table("flow_samples").to_pylist() if row["flow_id"] == 0]
    assert [row["t_us"] for row in samples] == [1_000_000, 2_000_000, 3_000_000]
    assert [row["bytes_delivered"] for row in samples] == [1_000_000, 2_000_000, 2_900_000]
    assert [row["packets_retransmitted"] for row in samples] == [2, 4, 6]
    assert {(row["cwnd_packets"], row["srtt_us"]) for row in samples} == {(100, 40_000)}


def test_in_reverse_the_flows_are_downloads_without_the_senders_numbers(tmp_path: Path) -> None:
    document = result()
    document["start"]["test_start"]["reverse"] = 1
    for interval in document["intervals"]:
        for piece in interval["streams"]:
            for key in ("retransmits", "snd_cwnd", "rtt"):
                del piece[key]
    file = read_iperf3(written(tmp_path, document))
    recording = import_iperf3(file, tmp_path / "out")
    assert {row["direction"] for row in recording.table("flows").to_pylist()} == {"down"}
    assert recording.table("flow_samples")["srtt_us"].null_count == 6
    assert described(file) == "2 down 15.20 Mbit/s"


@pytest.mark.parametrize("sends", [True, False])
def test_in_a_servers_file_uploads_are_what_it_receives(sends: bool, tmp_path: Path) -> None:
    document = result()
    document["start"]["accepted_connection"] = {"host": "10.0.0.1", "port": 40738}
    document["start"]["test_start"]["reverse"] = int(sends)
    for interval in document["intervals"]:
        for piece in interval["streams"]:
            piece["sender"] = sends
    file = read_iperf3(written(tmp_path, document))
    assert [file.direction(socket) for socket in file.streams] == 2 * ["down" if sends else "up"]


def test_events_of_a_stream_make_up_the_same_result_even_when_cut_off(tmp_path: Path) -> None:
    document = result()
    parts = [("start", document["start"]), *(("interval", one) for one in document["intervals"])]
    lines = [json.dumps({"event": name, "data": data}) for name, data in parts]
    end = json.dumps({"event": "end", "data": document["end"]})
    whole = read_iperf3(written(tmp_path, "\n".join([*lines, end])))
    assert whole.streams == read_iperf3(written(tmp_path, document)).streams
    assert whole.total_bytes(5) == 2_900_000
    cut = read_iperf3(written(tmp_path, "\n".join([*lines, end[:40]])))
    assert cut.total_bytes(5) == 3_000_000
    assert import_iperf3(cut, tmp_path / "cut").metadata["interrupted"]


def test_several_results_in_a_file_are_refused_by_line(tmp_path: Path) -> None:
    text = json.dumps(result())
    with pytest.raises(FlentError, match="line 2: another iperf3 result begins"):
        read_iperf3(written(tmp_path, f"{text}\n{text}"))
    start = json.dumps({"event": "start", "data": result()["start"]})
    with pytest.raises(FlentError, match="line 3: another iperf3 result begins"):
        read_iperf3(written(tmp_path, f"{start}\n\n{start}"))


def test_what_was_omitted_does_not_count(tmp_path: Path) -> None:
    document = result(end={})
    for piece in document["intervals"][0]["streams"]:
        piece["omitted"] = True
    file = read_iperf3(written(tmp_path, document))
    assert file.total_bytes(5) == 2_000_000


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ('{"start": ', "no whole iperf3 result: its JSON is damaged"),
        (result(intervals=[]), "0 streams"),
        (result(error="unable to connect", intervals=[]), "did not run; iperf3 says: unable"),
        (result(start={"test_start": {"protocol": "UDP"}}), "is an iperf3 result of a test of UDP"),
        (result(intervals=[{"streams": [stream(5, -2.0)]}]), "intervals"),
        ({"start": 3}, "no whole iperf3 result"),
    ],
)
def test_damaged_files_are_refused_by_name(document: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(FlentError, match=f"result.json.*{why}"):
        read_iperf3(written(tmp_path, document))


def test_the_command_imports_them_and_report_draws_them(tmp_path: Path) -> None:
    path = written(tmp_path, result())
    out = tmp_path / "recordings"
    answer = CliRunner().invoke(app, ["flent", "import", str(path), "-o", str(out)])
    assert answer.exit_code == 0 and "2 up 15.20 Mbit/s" in answer.output
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(app, ["report", str(out / "result"), "--out", str(page), "--light"])
    assert shown.exit_code == 0 and page.stat().st_size > 10_000


@pytest.mark.parametrize("name", ["title", "sorted", "UTF-16", "gzip", "prompt", "CRLF and a mark"])
def test_a_result_is_read_however_it_was_saved(name: str, tmp_path: Path) -> None:
    document = {"end": {}, "intervals": result()["intervals"], "start": result()["start"]}
    document["start"]["connected"] = [{"socket": 5}, {"socket": 7}]
    text = json.dumps(document, indent=1)
    content = {
        "title": json.dumps({"title": "evening", "extra_data": "x", **document}).encode(),
        "sorted": text.encode(),
        "UTF-16": text.encode("utf-16"),  # PowerShell's `iperf3 --json > file`
        "gzip": gzip.compress(text.encode()),
        "prompt": f"$ iperf3 -c host --json\n{text}\n$ ".encode(),
        "CRLF and a mark": ("\ufeff" + text.replace("\n", "\r\n")).encode(),
    }[name]
    path = tmp_path / "result"
    path.write_bytes(content)
    assert is_iperf3(path)
    assert sum(len(pieces) for pieces in read_iperf3(path).streams.values()) == 6


def test_a_test_that_was_interrupted_is_read_and_said_to_be(tmp_path: Path) -> None:
    why = "interrupt - the client has terminated by signal Interrupt(2)"
    file = read_iperf3(written(tmp_path, result(error=why, end={"streams": []})))
    assert file.total_bytes(5) == 3_000_000
    assert "ended early (iperf3 says: interrupt" in described(file)
    assert import_iperf3(file, tmp_path / "out").metadata["interrupted"]


def test_a_test_in_both_directions_has_flows_up_and_down(tmp_path: Path) -> None:
    document = result()
    document["start"]["test_start"]["bidir"] = 1
    for interval in document["intervals"]:
        for piece, sends in zip(interval["streams"], (True, False), strict=True):
            piece["sender"] = sends
    file = read_iperf3(written(tmp_path, document))
    assert (file.direction(5), file.direction(7)) == ("up", "down")
