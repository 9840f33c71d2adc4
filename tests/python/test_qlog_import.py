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
from fullpipe.flent.qlog import Qlog, import_qlog, is_qlog, read_qlogs

#: Packets of 1250 bytes, one each ms; every second one causes an ACK of all until 40 ms ago.
SENT, RTT_MS = 2000, 40


def events() -> list[tuple[float, str, dict[str, Any]]]:
    found: list[tuple[float, str, dict[str, Any]]] = []
    for number in range(SENT):
        header = {"packet_type": "1RTT", "packet_number": number}
        sent = {"header": header, "raw": {"length": 1250}, "frames": [{"frame_type": "stream"}]}
        found.append((number, "transport:packet_sent", sent))
        if number >= RTT_MS and number % 2 == 0:
            last = number - RTT_MS
            ranges = [[0, min(last, 9)], *([[12, last]] if last >= 12 else [])]
            ack = {"frame_type": "ack", "acked_ranges": ranges}
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


def only(path: Path) -> Qlog:
    (file,) = read_qlogs(path)
    return file


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


def as_quic_trace() -> str:
    """As quictrace-to-qlog writes: draft 00 in capitals, with numbers as text."""
    document = json.loads(as_arrays())
    trace = document["traces"][0]
    trace["event_fields"] = ["relative_time", "PATH", "CATEGORY", "EVENT_TYPE", "DATA"]
    for row in trace["events"]:
        row[0], row[2], row[3] = str(row[0]), row[2].upper(), row[3].upper()
        if "frames" in row[4]:
            row[4]["header"] = {k: str(v) for k, v in row[4]["header"].items()}
            row[4]["frames"] = [
                {**one, "frame_type": one["frame_type"].upper()} for one in row[4]["frames"]
            ]
    trace["events"].append([])
    return json.dumps(document)


def as_mvfst() -> str:
    """As mvfst writes: its own names, and the losses of an event as a sum."""
    document = json.loads(as_arrays())
    rows = []
    for at, path, category, event, data in document["traces"][0]["events"]:
        if "cwnd" in data:
            rtts = {key: value for key, value in data.items() if key != "cwnd"}
            rows.append([at, path, "recovery", "metric_update", rtts])
            data = {"current_cwnd": data["cwnd"], "congestion_event": "cwnd no change"}
            event, category = "congestion_metric_update", "metric_update"
        elif event == "packet_lost":
            if data["header"]["packet_number"] == 11:
                continue
            event, category, data = "packets_lost", "loss", {"lost_bytes": 2500, "lost_packets": 2}
        rows.append([at, path, category, event, data])
    document["traces"][0]["events"] = rows
    return json.dumps(document)


