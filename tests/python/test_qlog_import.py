"""qlog files of QUIC stacks as recordings: each form that drafts had, sums by hand, and damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fullpipe.cli.app import app
from fullpipe.flent import qlog
from fullpipe.flent.container import FlentError
from fullpipe.flent.qlog import import_qlog, is_qlog, read_qlog

#: Packets of 1250 bytes, one each ms; every second one causes an ACK of all until 40 ms ago.
SENT, RTT_MS = 2000, 40


def events() -> list[tuple[float, str, dict[str, Any]]]:
    found: list[tuple[float, str, dict[str, Any]]] = []
    for number in range(SENT):
        header = {"packet_type": "1RTT", "packet_number": number}
        sent = {"header": header, "raw": {"length": 1250}, "frames": [{"frame_type": "stream"}]}
        found.append((number, "transport:packet_sent", sent))
        if number >= RTT_MS and number % 2 == 0:
            ack = {"frame_type": "ack", "acked_ranges": [[0, 9], [12, number - RTT_MS]]}
            received = {"header": header, "raw": {"length": 40}, "frames": [ack]}
            found.append((number, "transport:packet_received", received))
            metrics = {"smoothed_rtt": 40.5, "min_rtt": 40.0, "congestion_window": 50000}
            found.append((number, "recovery:metrics_updated", metrics))
        if number == 60:
            for lost in (10, 11):
                gone = {"header": {"packet_type": "1RTT", "packet_number": lost}}
                found.append((number, "recovery:packet_lost", gone))
    return found


def named(prefix: str = "") -> list[dict[str, Any]]:
    return [
        {"time": at, "name": f"{prefix}:{name.partition(':')[2]}" if prefix else name, "data": data}
        for at, name, data in events()
    ]


def as_json(**common: Any) -> str:
    trace = {"vantage_point": {"type": "server"}, "common_fields": common, "events": named()}
    return json.dumps({"qlog_version": "0.3", "qlog_format": "JSON", "traces": [trace]})


def as_deltas() -> str:
    document = json.loads(as_json(time_format="delta"))
    last = 0.0
    for event in document["traces"][0]["events"]:
        event["time"], last = event["time"] - last, event["time"]
    return json.dumps(document)


def as_records(separator: str) -> str:
    header = {"file_schema": "urn:ietf:params:qlog:file:sequential", "trace": {"title": "a"}}
    return "".join(f"{separator}{json.dumps(one)}\n" for one in (header, *named("quic")))


def as_arrays() -> str:
    """As picoquic writes: arrays, microseconds, its own names."""
    rows = []
    for at, name, data in events():
        category, _, event = name.partition(":")
        if "raw" in data:
            header = {**data["header"], "packet_size": data["raw"]["length"]}
            data = {"packet_type": "1RTT", "frames": data["frames"], "header": header}
        elif "smoothed_rtt" in data:
            data = {"cwnd": 50000, "smoothed_rtt": 40500, "min_rtt": 40000}
        rows.append([at * 1000, 0, category, event, data])
    fields = ["relative_time", "path_id", "category", "event", "data"]
    trace = {"configuration": {"time_units": "us"}, "events": rows, "event_fields": fields}
    return json.dumps({"qlog_version": "draft-00", "traces": [trace]})


FORMS = {
    "JSON": as_json(time_format="relative"), "deltas": as_deltas(), "lines": as_records(""),
    "JSON-SEQ": as_records("\x1e"), "arrays": as_arrays(), "a mark": "\ufeff" + as_json(),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_same_bytes_rtts_windows_and_losses(form: str, tmp_path: Path) -> None:
    path = tmp_path / "any.name"
    path.write_text(FORMS[form], encoding="utf-8")
    assert is_qlog(path)
    recording = import_qlog(read_qlog(path), tmp_path / "out")
    (flow,) = recording.table("flows").to_pylist()
    # All up to the last ACK's range, but for the two that were lost.
    acknowledged = 1250 * (SENT - 2 - RTT_MS + 1 - 2)
    assert (flow["bytes_delivered"], flow["direction"]) == (acknowledged, "up")
    assert (flow["packets_lost"], flow["packets_sent"]) == (2, SENT)
    last = recording.table("flow_samples").to_pylist()[-1]
    assert (last["srtt_us"], last["min_rtt_us"], last["cwnd_packets"]) == (40_500, 40_000, 40)
    assert (last["t_us"], last["bytes_delivered"]) == ((SENT - 1) * 1000, acknowledged)


def test_a_receivers_file_counts_what_it_received(tmp_path: Path) -> None:
    path = tmp_path / "client.qlog"
    received = [{**one, "name": "quic:packet_received"} for one in named() if "sent" in one["name"]]
    path.write_text(json.dumps({"qlog_version": "0.4", "traces": [{"events": received}]}))
    file = read_qlog(path)
    assert file.direction == "down"
    assert file.delivered(file.samples[-1][1]) == 1250 * SENT


def test_a_file_of_metrics_alone_says_nothing_of_bytes_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "metrics.qlog"
    alone = [one for one in named() if "metrics" in one["name"]]
    path.write_text(json.dumps({"qlog_version": "0.4", "traces": [{"events": alone}]}))
    out = tmp_path / "out"
    imported = CliRunner().invoke(app, ["flent", "import", str(path), "--out", str(out)])
    assert imported.exit_code == 0
    assert "no bytes" in imported.output
    page = ["report", str(out / "metrics"), "--out", str(tmp_path / "page.html")]
    assert CliRunner().invoke(app, page, catch_exceptions=False).exit_code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"qlog_version": "0.3", "traces": []}', "0 traces with events"),
        ('{"qlog_version": "0.3", "traces": [{"events": [{"time": "x"}]}]}', "no whole qlog"),
        ('{"qlog_version": "0.3", "trace": {}}', "has no event"),
        ('{"qlog_version": "0.3", ', "no whole qlog"),
    ],
)
def test_a_damaged_file_is_refused_by_name(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.qlog"
    path.write_text(text)
    with pytest.raises(FlentError, match=words) as refused:
        read_qlog(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("time", ["NaN", "Infinity", "1e300"])
def test_a_time_that_no_connection_has_is_refused(time: str, tmp_path: Path) -> None:
    first = '{"time": 0, "name": "metrics_updated", "data": {"congestion_window": 12000}}'
    path = tmp_path / "bad.qlog"
    path.write_text(
        f'{{"qlog_version": "0.3", "traces": [{{"events": [{first}, {{"time": {time}}}]}}]}}'
    )
    with pytest.raises(FlentError, match="no time of a connection"):
        read_qlog(path)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(-5, 70), st.integers(-5, 70))))
def test_bytes_of_a_packet_count_once_whatever_ranges_acknowledge_it(
    steps: list[tuple[int, int, int]],
) -> None:
    packets, open_ = qlog._Open(), dict[int, int]()
    for number, low, high in steps:
        packets.add(number, number + 1)
        open_[number] = number + 1
        within = [one for one in open_ if low <= one <= high]
        assert packets.acknowledge(low, high) == sum(open_.pop(one) for one in within)
