"""Traffic, pages, streams of datagrams and hosts, against figures done by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullpipe.metrics import (
    View,
    at_once,
    mean_at_once,
    page_loads,
    summarise_traffic,
    traffic_flows,
)
from fullpipe.metrics.datagrams import streams, summarise_streams
from fullpipe.metrics.hosts import machine_loads, port_rates, tcp_memory
from fullpipe.metrics.pages import summarise_pages
from made_recordings import PLAN, flow, of_a_link, recorded, samples

S = 1_000_000
#: 1448 B are 1514 B on the wire: 1.514 ms at 1 MB/s.
PACKET_S = 0.001514


def traffic(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    usual = {"group_id": 0, "base_rtt_us": 20_000, "chunks": 1, "pause_us": 0, "timeouts": 0,
             "packets_sent": 10, "packets_retransmitted": 0}  # fmt: skip
    return [{**usual, "number": n, **row} for n, row in enumerate(rows)]


def of_traffic(path: Path, rows: list[dict[str, Any]], warmup_s: float = 0) -> View:
    group = {"name": "web", "cc": {"name": "cubic"}, "direction": "up"}
    plan = {**of_a_link(), "traffic": [group, {**group, "name": "other"}]}
    ticks = samples(0, [0] * 10)
    return recorded(path, warmup_s, plan=plan, flow_samples=ticks, traffic=rows)


def test_the_slowdown_of_traffic_by_hand(tmp_path: Path) -> None:
    rows = traffic(
        {"start_us": 1 * S, "completion_us": 1 * S + 100_000, "size_bytes": 14_480},
        {"start_us": 2 * S, "completion_us": 3 * S, "size_bytes": 144_800, "pause_us": 200_000,
         "chunks": 3},
        {"start_us": 4 * S, "size_bytes": 1448},
    )  # fmt: skip
    web, other = traffic_flows(of_traffic(tmp_path, rows))
    assert (web.name, web.cc, other.name, other.start_s.size) == ("web", "cubic", "other", 0)
    assert web.mss_bytes == 1448 and web.wire_bytes == pytest.approx([15_140, 151_400, 1514])
    assert web.work_s == pytest.approx([10 * PACKET_S, 100 * PACKET_S, PACKET_S])
    assert web.completion_s[:2] == pytest.approx([0.1, 0.8]) and math.isnan(web.completion_s[2])
    ideal = [10 * PACKET_S + 0.02, 100 * PACKET_S + 3 * 0.02]
    assert web.slowdown[:2] == pytest.approx([0.1 / ideal[0], 0.8 / ideal[1]])
    half = [one + 0.01 for one in ideal]
    assert web.slowdown_connected[:2] == pytest.approx([0.1 / half[0], 0.8 / half[1]])


def test_an_ideal_link_serves_the_shortest_first_or_all_evenly(tmp_path: Path) -> None:
    rows = traffic(
        {"start_us": 0, "completion_us": S, "size_bytes": 1448 * 100},
        {"start_us": 0, "completion_us": S, "size_bytes": 1448 * 50},
    )
    web, _ = traffic_flows(of_traffic(tmp_path, rows))
    big, small = 100 * PACKET_S, 50 * PACKET_S
    # The shorter one alone, then the longer; evenly the shorter ends when 2 x 50 have left.
    srpt = [(big + small + 0.02) / (big + 0.02), 1]
    assert web.slowdown_under("srpt") == pytest.approx(srpt, rel=1e-6)
    ps = [srpt[0], (2 * small + 0.02) / (small + 0.02)]
    assert web.slowdown_under("ps") == pytest.approx(ps, rel=1e-6)


def test_flows_at_once_leave_before_others_come(tmp_path: Path) -> None:
    rows = traffic(
        {"start_us": 0, "completion_us": 2 * S, "size_bytes": 1},
        {"start_us": 1 * S, "completion_us": 3 * S, "size_bytes": 1},
        {"start_us": 2 * S, "size_bytes": 1},
    )
    web, _ = traffic_flows(of_traffic(tmp_path, rows))
    times, counts = at_once(web, 10)
    assert times.tolist() == [0, 1, 2, 2, 3, 10] and counts.tolist() == [1, 2, 1, 2, 1, 0]
    # Stays of 2, 2 and 8 s in 10.
    assert mean_at_once(web, 0, 10) == pytest.approx(1.2)
    # From 1 s to 3 s: 1, 2 and 1 s.
    assert mean_at_once(web, 1, 3) == pytest.approx(2)
    assert mean_at_once(web, 5, 10) == pytest.approx(1)
    assert math.isnan(mean_at_once(web, 5, 5))


def test_a_summary_of_traffic_by_hand(tmp_path: Path) -> None:
    sizes = [10_000, 10_001, 100_000, 1_000_000, 10_000_000, 10_000_001]
    rows = traffic(*[
        {"start_us": (n + 1) * S, "completion_us": (n + 2) * S, "size_bytes": size,
         "packets_retransmitted": n, "timeouts": n % 2}
        for n, size in enumerate(sizes)
    ], {"start_us": 8 * S, "size_bytes": 500}, {"start_us": 0, "size_bytes": 7})  # fmt: skip
    found, empty = summarise_traffic(of_traffic(tmp_path, rows, 1))
    assert (found["flows"], found["finished"], found["timeouts"]) == (7, 6, 3)
    assert found["bytes"] == sum(sizes) + 500
    assert found["goodput_bps"] == pytest.approx(8 * sum(sizes) / 9)
    assert found["retransmit_ratio"] == pytest.approx(15 / 70)
    assert found["completion_s"]["mean"] == pytest.approx(1)
    classes = [(one["sizes"], one["flows"]) for one in found["classes"]]
    assert classes == [
        ("to 10,000 B", 2), ("to 100,000 B", 2), ("to 1,000,000 B", 1), ("to 10,000,000 B", 1),
        ("above", 1),
    ]  # fmt: skip
    # Six of 1 s, one from 8 s on, in 9 s; at most one at once.
    assert found["at_once"] == {"mean": pytest.approx(8 / 9), "max": 1}
    assert (empty["flows"], empty["retransmit_ratio"], empty["classes"]) == (0, None, [])
    assert empty["at_once"] == {"mean": 0, "max": 0}
    assert empty["yardsticks"] == {"srpt": None, "ps": None} and empty["goodput_bps"] == 0


def test_downloads_of_traffic_go_through_the_reverse_link(tmp_path: Path) -> None:
    plan = of_a_link()
    medium = {**plan["links"][0]["medium"], "reverse": {"rate_bps": 4_000_000, "qdisc": {}}}
    group = {"name": "web", "cc": {"name": "cubic"}, "direction": "down"}
    plan = {**plan, "links": [{"name": "path", "medium": medium}], "traffic": [group]}
    rows = traffic({"start_us": 0, "completion_us": S, "size_bytes": 1448})
    view = recorded(tmp_path, plan=plan, flow_samples=samples(0, [0]), traffic=rows)
    assert traffic_flows(view)[0].work_s == pytest.approx([2 * PACKET_S])


def of_pages(path: Path) -> View:
    page = {"name": "home", "cc": {"name": "bbr3"}, "objects": [{"bytes": 300}, {"bytes": 700}]}
    plan = {**of_a_link(), "pages": [page]}
    loads = [
        {"page_id": 0, "load": 0, "start_us": 0, "done_us": S},
        {"page_id": 0, "load": 2, "start_us": 5 * S},
        {"page_id": 0, "load": 1, "start_us": 2 * S, "done_us": 2 * S + 400_000},
    ]
    objects = [
        {"page_id": 0, "load": 1, "object": 1, "asked_us": 2 * S + 100_000, "done_us": 2_400_000},
        {"page_id": 0, "load": 1, "object": 0, "asked_us": 2 * S, "done_us": 2 * S + 50_000},
        {"page_id": 0, "load": 2, "object": 0, "asked_us": 5 * S, "done_us": 5 * S + 80_000},
        {"page_id": 0, "load": 0, "object": 0, "asked_us": 0, "done_us": S},
    ]
    ticks = samples(0, [0] * 9)
    return recorded(path, 1, plan=plan, flow_samples=ticks, page_loads=loads, page_objects=objects)


def test_page_times_are_in_seconds_in_the_order_of_loads(tmp_path: Path) -> None:
    (home,) = page_loads(of_pages(tmp_path))
    assert (home.name, home.cc, home.bytes) == ("home", "bbr3", 1000)
    assert home.start_s.tolist() == [2, 5]
    assert home.time_s[0] == pytest.approx(0.4) and math.isnan(home.time_s[1])
    assert home.objects_s[0] == pytest.approx([0.05, 0.3])
    assert home.objects_s[1][0] == pytest.approx(0.08) and math.isnan(home.objects_s[1][1])
    (found,) = summarise_pages(of_pages(tmp_path / "again"))
    assert (found["page"], found["loads"], found["finished"]) == ("home", 2, 1)
    assert found["time_s"]["p50"] == pytest.approx(0.4)
    assert [one["bytes"] for one in found["objects"]] == [300, 700]
    assert found["objects"][0]["time_s"]["mean"] == pytest.approx(0.065)
    assert recorded(tmp_path / "none").recording.has("page_loads") is False


def of_streams(path: Path, rows: list[dict[str, Any]], **more: Any) -> View:
    stream = {"name": "voice", "direction": "up", "frame_bytes": None, **more}
    plan = {**PLAN, "datagrams": [stream]}
    full = [{"stream_id": 0, "seq": n, "frame": n, "bytes": 100, **row}
            for n, row in enumerate(rows)]  # fmt: skip
    return recorded(path, 1, plan=plan, flow_samples=samples(0, [0] * 10), datagrams=full)


def test_jitter_is_rfc_3550s_with_a_gain_of_a_sixteenth(tmp_path: Path) -> None:
    # Delays of arrivals 10, 30, 20 ms; the lost one counts for nothing. |D| is 20 and 10.
    delays = [10_000, 30_000, None, 20_000]
    rows = [{"t_us": (n + 1) * S, "delay_us": delay} for n, delay in enumerate(delays)]
    (voice,) = streams(of_streams(tmp_path, rows))
    first = 20 / 16
    assert voice.jitter_s * 1e3 == pytest.approx(first + (10 - first) / 16)
    assert voice.loss_ratio == pytest.approx(1 / 4)
    assert voice.sent_s.tolist() == [1, 2, 3, 4]
    one = streams(of_streams(tmp_path / "one", rows[:1]))[0]
    assert math.isnan(one.jitter_s)
    (found,) = summarise_streams(of_streams(tmp_path / "all", rows))
    assert (found["stream"], found["sent"], found["frames"]) == ("voice", 4, None)
    assert found["delay_s"]["max"] == pytest.approx(0.03) and found["frames_in_time"] is None


def test_jitter_follows_the_order_of_arrival(tmp_path: Path) -> None:
    # The second, sent 1 ms later, overtakes the first: arrivals 5, 50, 8 ms later than sent.
    rows = [{"t_us": S, "delay_us": 50_000}, {"t_us": S + 1000, "delay_us": 5000},
            {"t_us": S + 60_000, "delay_us": 8000}]  # fmt: skip
    (voice,) = streams(of_streams(tmp_path, rows))
    first = 45 / 16
    assert voice.jitter_s * 1e3 == pytest.approx(first + (42 - first) / 16)


def test_what_may_be_under_way_at_the_end_is_no_loss(tmp_path: Path) -> None:
    # The run ends at 10 s and the largest delay is 1 s: what left at 9 s or before is lost.
    rows = [{"t_us": 2 * S, "delay_us": S}, {"t_us": 9 * S}, {"t_us": 9 * S + 1},
            {"t_us": S - 1, "delay_us": 5}]  # fmt: skip
    (voice,) = streams(of_streams(tmp_path, rows))
    assert voice.sent_s.tolist() == [2, 9] and voice.loss_ratio == pytest.approx(0.5)


def test_a_frame_is_in_time_if_all_its_datagrams_are(tmp_path: Path) -> None:
    # Deadline 100 ms from the frame's first datagram on.
    def row(t_ms: float, frame: int, delay_ms: float | None) -> dict[str, Any]:
        delay_us = None if delay_ms is None else round(delay_ms * 1e3)
        return {"t_us": S + round(t_ms * 1e3), "frame": frame, "delay_us": delay_us}

    rows = [
        row(0, 0, 50), row(10, 0, 90),  # just in time
        row(200, 1, 50), row(210, 1, 90.1),  # too late by 0.1 ms
        row(400, 2, 10), row(410, 2, None),  # lost
        row(600, 3, 10),
    ]  # fmt: skip
    view = of_streams(tmp_path, rows, deadline_ns=100_000_000, frame_bytes=200)
    (video,) = streams(view)
    assert video.frames_in_time() == (2, 4)
    (found,) = summarise_streams(view)
    assert (found["frames"], found["frames_in_time"]) == (4, 0.5)
    free = streams(of_streams(tmp_path / "free", rows))[0]
    assert free.frames_in_time() == (3, 4)
    assert streams(of_streams(tmp_path / "none", []))[0].frames_in_time() == (0, 0)


def test_processors_are_busy_for_what_they_did_not_idle(tmp_path: Path) -> None:
    def row(t_s: float, cpu: int, idle_s: float, user_s: float, irq_s: float) -> dict[str, Any]:
        names = {"user_us": user_s, "irq_us": irq_s, "idle_us": idle_s}
        zero = dict.fromkeys(("system_us", "softirq_us", "steal_us"), 0)
        return {"t_us": round(t_s * S), "machine": "m", "cpu": cpu, **zero,
                **{name: round(value * S) for name, value in names.items()}}  # fmt: skip

    rows = [row(1, 0, 0.4, 0.2, 0.1), row(1.5, 0, 0.5, 0.3, 0.2), row(2, 0, 1.4, 0.2, 0.1),
            row(1, 1, 0.9, 0.1, 0), row(2, 1, 1.0, 0.5, 0)]  # fmt: skip
    (load,) = machine_loads(recorded(tmp_path, cpu_samples=rows))
    assert (load.machine, load.processors, load.end_s.tolist()) == ("m", 2, [1, 2])
    # Busy 0.6 then 0; and 0.1 then 0.9.
    assert load.busiest == pytest.approx([0.6, 0.9])
    # In the first second the ticks met 2 of 3 parts user: 0.4, and 0.1 of the other.
    assert load.mean["user"] == pytest.approx([(0.4 + 0.1) / 2, 0.9 / 2])
    assert load.mean["irq"] == pytest.approx([0.1, 0])
    assert machine_loads(recorded(tmp_path / "none")) == []


def test_ports_and_memory_over_time(tmp_path: Path) -> None:
    nic = [{"t_us": t * S, "host": "h", "nic": "eth0", "received_packets": a, "sent_packets": b}
           for t, a, b in ((1, 100, 50), (3, 400, 250))]  # fmt: skip
    memory = [{"t_us": S, "machine": "m", "memory_bytes": 5}]
    view = recorded(tmp_path, nic_samples=nic, tcp_memory_samples=memory)
    times, rates = port_rates(view)["h eth0"]
    assert times.tolist() == [1, 3] and rates.tolist() == [150, 250]
    times, values = tcp_memory(view)["m"]
    assert times.tolist() == [1] and values.tolist() == [5]
    assert np.isnan(recorded(tmp_path / "none", flows=[flow(0)]).run_metrics["ping_mean_ms"])
