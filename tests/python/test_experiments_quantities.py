"""What an entry can measure in one run, against sums done by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fullpipe.experiments.measure import check, distributions, measure
from fullpipe.language import ExpressionError
from fullpipe.recording import TABLES, Recording, empty_table, write_recording

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


def by_hand(folder: Path) -> Recording:
    """Flow a.1 delivers 0.6 MB a second, a.2 0.3 MB; one packet in a hundred is dropped."""
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
             "max_bw_bps": 8_000_000 if t > 5 else 4_000_000, "extra_acked_packets": 12}
            for t in seconds for i in range(2)
        ],
    }  # fmt: skip
    tables = {name: empty_table(name) for name in TABLES}
    for name, given in rows.items():
        full = [{column: row.get(column) for column in TABLES[name].names} for row in given]
        tables[name] = pa.Table.from_pylist(full, schema=TABLES[name])
    metadata = {"engine": "sim", "plan": PLAN, "warmup_ns": 10**9, "health": {}, "seed": 1}
    return write_recording(folder / "recording", metadata, "", tables)


#: Expression -> its value, over the 9 s after the warm-up of one.
VALUES = {
    "goodput_mbps()": 7.2,
    "goodput_mbps('a.2')": 2.4,
    "goodput_mbps('a')": 7.2,
    "goodput_mbps('bbr3')": 7.2,
    "flow_goodput_mbps('a', 'max')": 4.8,
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
    # 1, 1 and 2 of two flows in the three seconds in which any probes the RTT.
    "phase_together('probe_rtt')": 4 / 6,
    "estimates_over_rate('max')": 2.0,
    "estimates_over_rate('median', 2, 5)": 1.0,
    # 12 packets of 1000 B at 4.8 Mbit/s.
    "bbr_jitter_ms('a.1')": 20.0,
    "100 * loss() + 1": 2.0,
    "share('a.1') / share('a.2')": 2.0,
}


def test_every_value_is_what_a_hand_computes(tmp_path: Path) -> None:
    measured = measure({text: text for text in VALUES}, by_hand(tmp_path))
    assert measured == pytest.approx(VALUES)


def test_nothing_to_measure_is_nan_and_never_zero(tmp_path: Path) -> None:
    texts = ("ping_ms()", "slowdown()", "completion_s()", "loss() / (loss() - loss())",
             "queue_delay_in_phase_rttmin('a', 'drain')", "phase_together('refill')",
             "phase_interval_s('a', 'startup')", "queue_delay_between_rttmin(20, 30)")  # fmt: skip
    measured = measure({text: text for text in texts}, by_hand(tmp_path))
    assert all(math.isnan(value) for value in measured.values()), measured


def test_what_plots_need_outlives_the_recording(tmp_path: Path) -> None:
    kept = distributions(by_hand(tmp_path))
    assert kept["ping_ms"] == []
    assert kept["goodput_mbps"] == [4.8, 2.4]
    delay = kept["queue_delay_rttmin"]
    assert (len(delay), delay[0], delay[50], delay[100]) == (101, 0.0, 0.0, 1.5)


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
