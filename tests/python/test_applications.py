"""Pages and streams of datagrams in the simulator: closed formulas, RFC 3550 by hand, bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullpipe.base.errors import UserError
from fullpipe.cli import main
from fullpipe.engines.runner import run_scenario
from fullpipe.metrics import View
from fullpipe.metrics.datagrams import Stream, streams
from fullpipe.metrics.pages import page_loads
from fullpipe.report.page import write_report
from fullpipe.report.pages import page_plots
from fullpipe.scenario.har import levels_of_har
from fullpipe.scenario.model import load_scenario, make_scenario

PATH = {"rate": "10mbit", "reverse_rate": "10mbit", "rtt": "40ms", "forward_delay": "20ms"}
SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


def run(folder: Path, **parts: Any) -> View:
    document = {"duration": "5s", "path": PATH} | parts
    scenario = make_scenario(document)
    return View(run_scenario(scenario, "", [folder / "r"]).recordings[0], start_s=0)


def test_a_page_takes_its_round_trips_and_its_bytes(tmp_path: Path) -> None:
    page = {"cc": "cubic", "levels": [["1000B"], ["1000B"]], "interval": "1s"}
    parts = [{**page, "lookup": "none", "name": "a"}, {**page, "think": "10ms", "name": "b",
             "start": "500ms"}]  # fmt: skip
    loads = page_loads(run(tmp_path, page=parts))
    # Handshake and two exchanges, then the name and two thoughts; packets take a millisecond or so.
    assert loads[0].time_s[:5] == pytest.approx(3 * 0.04, abs=0.004)
    assert loads[1].time_s[:4] == pytest.approx(4 * 0.04 + 0.02, abs=0.005)


def test_a_large_object_takes_its_bytes_at_the_rate_of_the_link(tmp_path: Path) -> None:
    page = {"cc": "cubic", "levels": [["1MB"]], "lookup": "none", "loads": 1}
    (loads,) = page_loads(run(tmp_path, page=[page]))
    at_rate_s = 2**20 * 8 / 1e7 * (1514 / 1448)
    # Slow start costs round trips beside: less than ten.
    assert at_rate_s < loads.time_s[0] < at_rate_s + 10 * 0.04


def test_datagrams_on_an_idle_path_take_its_delay_and_keep_their_spacing(tmp_path: Path) -> None:
    udp = {"rate": "64kbit", "payload": "160B"}
    (stream,) = streams(run(tmp_path, udp=[udp]))
    assert stream.sent_s == pytest.approx(np.arange(stream.sent_s.size) * 0.02)
    assert stream.delay_s == pytest.approx(0.02, abs=1e-3)
    assert (stream.loss_ratio, round(stream.jitter_s, 6)) == (0, 0)


def test_a_stream_beyond_the_rate_loses_what_is_beyond(tmp_path: Path) -> None:
    udp = {"rate": "20mbit", "payload": "1458B"}
    (stream,) = streams(run(tmp_path, udp=[udp]))
    carried = 10e6 * 1458 / 1500
    assert 1 - stream.loss_ratio == pytest.approx(carried / 20e6, abs=0.02)


def test_pages_and_streams_cross_a_channel_at_its_first_station(tmp_path: Path) -> None:
    stations = [{"name": "near", "mcs": 7}, {"name": "far", "mcs": 0}]
    view = run(
        tmp_path,
        wifi={"standard": "n", "station": stations},
        page=[{"cc": "cubic", "levels": [["1MB"]], "lookup": "once", "loads": 1, "start": "1s"}],
        udp=[{"rate": "64kbit", "payload": "160B", "stop": "1s"}],
        path={**PATH, "rate": "1gbit", "reverse_rate": "1gbit"},
    )
    (loads,), (stream,) = page_loads(view), streams(view)
    # At MCS 7 65 Mbit/s, of which an aggregate's acknowledgements and contention leave four fifths;
    # MCS 0 has a tenth. Look-up, handshake and slow start are a dozen round trips at most.
    at_rate_s = 2**20 * 8 / 65e6
    assert at_rate_s < loads.time_s[0] < at_rate_s / 0.8 + 12 * 0.04
    assert stream.loss_ratio == 0
    assert stream.delay_s == pytest.approx(0.02, abs=2e-3)


def test_pages_and_streams_are_at_their_stations_and_pass_the_wire_behind_the_channel(
    tmp_path: Path,
) -> None:
    stations = [{"name": "near", "mcs": 7}, {"name": "far", "mcs": 0}]
    page = {"cc": "cubic", "levels": [["1MB"]], "lookup": "none", "loads": 1, "start": "1s"}
    stream = {"rate": "64kbit", "payload": "160B", "stop": "1s", "station": "far"}
    took_s = {}
    for rate, station in (("10mbit", "near"), ("1gbit", "far")):
        view = run(
            tmp_path / station,
            wifi={"standard": "n", "station": stations},
            page=[{**page, "station": station}],
            udp=[stream],
            path={**PATH, "rate": rate, "reverse_rate": rate},
        )
        took_s[station] = page_loads(view)[0].time_s[0]
        assert streams(view)[0].loss_ratio == 0
    # The wire of 10 Mbit/s, and MCS 0 of 6.5.
    at_rate_s = 2**20 * 8 * 1514 / 1448 / 10e6
    assert at_rate_s < took_s["near"] < 1.1 * at_rate_s + 6 * 0.04
    assert 2**20 * 8 / 6.5e6 < took_s["far"] < 2**20 * 8 / 6.5e6 / 0.8 + 6 * 0.04


def test_a_paced_application_writes_so_much_at_a_time(tmp_path: Path) -> None:
    flow = {"cc": "cubic", "pattern": {"write": "10000B", "every": "100ms"}}
    view = run(tmp_path, flow=[flow])
    # Written from 40 ms on, at 100 ms steps; the last write is acknowledged.
    assert view.flows["bytes_delivered"][0] == 10_000 * 50


def test_short_writes_wait_for_one_another_unless_nodelay_is_set(tmp_path: Path) -> None:
    # RFC 896: a packet for each RTT of 40 ms, or one for each write.
    def packets(nodelay: bool) -> int:
        flow = {"cc": "cubic", "pattern": {"write": "100B", "every": "10ms"}, "nodelay": nodelay}
        view = run(tmp_path / str(nodelay), flow=[flow])
        assert view.flows["bytes_delivered"][0] == pytest.approx(100 * 500, abs=1000)
        return int(view.flows["packets_sent"][0])

    assert packets(nodelay=True) == pytest.approx(500, abs=10)
    assert packets(nodelay=False) == pytest.approx(500 / 4, abs=5)


def test_a_server_goes_on_writing_while_tcp_sends_at_once(tmp_path: Path) -> None:
    # On a warm connection an object takes a round trip and its bytes: 131.2 ms in Linux 6.12 too.
    page = {
        "cc": "cubic", "levels": [["300KB"]], "protocol": "http2", "keep_connections": True,
        "lookup": "none", "interval": "200ms",
    }  # fmt: skip
    path = {"rate": "50mbit", "rtt": "80ms", "buffer": "2bdp"}
    (loads,) = page_loads(run(tmp_path, path=path, page=[page]))
    at_rate_s = 300 * 1024 * 8 / 50e6 * (1514 / 1448)
    assert loads.time_s[-10:-1] == pytest.approx(0.08 + at_rate_s, abs=1e-3)


def test_a_pages_connection_closes_as_one(tmp_path: Path) -> None:
    # RFC 9293 section 3.6. Up: SYN, ACK, request, ACKs of both packets of the response, FIN and the
    # last ACK. Down: SYN-ACK, the request's ACK, two packets, FIN.
    page = {"cc": "cubic", "levels": [["2KB"]], "lookup": "none", "loads": 1}
    queues = run(tmp_path, page=[page]).samples("queue_samples")
    sent = {
        side: queues["sent_packets"][queues["queue"] == side] for side in ("forward", "reverse")
    }
    assert (sent["forward"][-1], sent["reverse"][-1]) == (7, 5)


@pytest.mark.parametrize(
    ("window", "linux_mbps"),
    [("2KB", 0.2896), ("4KB", 0.5792), ("5KB", 0.724), ("16KB", 3.1132), ("64KB", 13.1072)],
)
def test_a_small_receive_window_carries_what_it_does_in_linux(
    tmp_path: Path, window: str, linux_mbps: float
) -> None:
    """Linux 6.12.117 on this path from 1 s to 5 s. Its receivers offer whole segments while their
    window needs no scale (__tcp_select_window())."""
    path = {"rate": "100mbit", "rtt": "40ms"}
    flow = {"cc": "cubic", "receive_window": window}
    samples = run(tmp_path, path=path, flow=[flow]).samples("flow_samples")
    bytes_delivered = np.interp([1e6, 5e6], samples["t_us"], samples["bytes_delivered"])
    assert np.ptp(bytes_delivered) * 8 / 4e6 == pytest.approx(linux_mbps, rel=0.005)


def test_an_application_faster_than_its_path_waits_for_its_socket_as_any_other_does(
    tmp_path: Path,
) -> None:
    """From 1 s on Linux 6.12.117 delivers 29.18 Mbit/s of either application. So much fits into the
    buffer that waiting for a third of it shows in the goodput."""
    for number, flow in enumerate([{}, {"app_rate": "1gbit"}]):
        samples = run(
            tmp_path / str(number),
            duration="20s",
            path={"rate": "100mbit", "rtt": "40ms"},
            host={"wmem_max": "200KB"},
            flow=[{"cc": "cubic", **flow}],
        ).samples("flow_samples")
        late = samples["t_us"] > 1e6
        bits = 8 * np.ptp(samples["bytes_delivered"][late])
        assert bits / np.ptp(samples["t_us"][late]) == pytest.approx(29.18, rel=0.02)


def test_jitter_is_that_of_rfc_3550_and_frames_keep_their_deadline() -> None:
    delay = np.array([0.010, 0.014, np.nan, 0.012, 0.020, 0.020])
    sent = np.array([0, 0, 0.1, 0.1, 0.2, 0.2])
    stream = Stream("x", sent, delay, np.full(6, 100.0), np.array([0, 0, 1, 1, 2, 2.0]), 0.015)
    first = 0.004 / 16
    second = first + (0.002 - first) / 16
    third = second + (0.008 - second) / 16
    assert stream.jitter_s == pytest.approx(third * 15 / 16)
    assert stream.frames_in_time() == (1, 3)
    assert stream.loss_ratio == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"page": [{"cc": "cubic", "levels": []}]}, "levels"),
        ({"page": [{"cc": "cubic", "levels": [["-1B"]]}]}, "levels"),
        ({"page": [{"cc": "nosuch", "levels": [["1KB"]]}]}, "nosuch"),
        ({"page": [{"cc": "cubic", "levels": [["1KB"]], "interval": "0s"}]}, "interval"),
        ({"page": [{"cc": "cubic", "levels": [["1KB"]], "start": "9s"}]}, "start"),
        ({"flow": [{"cc": "cubic", "receive_window": "2KB"}], "path": PATH | {"mtu": 9000}},
         "flow.0.receive_window.*8948"),
        ({"udp": [{"rate": "1mbit", "payload": "1490B"}]}, "payload"),
        ({"udp": [{"rate": "1mbit", "on": "1s"}]}, "needs off"),
        ({"udp": [{"rate": "100gbit", "payload": "16B"}]}, "datagrams"),
        ({"flow": [{"cc": "cubic", "pattern": {"write": "1KB"}}]}, "needs every"),
        ({"flow": [{"cc": "cubic", "amount": "1KB", "pattern": {"on": "1s", "off": "1s"}}]},
         "pattern"),
    ],
)  # fmt: skip
def test_bad_pages_and_streams_are_refused_by_key(document: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make_scenario({"duration": "5s", "path": PATH} | document)


def test_a_har_gives_sizes_and_what_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    har = tmp_path / "page.har"

    def entry(body: int, headers: int, content: int = 0) -> dict[str, Any]:
        sizes = {"bodySize": body, "headersSize": headers, "content": {"size": content}}
        return {"response": sizes}

    entries = [entry(5000, 300), entry(-1, -1, 700), entry(0, 200)]
    har.write_text(json.dumps({"log": {"entries": entries}}))
    assert levels_of_har(har) == [["5300B"], ["700B", "200B"]]
    with har.open("wb") as file:
        file.truncate(100 * 2**20)
    monkeypatch.setattr(
        "sys.argv",
        ["fullpipe", "test", "http", "--path", str(SCENARIOS / "demo.toml"), "--har", str(har)],
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "32 MiB" in capsys.readouterr().err
    for text in ("", "[]", '{"log": {"entries": []}}', '{"log": {"entries": [1]}}', "[" * 10**5):
        har.write_text(text)
        with pytest.raises(UserError, match=r"page\.har"):
            levels_of_har(har)


@pytest.mark.parametrize(("name", "objects", "size"), [("small", 19, 5e6), ("large", 39, 11e6)])
def test_the_pages_of_ahsan2026_have_its_sums(name: str, objects: int, size: float) -> None:
    (page,) = load_scenario(SCENARIOS / f"page-{name}.toml").page
    sizes = [one for level in page.levels for one in level]
    assert (len(sizes), sum(sizes)) == (objects, size)


def test_the_report_draws_page_times_and_the_objects_of_the_median_load(tmp_path: Path) -> None:
    page = {"cc": "cubic", "levels": [["2KB"], ["90KB", "30KB"]], "name": "a-b"}
    view = run(tmp_path, page=[page], flow=[{"cc": "reno", "start": "2s"}])
    (loads,) = page_loads(view)
    course, waterfall = page_plots(view)
    assert course.traces[0].y == pytest.approx(1e3 * loads.time_s, nan_ok=True)
    times = np.sort(loads.time_s[~np.isnan(loads.time_s)])
    first, last = waterfall.spans
    assert last.ends.max() == pytest.approx(1e3 * times[(times.size - 1) // 2])
    assert (first.starts < first.ends).all() and (first.ends == last.starts).all()
    assert waterfall.rows == ("1: 2 KiB", "2: 90 KiB", "3: 30 KiB")
    report = write_report([view.recording], tmp_path / "report.html", light=True).read_text()
    assert "Page time: distribution" in report and "Objects of a-b" in report