FORMS = {
    "quic-trace": as_quic_trace(), "mvfst": as_mvfst(),
    "JSON": as_json(time_format="relative"), "deltas": as_deltas(), "lines": as_records(""),
    "JSON-SEQ": as_records("\x1e"), "arrays": as_arrays(), "a mark": "\ufeff" + as_json(),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_same_bytes_rtts_windows_and_losses(form: str, tmp_path: Path) -> None:
    path = tmp_path / "any.name"
    path.write_text(FORMS[form], encoding="utf-8")
    assert is_qlog(path)
    recording = import_qlog(only(path), tmp_path / "out")
    (flow,) = recording.table("flows").to_pylist()
    # All up to the last ACK's range, but for the two that were lost.
    acknowledged = 1250 * (SENT - 2 - RTT_MS + 1 - 2)
    assert (flow["bytes_delivered"], flow["direction"]) == (acknowledged, "up")
    assert (flow["packets_lost"], flow["packets_sent"]) == (2, SENT)
    last = recording.table("flow_samples").to_pylist()[-1]
    assert (last["srtt_us"], last["min_rtt_us"], last["cwnd_packets"]) == (40_500, 40_000, 40)
    assert (last["t_us"], last["bytes_delivered"]) == ((SENT - 1) * 1000, acknowledged)


def test_every_connection_and_end_of_a_file_is_a_recording(tmp_path: Path) -> None:
    ends = [{"vantage_point": {"type": end}, "events": named()} for end in ("client", "server")]
    path = tmp_path / "both.qlog"
    path.write_text(json.dumps({"qlog_version": "0.3", "traces": ends}))
    out = tmp_path / "out"
    imported = CliRunner().invoke(app, ["flent", "import", str(path), "--out", str(out)])
    assert imported.exit_code == 0
    assert sorted(one.name for one in out.iterdir()) == ["both-client", "both-server"]
    # Of one trace, connections that its events tell apart by group.
    groups = [{**one, "group_id": group} for one in named() for group in ("ab", "cd")]
    path.write_text(json.dumps({"qlog_version": "0.3", "traces": [{"events": groups}]}))
    assert [file.name for file in read_qlogs(path)] == ["1", "2"]
    assert [file.samples[-1][1].sent for file in read_qlogs(path)] == [SENT, SENT]


def test_rtts_in_seconds_are_known_by_the_packets_or_by_the_initial_value(tmp_path: Path) -> None:
    path = tmp_path / "quinn.qlog"
    seconds = json.loads(as_json())
    all_events = seconds["traces"][0]["events"]
    for event in all_events:
        for key in ("smoothed_rtt", "min_rtt"):
            if key in event["data"]:
                event["data"][key] /= 1e3
    metrics = [event for event in all_events if "metrics" in event["name"]]
    first = {**metrics[0], "time": 0, "data": {"smoothed_rtt": 0.333, "min_rtt": 0.333}}
    for chosen in (all_events, [first, *metrics]):
        seconds["traces"][0]["events"] = chosen
        path.write_text(json.dumps(seconds))
        file = only(path)
        assert file.has_seconds
        assert file.samples[-1][1].metrics["srtt"] == pytest.approx(40.5)
        assert file.samples[-1][1].metrics["min_rtt"] == pytest.approx(40)


def test_the_short_rtts_of_a_loopback_are_not_taken_for_seconds(tmp_path: Path) -> None:
    """0.05 ms, and ACKs that were delayed by 25 ms."""
    path = tmp_path / "loopback.qlog"
    document = json.loads(as_json())
    for event in document["traces"][0]["events"]:
        if "metrics" in event["name"]:
            event["data"] = {"smoothed_rtt": 0.08, "min_rtt": 0.05}
    path.write_text(json.dumps(document))
    assert not only(path).has_seconds


def test_the_last_sample_has_all_events_of_its_time(tmp_path: Path) -> None:
    path = tmp_path / "whole_ms.qlog"
    sent = [{**one, "time": 0 if at < 5 else 7} for at, one in enumerate(named()[:10])]
    path.write_text(json.dumps({"qlog_version": "0.3", "traces": [{"events": sent}]}))
    assert [sums.sent for _, sums in only(path).samples] == [1, 10]


def test_packets_of_0_rtt_are_acknowledged_in_the_space_of_1_rtt(tmp_path: Path) -> None:
    path = tmp_path / "early.qlog"
    document = json.loads(as_json())
    sent = [one for one in document["traces"][0]["events"] if "sent" in one["name"]]
    for one in sent[:5]:
        one["data"]["header"]["packet_type"] = "0RTT"
    path.write_text(json.dumps(document))
    file = only(path)
    assert file.delivered(file.samples[-1][1]) == 1250 * (SENT - 2 - RTT_MS + 1 - 2)


def test_a_receivers_file_counts_what_it_received(tmp_path: Path) -> None:
    path = tmp_path / "client.qlog"
    received = [{**one, "name": "quic:packet_received"} for one in named() if "sent" in one["name"]]
    path.write_text(json.dumps({"qlog_version": "0.4", "traces": [{"events": received}]}))
    file = only(path)
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
        ('{"qlog_version": "0.3", "traces": []}', "no trace has events"),
        ('{"qlog_version": "0.3", "traces": [{"events": [{"time": "x"}]}]}', "no whole qlog"),
        ('{"qlog_version": "0.3", "trace": {}}', "has no event"),
        ('{"qlog_version": "0.3", ', "no whole qlog"),
    ],
)
def test_a_damaged_file_is_refused_by_name(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.qlog"
    path.write_text(text)
    with pytest.raises(FlentError, match=words) as refused:
        read_qlogs(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("time", ["NaN", "Infinity", "1e300"])
def test_a_time_that_no_connection_has_is_refused(time: str, tmp_path: Path) -> None:
    first = '{"time": 0, "name": "metrics_updated", "data": {"congestion_window": 12000}}'
    path = tmp_path / "bad.qlog"
    path.write_text(
        f'{{"qlog_version": "0.3", "traces": [{{"events": [{first}, {{"time": {time}}}]}}]}}'
    )
    with pytest.raises(FlentError, match="no time of a connection"):
        read_qlogs(path)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(-5, 70), st.integers(-5, 70))))
def test_bytes_of_a_packet_count_once_whatever_ranges_acknowledge_it(
    steps: list[tuple[int, int, int]],
) -> None:
    packets, open_ = qlog._Open(), dict[int, int]()
    for number, low, high in steps:
        packets.add(number, number + 1, 0.0)
        open_[number] = number + 1
        within = [one for one in open_ if low <= one <= high]
        assert packets.acknowledge(low, high) == sum(open_.pop(one) for one in within)
