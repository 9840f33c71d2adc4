"""What an entry can measure in one run, against sums done by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fullpipe.experiments.measure import check, distributions, measure
from fullpipe.expr.language import ExpressionError
from fullpipe.recording.recording import (
    OPTIONAL_TABLES,
    TABLES,
    Recording,
    empty_table,
    write_recording,
)

#: 8 Mbit/s is 1 MB a second; 20 ms, so 1 RTTmin of queue is 20 kB.
PLAN = {
    "name": "by hand", "duration_ns": 10 * 10**9,
    "path": {"rate_bps": 8_000_000, "reverse_rate_bps": None, "forward_delay_ns": 0,
             "reverse_delay_ns": 20_000_000, "mtu_bytes": 1500,
             "qdisc": {"limit_bytes": 40_000}},
}  # fmt: skip
#: Second by second: phases of the two flows, backlog.
PHASES = (
    ("startup", "startup"), ("cruise", "cruise"), ("up", "cruise"), ("up", "probe_rtt"),
    ("cruise", "probe_rtt"), ("probe_rtt", "probe_rtt"), ("cruise", "cruise"), ("up", "cruise"),
    ("cruise", "cruise"), ("cruise", "up"),
)  # fmt: skip
BACKLOG = (40_000, 0, 20_000, 30_000, 10_000, 0, 0, 20_000, 0, 0)


#: What else a run may have: a second queue, two probes, a page of which the third load did not end.
BESIDE: dict[str, list[dict[str, Any]]] = {
    "queue_samples": [
        {"t_us": t * 10**6, "queue": "wifi.forward", "queue_bytes": 1000 * (t % 2)}
        for t in range(1, 11)
    ],
    "ping_samples": [
        {"t_us": t * 10**6, "probe": name, "seq": t, "rtt_us": rtt_us}
        for t in range(2, 5) for name, rtt_us in (("EF", 10_000), ("BK", 30_000 + 1000 * t))
    ],
    "page_loads": [
        {"page_id": 0, "page": "news", "load": load, "start_us": (2 + load) * 10**6, "objects": 1,
         "done_us": (4 + 2 * load) * 10**6 if load < 2 else None, "bytes": 10}
        for load in range(3)
    ],
    "page_objects": [],
}  # fmt: skip


def with_beside(folder: Path) -> Recording:
    beside = {
        "probes": [{"name": "EF"}, {"name": "BK"}],
        "pages": [{"name": "news", "cc": {"name": "bbr3"}, "objects": [{"bytes": 10}]}],
    }
    return by_hand(folder, beside, BESIDE)


def by_hand(
    folder: Path,
    plan: dict[str, Any] | None = None,
    more: dict[str, list[dict[str, Any]]] | None = None,
) -> Recording:
    """Flow a.1 delivers 0.6 MB a second, a.2 0.3 MB; one packet in a hundred is dropped. `plan`
    and rows of tables come on top."""
    rates = (600_000, 300_000)
    seconds = range(1, 11)
    rows: dict[str, list[dict[str, Any]]] = {
        "flows": [
            {"flow_id": i, "flow": f"a.{i + 1}", "cc": "bbr3", "direction": "up", "start_us": 0,
             "base_rtt_us": 20_000, "mss_bytes": 1000, "bytes_delivered": 10 * rates[i]}
            for i in range(2)
        ],
        "flow_samples": [
            {"t_us": t * 10**6, "flow_id": i, "bytes_delivered": t * rates[i],
             "packets_sent": 1000 * t, "packets_retransmitted": 10 * t, "srtt_us": 30_000,
             "cwnd_packets": 10 + i}
            for t in seconds for i in range(2)
        ],
        "queue_samples": [
            {"t_us": t * 10**6, "queue": "forward", "queue_bytes": BACKLOG[t - 1],
             "sent_bytes": 950_000 * t, "sent_packets": 990 * t, "dropped_packets": 10 * t,
             "marked_packets": 99 * t, "random_lost_packets": 0, "random_marked_packets": 0}
            for t in seconds
        ],
        "cc_samples": [
            {"t_us": t * 10**6, "flow_id": i, "phase": PHASES[t - 1][i],
             "max_bw_bps": 8_000_000 if t > 5 else 4_000_000, "extra_acked_packets": 12,
             "min_rtt_us": 24_000 if t > 5 else 20_000}
            for t in seconds for i in range(2)
        ],
    }  # fmt: skip
    more = more or {}
    tables = {name: empty_table(name) for name in TABLES}
    for name in {**rows, **more}:
        schema = {**TABLES, **OPTIONAL_TABLES}[name]
        given = [*rows.get(name, []), *more.get(name, [])]
        full = [{column: row.get(column) for column in schema.names} for row in given]
        tables[name] = pa.Table.from_pylist(full, schema=schema)
    plan = {**PLAN, **(plan or {})}
    metadata = {"engine": "sim", "plan": plan, "warmup_ns": 10**9, "health": {}, "seed": 1}
    return write_recording(folder / "recording", metadata, "", tables)


#: Expression -> its value, over the 9 s after the warm-up of one.
VALUES = {
    "goodput_mbps()": 7.2,
    "goodput_mbps('a.2')": 2.4,
    "goodput_mbps('a')": 7.2,
    "goodput_mbps('bbr3')": 7.2,
    "flow_goodput_mbps('a', 'max')": 4.8,
    "window_goodput_mbps('a.2', 'max', 1)": 2.4,
    "window_goodput_mbps(at='min', window_s=3)": 7.2,
    "goodput_between_mbps('a.1', 2, 5)": 4.8,
    "link_share('a.1')": 0.6,
    "share('a.1')": 2 / 3,
    "utilisation()": 0.95,
    "loss()": 0.01,
    "marks()": 0.1,
    "retransmits()": 0.01,
    "jain()": 0.9**2 / (2 * (0.6**2 + 0.3**2)),
    "jain('a.1')": 1.0,
    "jain_between('a.1', 'a.2')": 0.9,
    "queue_delay_rttmin('max')": 1.5,
    "queue_delay_ms('max')": 30.0,
    "queue_delay_rttmin('median')": 0.0,
    "queue_delay_rttmin('mean')": 4 / 9,
    "queue_delay_above(0.9)": 3 / 9,
    "queue_delay_between_rttmin(2, 5, 'mean')": 1.0,
    "queue_delay_in_phase_rttmin('a.1', 'up', 'mean')": 3.5 / 3,
    "queue_delay_in_phase_rttmin('a.1', 'cruise', 'max')": 0.5,
    "backlog_bytes('mean')": 80_000 / 9,
    "backlog_nonzero()": 4 / 9,
    "occupancy()": 2 / 9,
    "rtt_ms('a', 'max')": 30.0,
    "cwnd_packets('a.2')": 11.0,
    "phase_share('a.1', 'up')": 3 / 9,
    "phase_interval_s('a.1', 'up')": 5.0,
    # Up from 3 to 5 s and from 8 to 9 s; of three stays in Cruise that end, two lead to Up.
    "phase_stay_s('a.1', 'up', 'max')": 2.0,
    "phase_stay_s('a.1', 'up', 'min')": 1.0,
    "phase_followed('a.1', 'cruise', 'up')": 2 / 3,
    # 1, 1 and 2 of two flows in the three seconds in which any probes the RTT.
    "phase_together('probe_rtt')": 4 / 6,
    "estimates_over_rate('max')": 2.0,
    "estimates_over_rate('median', 2, 5)": 1.0,
    # 24 ms from 6 s on, over a base RTT of 20 ms.
    "min_rtt_over_base('a', at='max')": 1.2,
    "min_rtt_over_base('a.1', 'up', 'min')": 1.0,
    # 12 packets of 1000 B at 4.8 Mbit/s.
    "bbr_jitter_ms('a.1')": 20.0,
    "100 * loss() + 1": 2.0,
    "share('a.1') / share('a.2')": 2.0,
}


def test_every_value_is_what_a_hand_computes(tmp_path: Path) -> None:
    measured = measure({text: text for text in VALUES}, by_hand(tmp_path))
    assert measured == pytest.approx(VALUES)


#: Of the recording with a second queue, probes and a page.
VALUES_BESIDE = {
    "backlog_bytes('mean', 'wifi.forward')": 4000 / 9,
    "backlog_nonzero('wifi.forward')": 4 / 9,
    "backlog_bytes('max')": 30_000.0,
    "ping_ms('median', 'EF')": 10.0,
    "ping_ms('median', 'BK')": 33.0,
    "ping_ms('max')": 34.0,
    "page_s('news')": 2.5,
    "page_s('news', 'max')": 3.0,
    "page_loads()": 2.0,
}


def test_queues_probes_and_pages_are_measured_by_their_names(tmp_path: Path) -> None:
    measured = measure({text: text for text in VALUES_BESIDE}, with_beside(tmp_path))
    assert measured == pytest.approx(VALUES_BESIDE)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("backlog_bytes('mean', 'home')", "queue is called 'home'; queues are forward, wifi"),
        ("ping_ms('mean', 'VO')", "no probe is called 'VO'; probes are EF, BK"),
        ("page_s('mail')", "no page is called 'mail'; pages are news"),
    ],
)
def test_an_unknown_queue_probe_or_page_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ExpressionError, match=says):
        measure({"x": text}, with_beside(tmp_path))


def test_traffics_values_are_what_a_hand_computes(tmp_path: Path) -> None:
    # Payload of 1 MB a second: flows of 1, 3 and 6 MB; the last does not finish within 10 s.
    group = {"name": "web", "direction": "up", "cc": {"name": "cubic"}}
    path = {**PLAN["path"], "rate_bps": 8 * 1_000_000 * (1448 + 66) / 1448}
    rows = [
        {"group_id": 0, "number": k, "sender": 0, "base_rtt_us": 20_000, "start_us": start * 10**6,
         "size_bytes": size * 10**6, "completion_us": end and end * 10**6, "chunks": 1,
         "pause_us": 0, "bytes_acked": 0, "packets_sent": 1, "packets_retransmitted": 0,
         "timeouts": 0}
        for k, (start, end, size) in enumerate([(1, 4, 1), (2, 8, 3), (8, None, 6)])
    ]  # fmt: skip
    tables = {name: empty_table(name) for name in TABLES}
    tables["traffic"] = pa.Table.from_pylist(rows, schema=OPTIONAL_TABLES["traffic"])
    plan = {**PLAN, "path": path, "traffic": [group]}
    metadata = {"engine": "sim", "plan": plan, "warmup_ns": 0, "health": {}, "seed": 1}
    recording = write_recording(tmp_path / "traffic", metadata, "", tables)
    slow = [3 / 1.02, 6 / 3.02]
    # SRPT: the first is done at 2, the second starts then; neither waits.
    wanted = {
        "traffic_slowdown()": sum(slow) / 2,
        "traffic_slowdown('web', 'max')": slow[0],
        "traffic_slowdown_connected('cubic', 'min')": 6 / 3.03,
        "traffic_slowdown_under('srpt')": 1.0,
        "traffic_at_once()": 2.0,
        "traffic_at_once('web', 'mean')": (3 + 6 + 2) / 10,
        "traffic_offered_mbps()": 8.0,
        "traffic_flows_above(1e6)": 2 / 3,
        "traffic_bytes_above(3e6)": 0.6,
    }
    measured = measure({text: text for text in wanted}, recording)
    assert measured == pytest.approx(wanted)
    with pytest.raises(ExpressionError, match="no traffic belongs to 'mail'; groups are web"):
        measure({"x": "traffic_at_once('mail')"}, recording)


def test_nothing_to_measure_is_nan_and_never_zero(tmp_path: Path) -> None:
    texts = ("ping_ms()", "slowdown()", "completion_s()", "loss() / (loss() - loss())",
             "queue_delay_in_phase_rttmin('a', 'drain')", "phase_together('refill')",
             "phase_interval_s('a', 'startup')", "queue_delay_between_rttmin(20, 30)",
             "page_s()")  # fmt: skip
    measured = measure({text: text for text in texts}, by_hand(tmp_path))
    assert all(math.isnan(value) for value in measured.values()), measured


def test_what_plots_need_outlives_the_recording(tmp_path: Path) -> None:
    kept = distributions(by_hand(tmp_path, {"seed": 31}))
    assert kept["ping_ms"] == []
    assert kept["goodput_mbps"] == [4.8, 2.4]
    delay = kept["queue_delay_rttmin"]
    assert (len(delay), delay[0], delay[50], delay[100]) == (101, 0.0, 0.0, 1.5)
    total = kept["total_goodput_mbps"]
    assert len(total) == 101 and total == sorted(total)
    assert not any(name.startswith("over_time") for name in kept), "of few runs only"
    kept = distributions(by_hand(tmp_path / "first", {"seed": 1}))
    # Over time: the queue's samples, and for each flow a rate in each window.
    assert max(kept["over_time_queue_delay_rttmin"]) == 1.5
    windows = kept["over_time_goodput_mbps_s"]
    rates = np.reshape(kept["over_time_goodput_mbps"], (2, len(windows)))
    assert rates.mean(axis=1) == pytest.approx([4.8, 2.4], rel=0.02)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("goodput()", "'goodput' is no metric"),
        ("share('a', 'b')", "too many positional arguments"),
        ("phase_share('a', 'ProbeBW_UP')", "is no phase; known are startup"),
        ("share(share)", "not a plain number or text"),
        ("loss() if 1 else 2", "not part of the language"),
        ("().__class__", "not a plain number or text"),
        ("loss(**{})", "not part of the language"),
        ("1" * 2000, "longer than"),
        ("+".join(["loss()"] * 200), "longer than|too long"),
    ],
)
def test_an_expression_outside_the_language_is_refused(text: str, says: str) -> None:
    with pytest.raises(ExpressionError, match=says):
        check(text)


def test_an_unknown_group_and_a_wrong_quantile_are_named(tmp_path: Path) -> None:
    recording = by_hand(tmp_path)
    with pytest.raises(ExpressionError, match=r"no flow belongs to 'b'; flows are a\.1, a\.2"):
        measure({"x": "share('b')"}, recording)
    with pytest.raises(ExpressionError, match="'most' is not mean, min"):
        measure({"x": "queue_delay_rttmin('most')"}, recording)
