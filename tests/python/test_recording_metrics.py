"""Recordings are whole or absent; metrics agree with sums done by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fullpipe.base.errors import UserError
from fullpipe.metrics import (
    View,
    convergence_time_s,
    jain,
    jain_over_time,
    link_share,
    smooth_throughput_over_time,
    summarise,
    throughput_over_time,
)
from fullpipe.recording.recording import (
    TABLES,
    Recording,
    RecordingError,
    empty_table,
    write_recording,
)

#: 10 Mbit/s, 40 ms; flow 0 delivers 6 Mbit/s, flow 1 3 Mbit/s, the queue holds one BDP.
PLAN = {
    "name": "by hand", "duration_ns": 10 * 10**9,
    "path": {"rate_bps": 10**7, "reverse_rate_bps": None, "forward_delay_ns": 0,
             "reverse_delay_ns": 40_000_000, "mtu_bytes": 1500},
}  # fmt: skip


def table(name: str, rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(
        [{column: row.get(column) for column in TABLES[name].names} for row in rows],
        schema=TABLES[name],
    )


def by_hand(path: Path) -> Recording:
    rates = [6_000_000, 3_000_000]
    flows = [
        {"flow_id": flow, "flow": f"f{flow}", "cc": ["bbr3", "cubic"][flow], "direction": "up",
         "start_us": 0, "bytes_delivered": rates[flow] * 10 // 8, "mss_bytes": 1448,
         "base_rtt_us": 40_000}
        for flow in range(2)
    ]  # fmt: skip
    samples = [
        {"t_us": t * 100_000, "flow_id": flow, "bytes_delivered": rates[flow] * t // 80,
         "cwnd_packets": 20, "srtt_us": 80_000, "min_rtt_us": 40_000,
         "packets_sent": 100 * t, "packets_retransmitted": t}
        for t in range(1, 101) for flow in range(2)
    ]  # fmt: skip
    queue = [
        {"t_us": t * 100_000, "queue": "forward", "queue_bytes": 50_000, "queue_packets": 33,
         "sent_bytes": 125_000 * t, "sent_packets": 83 * t, "dropped_packets": 0,
         "marked_packets": 0, "random_lost_packets": 0, "random_marked_packets": 0}
        for t in range(1, 101)
    ]  # fmt: skip
    tables = {name: empty_table(name) for name in TABLES}
    tables |= {
        "flows": table("flows", flows),
        "flow_samples": table("flow_samples", samples),
        "queue_samples": table("queue_samples", queue),
    }
    metadata = {"engine": "sim", "seed": 1, "plan": PLAN, "warmup_ns": 2 * 10**9, "health": {}}
    return write_recording(path, metadata, "", tables)


def test_a_summary_agrees_with_sums_by_hand(tmp_path: Path) -> None:
    summary = summarise(by_hand(tmp_path / "r"))
    assert summary["flows"][0]["goodput_bps"] == pytest.approx(6e6)
    assert summary["flows"][0]["share"] == pytest.approx(2 / 3)
    assert summary["flows"][0]["retransmit_ratio"] == pytest.approx(0.01)
    assert summary["flows"][1]["rtt_us"]["p50"] == 80_000
    assert summary["path"]["utilisation"] == pytest.approx(1.0)
    assert summary["path"]["queue_delay_rttmin"]["p50"] == pytest.approx(1.0)
    assert summary["jain"] == pytest.approx(81 / (2 * 45))
    json.dumps(summary, allow_nan=False)


def test_link_share_is_goodput_over_capacity(tmp_path: Path) -> None:
    view = View(by_hand(tmp_path / "r"))
    assert link_share(view, "bbr3") == pytest.approx(0.6)
    assert link_share(view, "cubic") == pytest.approx(0.3)


def test_jains_index_is_one_for_equals_and_one_nth_for_a_monopoly() -> None:
    assert jain(np.array([3.0, 3.0, 3.0])) == pytest.approx(1)
    assert jain(np.array([5.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert np.isnan(jain(np.array([0.0, 0.0])))


def test_convergence_needs_the_index_to_stay_above_the_threshold(tmp_path: Path) -> None:
    view = View(by_hand(tmp_path / "r"), start_s=0)
    _, values = jain_over_time(view)
    assert values == pytest.approx(np.full(10, 0.9))
    assert convergence_time_s(view, threshold=0.85) == pytest.approx(0)
    assert convergence_time_s(view, threshold=0.95) is None


@pytest.mark.parametrize("are_counted", [True, False])
def test_a_hole_that_is_filled_draws_no_flow_faster_than_its_link(
    tmp_path: Path, are_counted: bool
) -> None:
    recording = by_hand(tmp_path / "r")
    tables = {name: recording.table(name) for name in TABLES}
    rows = tables["flow_samples"].to_pylist()
    for row in rows:
        row["packets_delivered"] = row["bytes_delivered"] // 1448 if are_counted else None
        if 3_000_000 < row["t_us"] < 5_000_000:  # packets behind a hole are SACKed
            rate_bps = [6_000_000, 3_000_000][row["flow_id"]]
            row["bytes_delivered"] = 3 * rate_bps // 8
    tables["flow_samples"] = table("flow_samples", rows)
    metadata = {"engine": "vm", "seed": 1, "plan": PLAN, "warmup_ns": 0, "health": {}}
    view = View(write_recording(tmp_path / "held", metadata, "", tables), start_s=0)
    _, by_bytes = throughput_over_time(view)
    assert by_bytes[0][3:5] == pytest.approx([0, 12e6])
    ends, drawn = smooth_throughput_over_time(view)
    if are_counted:
        assert drawn == pytest.approx(np.array([[6e6] * ends.size, [3e6] * ends.size]), rel=0.01)
    else:
        assert drawn == pytest.approx(by_bytes)


def test_a_recording_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    tables = {name: empty_table(name) for name in TABLES}
    del tables["events"]
    with pytest.raises(KeyError):
        write_recording(tmp_path / "r", {}, "", tables)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["s3:bucket", "a:b/c"])
def test_a_relative_path_with_a_colon_is_a_folder_of_this_machine(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    by_hand(Path(place))
    assert Recording.open(tmp_path / place).table("flows").num_rows == 2


def test_a_folder_that_exists_is_not_touched(tmp_path: Path) -> None:
    by_hand(tmp_path / "r")
    with pytest.raises(UserError, match="exists already"):
        by_hand(tmp_path / "r")


@pytest.mark.parametrize("damage", ["no metadata", "no table", "bad table", "later format"])
def test_a_damaged_recording_is_refused_with_the_file_named(tmp_path: Path, damage: str) -> None:
    path = by_hand(tmp_path / "r").path
    if damage == "no metadata":
        (path / "metadata.json").unlink()
    elif damage == "no table":
        (path / "flows.parquet").unlink()
    elif damage == "bad table":
        (path / "flows.parquet").write_bytes(b"PAR1 nonsense PAR1")
    else:
        (path / "metadata.json").write_text('{"format_version": 99}', encoding="utf-8")
    with pytest.raises(RecordingError, match=str(path)):
        summarise(Recording.open(path))
