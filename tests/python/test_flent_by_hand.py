"""Series of Flent's files on their grid, and numbers read from them, done by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullpipe.base.errors import UserError
from fullpipe.flent.applications import page_series, stream_series
from fullpipe.flent.comparing import by_bytes, run_groups, sample_groups
from fullpipe.flent.container import FlentError
from fullpipe.flent.document import parse_time, read_flent
from fullpipe.flent.exporting import flent_document as exported
from fullpipe.flent.gridding import flow_series, on_grid, ping_series, queue_series
from fullpipe.flent.identity import identify
from fullpipe.flent.importing import import_flent
from fullpipe.flent.series import file_step, flow_totals, interim, interpolated, total_bps
from fullpipe.flent.shapes import End, fitting_test, shape
from fullpipe.flent.versions import to_current
from made_recordings import flow, recorded, samples

NAN = math.nan
X = np.arange(11) * 0.5
S = 1_000_000


def columns(**values: Any) -> dict[str, Any]:
    return {
        name: np.array(given, dtype=object if isinstance(given[0], str) else float)
        for name, given in values.items()
    }


def near(values: Any) -> Any:
    return pytest.approx(values, nan_ok=True)


def test_a_gauge_is_interpolated_up_to_five_steps_before_the_next_sample() -> None:
    x = np.arange(12) * 1.0
    # Samples at 1, 3 and 9: from 4 on the last is five steps away, at 3.x it is more.
    found = on_grid(x, np.array([1.0, 3, 9]), np.array([10.0, 30, 90]))
    assert found == near([NAN, 10, 20, 30, 40, 50, 60, 70, 80, 90, NAN, NAN])
    later = on_grid(x, np.array([1.0, 3, 9.5]), np.array([10.0, 30, 95]))
    assert later == near([NAN, 10, 20, 30, NAN, 50, 60, 70, 80, 90, NAN, NAN])
    gaps = on_grid(x, np.array([1.0, 2, 3]), np.array([1.0, NAN, 3]))
    assert gaps[:4] == near([NAN, 1, 2, 3])
    assert np.isnan(on_grid(x, np.array([1.0]), np.array([NAN]))).all()


def test_pages_stand_when_they_ended_in_ms() -> None:
    loads = columns(page_id=[0, 0, 1], start_us=[S, 2 * S, 0], done_us=[1.5 * S, NAN, S])
    found = page_series(loads, 0, X, 0.5, 100.0)
    assert found.raw == [{"t": 102.0, "val": 500.0}] and found.meta == {"UNITS": "ms"}
    assert found.grid is not None and found.grid[4] == 500


def test_streams_are_means_and_sums_of_what_was_sent_in_a_step() -> None:
    sent = columns(
        stream_id=[0, 0, 0, 0, 1], t_us=[0.2 * S, 0.5 * S, 0.6 * S, 0.9 * S, 0],
        delay_us=[10_000, 20_000, NAN, 50_000, 1], bytes=[100, 200, 300, 400, 9],
    )  # fmt: skip
    found = stream_series("v", sent, 0, X, 0.0, 100.0)

    def grid(name: str) -> Any:
        values = found[f"v::{name}"].grid
        assert values is not None
        return values[:4]

    assert grid("delay") == near([NAN, 15, 50, NAN]) and grid("loss") == near([NAN, 0, 1, NAN])
    # |20 - 10| within the first step, |50 - 20| within the second.
    assert grid("jitter") == near([NAN, 10, 30, NAN])
    # 300 B and 400 B in half a second each.
    assert grid("bitrate") == near([NAN, 4.8, 6.4, NAN])
    assert grid("induced_delay") == near([NAN, 5, 40, NAN])
    raw = found["v"].raw
    assert raw is not None and [entry["t"] for entry in raw] == [100.5, 101.0]


def flow_tables(**row: Any) -> dict[str, Any]:
    usual = {"flow_id": [0], "cc": ["kernel:bbr"], "start_us": [S], "completion_us": [3 * S],
             "bytes_delivered": [500_000], "mss_bytes": [1448],
             "packets_retransmitted": [7]}  # fmt: skip
    delivered = [125_000, 250_000, 375_000, 500_000]
    count = len(delivered)
    empty = {"bw_bps": [NAN], "min_rtt_us": [NAN], "pacing_gain": [NAN], "cwnd_gain": [NAN],
             "t_us": [S], "flow_id": [0]}  # fmt: skip
    return {
        "flows": columns(**{**usual, **row}),
        "flow_samples": columns(
            flow_id=[0] * count, t_us=[1.5 * S, 2 * S, 2.5 * S, 3 * S], bytes_delivered=delivered,
            cwnd_packets=[10, 20, 30, 40], srtt_us=[20_000] * count,
            pacing_rate_bps=[4_000_000] * count, delivery_rate_bps=[2_000_000] * count,
        ),
        "cc_samples": columns(**empty),
    }  # fmt: skip


def test_a_flows_rate_is_bytes_of_a_step_over_the_step() -> None:
    found = flow_series("f", 0, flow_tables(), X, 0.0, 100.0)
    # 125 kB in half a second are 2 Mbit/s, from 1 s to 3 s.
    assert found["f"].grid == near([NAN] * 3 + [2] * 4 + [NAN] * 4)
    meta = found["f"].meta
    assert (meta["MEAN_VALUE"], meta["ELAPSED_TIME"], meta["BYTES_RECVD"]) == (2, 2, 500_000)
    assert (meta["CONG_CONTROL"], meta["FULLPIPE_CC"]) == ("bbr", "kernel:bbr")
    assert (meta["TCP_MSS"], meta["TCP_RETRANSMIT"], meta["UNITS"]) == (1448, 7, "Mbits/s")
    rates = [entry for entry in found["f"].raw or [] if "val" in entry]
    assert [(entry["t"], entry["dur"], entry["val"]) for entry in rates] == [
        (101.5, 0.5, 2), (102.0, 0.5, 2), (102.5, 0.5, 2), (103.0, 0.5, 2),
    ]  # fmt: skip
    units = {name: series.meta["UNITS"] for name, series in found.items() if "::" in name}
    assert units == {"f::tcp_cwnd": "packets", "f::tcp_rtt": "ms", "f::tcp_pacing_rate": "Mbits/s",
                     "f::tcp_delivery_rate": "Mbits/s"}  # fmt: skip
    for name, value in (("tcp_rtt", 20), ("tcp_pacing_rate", 4), ("tcp_delivery_rate", 2)):
        grid = found[f"f::{name}"].grid
        assert grid is not None and grid[4] == value
    later = flow_series("f", 0, flow_tables(), X, 1.0, 100.0)["f"].grid
    assert later == near([NAN] * 5 + [2] * 4 + [NAN] * 2)


def test_a_flow_without_an_end_lasts_until_its_last_sample() -> None:
    tables = flow_tables(completion_us=[NAN], bytes_delivered=[NAN])
    meta = flow_series("f", 0, tables, X, 0.0, 0.0)["f"].meta
    assert (meta["ELAPSED_TIME"], meta["BYTES_RECVD"]) == (2, 500_000)


def test_pings_stand_when_they_were_answered() -> None:
    pings = columns(probe=["a", "a", "b"], t_us=[S, 2 * S, 0], rtt_us=[500_000, NAN, 1],
                    seq=[1, 2, 1])  # fmt: skip
    found = ping_series(pings, "a", X, 0.5, 100.0)
    assert found.raw == [{"t": 102.0, "seq": 1.0, "val": 500.0}]
    assert found.grid is not None and found.grid[4] == 500


def test_drops_of_a_queue_are_since_the_entry_before() -> None:
    queues = columns(queue=["forward"] * 3, t_us=[0.5 * S, S, 1.5 * S], queue_bytes=[1, 2, 3],
                     queue_packets=[NAN] * 3, sent_bytes=[10, 30, 60], sent_packets=[1, 3, 6],
                     dropped_packets=[5, 6, 9], marked_packets=[0, 0, 2],
                     filtered_packets=[NAN] * 3)  # fmt: skip
    found = queue_series(queues, X, 0.0, 100.0)
    raw = found["qdisc_stats_localhost"].raw
    assert raw is not None and [entry["dropped"] for entry in raw] == [0, 1, 3]
    assert [entry["ecn_mark"] for entry in raw] == [0, 0, 2]
    assert [entry["sent_bytes"] for entry in raw] == [10, 30, 60] and "backlog_pkts" not in raw[0]


def document(**more: Any) -> dict[str, Any]:
    t0 = 1_772_366_400.0
    series = {"MEAN_VALUE": 8.0, "ELAPSED_TIME": 10.0, "UNITS": "Mbits/s", "CONG_CONTROL": "bbr",
              **more.pop("series", {})}  # fmt: skip
    raw = [{"t": t0 + 6, "dur": 1.0, "val": 8.0}, {"t": t0 + 8, "val": 4.0},
           {"t": t0 + 7, "tcp_bbr_pacing_gain": 710 / 256}]  # fmt: skip
    return {
        "version": 4,
        "metadata": {"NAME": "tcp_1up", "TITLE": "t", "T0": "2026-03-01T12:00:00.000000Z",
                     "SERIES_META": {"TCP upload": series}, "STEP_SIZE": 0.2, "LENGTH": 10,
                     "TOTAL_LENGTH": 20, **more.pop("metadata", {})},
        "x_values": [0.0, 0.2, 0.4], "results": {"TCP upload": [None, 8.0, 9.0],
                                                 "Ping (ms) ICMP": [20.0, None, 22.0]},
        "raw_values": {"TCP upload": raw, "Ping (ms) ICMP": [
            {"t": t0 + 1, "seq": 0.0, "val": 20.0}, {"t": t0 + 2, "seq": 2.0, "val": 30.0}]},
        **more,
    }  # fmt: skip


def read(folder: Path, **more: Any) -> Any:
    path = folder / "a.flent"
    path.write_text(json.dumps(document(**more)))
    return read_flent(path)


def test_a_total_is_the_mean_times_the_time(tmp_path: Path) -> None:
    file = read(tmp_path)
    (total,) = flow_totals(file)
    # 8 Mbit/s for 10 s are 10 MB; the first interim result began at 5 s.
    assert (total.bytes_delivered, total.elapsed_s, total.start_s, total.certain) == (
        10_000_000, 10, 5, True,
    )  # fmt: skip
    assert total.rate_bps == 8e6 and total_bps(file, "up") == 8e6 and total_bps(file, "down") == 0
    pieces = interim(file, "TCP upload")
    # The second lasted from the one before on: 2 s at 4 Mbit/s.
    assert pieces.start_s.tolist() == [5, 6] and pieces.bytes.tolist() == [1e6, 1e6]
    guessed = flow_totals(read(tmp_path, series={"MEAN_VALUE": None}))[0]
    assert (guessed.bytes_delivered, guessed.elapsed_s, guessed.certain) == (2_000_000, 3, False)
    half = flow_totals(read(tmp_path, series={"ELAPSED_TIME": None}))[0]
    assert (half.bytes_delivered, half.certain) == (3_000_000, False)
    silent = read(tmp_path, raw_values={"TCP upload": []})
    assert flow_totals(silent)[0].start_s == 5  # half of what 20 s are beyond 10 s
    for bad in ({"UNITS": "ms"}, {"MEAN_VALUE": -1}, {"MEAN_VALUE": 1.1e7},
                {"ELAPSED_TIME": -1}, {"ELAPSED_TIME": 1.1e7}):  # fmt: skip
        with pytest.raises(FlentError):
            flow_totals(read(tmp_path, series=bad))


def test_numbers_of_a_file_by_name(tmp_path: Path) -> None:
    file = read(tmp_path)
    assert interpolated(file, "throughput").tolist() == [8, 9]
    assert interpolated(file, "ping").tolist() == [20, 22] and file_step(file) == 0.2
    assert file_step(read(tmp_path, metadata={"STEP_SIZE": None})) == pytest.approx(0.2)
    with pytest.raises(FlentError, match="has no series"):
        interpolated(file, "x")
    (one,) = identify(file)
    assert (one.name, one.cong_control) == ("bbr3", "bbr")
    found = by_bytes(file)
    assert (found.rate_bps, found.elapsed_s, found.flows, found.direction) == (8e6, 10, 1, "up")
    groups = run_groups([file, file, read(tmp_path, metadata={"TITLE": "u"})] * 2, "throughput")
    assert groups.names == ("t", "u") and groups.values[0].tolist() == [8] * 4
    assert run_groups([file, file, read(tmp_path, metadata={"TITLE": "u"})] * 2, "ping").values[
        1
    ].tolist() == [25, 25]  # fmt: skip
    with pytest.raises(UserError, match="has one run"):
        run_groups([file, file, read(tmp_path, metadata={"TITLE": "u"})], "throughput")
    both = [file, read(tmp_path, metadata={"TITLE": "u"})]
    every, short = sample_groups(both, "throughput", 3)
    assert every.pseudo_replicated and len(short) == 2 and "2 values, fewer than 3" in short[0]
    four = sample_groups([*both, *both], "throughput", 1)[0]
    assert four.values[0].tolist() == [8, 8]
    assert sample_groups(both, "throughput", 2)[1] == []


def test_an_import_by_hand(tmp_path: Path) -> None:
    recording = import_flent(read(tmp_path), tmp_path / "out")
    (row,) = recording.table("flows").to_pylist()
    assert (row["start_us"], row["completion_us"], row["bytes_delivered"]) == (5 * S, 15 * S, 10**7)
    counted = {
        one["t_us"]: one["bytes_delivered"] for one in recording.table("flow_samples").to_pylist()
    }
    # Interim results end at 6 s and 8 s, the socket is read at 7 s, the flow ends at 15 s.
    assert counted == {6 * S: 10**6, 7 * S: 15 * 10**5, 8 * S: 2 * 10**6, 15 * S: 10**7}
    pings = [
        (one["t_us"], one["seq"], one["rtt_us"])
        for one in recording.table("ping_samples").to_pylist()
    ]
    # Sent a round trip before the answer; request 1 was lost between them.
    assert pings == [(980_000, 0, 20_000), (1_475_000, 1, None), (1_970_000, 2, 30_000)]


def test_times_and_units_of_older_versions() -> None:
    assert parse_time("1970-01-02T00:00:00.250000Z", "x") == 86_400.25
    old: dict[str, Any] = {
        "version": 3, "metadata": {"SERIES_META": {"f": {"UNITS": "bits/s", "MEAN_VALUE": 8e6}}},
        "raw_values": {
            "Ping (ms) UDP": [{"dur": 1, "val": 50.0}, {"dur": 1, "val": 0}],
            "HTTP latency": [{"val": 0.25}],
            "qdisc_stats_x": [{"dropped": 5, "ecn_mark": 1}, {"dropped": 9, "ecn_mark": 1}],
        },
    }  # fmt: skip
    assert to_current(old) == 3
    raw = old["raw_values"]
    # 50 transactions a second are 20 ms each; 0.25 s are 250 ms; totals become differences.
    assert [one["val"] for one in raw["Ping (ms) UDP"]] == [20, 0]
    assert raw["HTTP latency"][0]["val"] == 250
    assert [one["dropped"] for one in raw["qdisc_stats_x"]] == [0, 4]
    assert old["metadata"]["SERIES_META"]["f"] == {"UNITS": "Mbits/s", "MEAN_VALUE": 8}
    for bad in (0, 5, True, "4"):
        with pytest.raises(ValueError, match="version"):
            to_current({"version": bad})


def ends(*flows: tuple[str, int | None]) -> list[End]:
    return [End(direction, rtt) for direction, rtt in flows]


@pytest.mark.parametrize(
    ("flows", "test"),
    [
        ([("up", 1)], "tcp_1up"), ([("down", 1)], "tcp_1down"), ([("up", 1)] * 5, "tcp_nup"),
        ([("up", 1), ("down", 1)], "rrul"), ([("up", 1), ("up", 2)], "rtt_fair"),
        ([("up", 1), ("up", None)], "tcp_nup"), ([("up", 1)] * 4 + [("down", 1)] * 4, "rrul"),
        ([("up", n) for n in range(5)], "tcp_nup"),
    ],
)  # fmt: skip
def test_flows_have_the_shape_of_a_test(flows: Any, test: str) -> None:
    assert fitting_test(ends(*flows)) == test


def test_a_shape_names_series_and_what_is_computed() -> None:
    found = shape("tcp_nup", ends(("up", 1), ("up", 1)), ["mine", "ICMP"])
    assert found.flows == ("TCP upload::1", "TCP upload::2")
    assert found.pings == ("Ping (ms) mine", "Ping (ms) ICMP")
    assert found.computed["TCP upload sum"] == ("sum", found.flows)
    fair = shape("rtt_fair", ends(("up", 10_000), ("down", 20_000), ("up", 30_000)), [])
    assert fair.flows == (
        "TCP upload BE1 host1-10ms", "TCP download BE1 host1-10ms", "TCP upload BE2 host2-30ms",
    )  # fmt: skip
    assert len(fair.hosts) == 4 and "TCP upload fairness" in fair.computed
    for bad, flows in (("tcp_2up", [("up", 1)] * 3), ("tcp_1up", [("down", 1)]), ("x", [("up", 1)]),
                       ("rrul", [("up", 1)] * 5)):  # fmt: skip
        with pytest.raises(UserError):
            shape(bad, ends(*flows), [])
    with pytest.raises(UserError):
        fitting_test(ends(*[("up", 1)] * 5, ("down", 1)))


def test_an_export_computes_sums_means_and_fairness(tmp_path: Path) -> None:
    rows = samples(0, [1_000_000, 2_000_000]) + samples(1, [3_000_000, 6_000_000])
    plan = {"name": "p", "duration_ns": 2 * 10**9, "sample_interval_ns": 10**9}
    flows = [flow(n, base_rtt_us=10_000 * (n + 1), packets_retransmitted=None) for n in (0, 1)]
    view = recorded(tmp_path, plan=plan, flows=flows, flow_samples=rows)
    found, made = exported(view.recording)
    assert made.test == "rtt_fair" and found["metadata"]["STEP_SIZE"] == 1
    # A recording begins 5 s after Flent's probes, and ends as long before.
    assert (found["metadata"]["LENGTH"], found["metadata"]["TOTAL_LENGTH"]) == (2, 12)
    assert len(found["x_values"]) == 13
    results = found["results"]
    # 8 and 24 Mbit/s in the seconds that end at 6 and 7.
    assert results["TCP upload sum"][5:9] == [None, 32, 32, None]
    assert results["TCP upload avg"][6] == 16
    assert results["TCP upload fairness"][6] == pytest.approx(32**2 / (2 * (64 + 576)))
    meta = found["metadata"]["SERIES_META"]
    assert meta["TCP upload sum"]["MEAN_VALUE"] == pytest.approx(32)
    assert meta["TCP upload avg"]["MEAN_VALUE"] == pytest.approx(16)
