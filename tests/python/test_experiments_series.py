"""The series that runs keep for figures, and how figures draw them, against sums done by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fullpipe.experiments import over_time, series
from fullpipe.experiments.entry import Plot
from fullpipe.experiments.measure import distributions
from fullpipe.experiments.run_store import StoredRun
from fullpipe.recording.recording import (
    OPTIONAL_TABLES,
    TABLES,
    Recording,
    empty_table,
    write_recording,
)

#: 8 Mbit/s and 20 ms.
PATH = {
    "rate_bps": 8_000_000, "reverse_rate_bps": None, "forward_delay_ns": 0,
    "reverse_delay_ns": 20_000_000, "mtu_bytes": 1500, "qdisc": {"limit_bytes": 40_000},
}  # fmt: skip
#: Phases of the first flow, half a second each.
PHASES = ("startup", "cruise", "refill", "up", "down", "cruise", "refill", "up")


def recorded(folder: Path, seed: int, more: dict[str, list[dict[str, Any]]]) -> Recording:
    """Four seconds at 10 Hz: flow 1 delivers 50 kB in each 0.1 s, flow 2 from 2 s on 25 kB."""
    ticks = range(1, 41)
    starts = (0.0, 2.0)
    sent = (50_000, 25_000)
    rows: dict[str, list[dict[str, Any]]] = {
        "flows": [
            {"flow_id": i, "flow": f"a.{i + 1}", "cc": "bbr3", "direction": "up",
             "start_us": starts[i] * 1e6, "base_rtt_us": 20_000, "mss_bytes": 1000,
             "bytes_delivered": round((4 - starts[i]) * 10) * sent[i]}
            for i in range(2)
        ],
        "flow_samples": [
            {"t_us": t * 100_000, "flow_id": i, "inflight_packets": 10 + i, "cwnd_packets": 20,
             "bytes_delivered": max(0, t - round(10 * starts[i])) * sent[i],
             "packets_lost": int(t >= 21)}
            for t in ticks for i in range(2)
        ],
        "queue_samples": [
            {"t_us": t * 100_000, "queue": "forward", "queue_bytes": 1000 * t} for t in ticks
        ],
        "cc_samples": [
            {"t_us": t * 100_000, "flow_id": i, "phase": PHASES[(t - 1) // 5],
             "max_bw_bps": 4_000_000 * (i + 1), "extra_acked_packets": 12,
             "inflight_longterm_packets": None if t < 20 else 15}
            for t in ticks for i in range(2)
        ],
    }  # fmt: skip
    tables = {name: empty_table(name) for name in TABLES}
    for name, given in {**rows, **more}.items():
        schema = {**TABLES, **OPTIONAL_TABLES}[name]
        full = [{column: row.get(column) for column in schema.names} for row in given]
        tables[name] = pa.Table.from_pylist(full, schema=schema)
    plan = {"name": "series", "duration_ns": 4 * 10**9, "path": PATH, "seed": seed}
    if "traffic" in more:
        plan["traffic"] = [{"name": "web", "direction": "up", "cc": {"name": "cubic"}}]
    metadata = {"engine": "sim", "plan": plan, "warmup_ns": 0, "health": {}, "seed": seed}
    return write_recording(folder / f"seed{seed}", metadata, "", tables)


def kept(folder: Path, seed: int = 1, **more: list[dict[str, Any]]) -> dict[str, list[float]]:
    return distributions(recorded(folder, seed, more))


def test_a_streams_windows_begin_with_its_start(tmp_path: Path) -> None:
    first, second = np.reshape(kept(tmp_path)["stream_goodput_mbps"], (2, 101))
    assert first == pytest.approx(4.0)
    assert second == pytest.approx(2.0), "the two seconds before its start are no windows of it"


def test_series_of_the_algorithm_are_those_of_its_samples(tmp_path: Path) -> None:
    found = kept(tmp_path)
    for name, wanted in (
        # 12 packets of 1000 B at 4 and at 2 Mbit/s; estimates as sampled.
        ("bbr_jitter_ms", (24.0, 48.0)), ("estimate_mbps", (4.0, 8.0)),
    ):  # fmt: skip
        rows = np.reshape(found[f"over_time_{name}"], (2, -1))
        assert np.nanmax(rows, axis=1) == pytest.approx(wanted)
        assert rows.shape[1] == len(found[f"over_time_{name}_s"])
    assert found["over_time_phase refill"] == [1.1, 3.1]
    assert found["over_time_phase startup"] == [], "it was there at the first sample"


def test_data_in_flight_have_their_bounds_and_losses(tmp_path: Path) -> None:
    found = kept(tmp_path)
    times = np.array(found["over_time_inflight_packets_s"])
    flight, window, long_term, short_term, lost = np.reshape(
        found["over_time_inflight_packets"], (5, times.size)
    )
    assert set(flight) == {10.0} and set(window) == {20.0}
    assert times[np.isfinite(long_term)].min() == 2.0 and np.isnan(short_term).all()
    assert times[lost > 0].tolist() == [2.1]


def test_a_series_is_kept_of_as_many_runs_as_figures_show(tmp_path: Path) -> None:
    names = {seed: set(kept(tmp_path, seed)) for seed in (1, 3, 4, 10, 11, 30, 31)}
    assert {s for s in names if "over_time_queue_delay_rttmin" in names[s]} == {1}
    assert {s for s in names if "over_time_estimate_mbps" in names[s]} == {1, 3}
    assert {s for s in names if "over_time_bbr_jitter_ms" in names[s]} == {1, 3, 4, 10}
    course = "over_time_course queue_delay_rttmin"
    assert {s for s in names if course in names[s]} == {1, 3, 4, 10, 11, 30}


def test_half_of_the_bytes_may_be_of_a_few_flows(tmp_path: Path) -> None:
    sizes = [1000] * 9 + [90_000, 901_000]
    rows = [
        {"group_id": 0, "number": k, "sender": 0, "base_rtt_us": 20_000, "start_us": k * 1000,
         "size_bytes": size, "completion_us": 3_000_000, "chunks": 1, "pause_us": 0,
         "bytes_acked": size, "packets_sent": 1, "packets_retransmitted": 0, "timeouts": 0}
        for k, size in enumerate(sizes)
    ]  # fmt: skip
    found = kept(tmp_path, 1, traffic=rows)
    # Of a million bytes 9,000 are of the small flows and 901,000 of the largest.
    assert found["flow_bytes"][50] == 1000
    by_byte = found["flow_bytes_by_byte"]
    assert (by_byte[0], by_byte[5], by_byte[50]) == (1000, 90_000, 901_000)
    assert kept(tmp_path / "none")["flow_bytes"] == []


def stored(seed: int, values: list[float]) -> StoredRun:
    """A run with a series of the first flow from 5 to 7 s."""
    times = [5.0, 6.0, 7.0]
    return StoredRun(seed, {}, {
        "over_time_bbr_jitter_ms_s": times, "over_time_bbr_jitter_ms": values,
        "over_time_course queue_delay_rttmin_s": times,
        "over_time_course queue_delay_rttmin": values[:3],
        "over_time_queue_delay_rttmin_s": times, "over_time_queue_delay_rttmin": values[:3],
        "over_time_phase up": [4.0, 5.5, 6.5],
    })  # fmt: skip


def test_consecutive_runs_lie_one_after_another() -> None:
    plot = Plot(kind="time", of="bbr_jitter_ms", consecutive=True, flow=2)
    runs = [stored(1, [1, 2, 3, 10, 20, 30]), stored(2, [4, 5, 6, 40, 50, 60])]
    (line,) = over_time.traces(plot, runs, "jitter 10", "#000000")
    assert line.name == "jitter 10"
    assert line.x.tolist() == [0, 1, 2, 2, 3, 4]
    assert line.y.tolist() == [10, 20, 30, 40, 50, 60]


def test_quartiles_are_those_of_the_runs_at_each_time() -> None:
    plot = Plot(kind="time", of="queue_delay_rttmin", quartiles=True)
    runs = [stored(seed, [seed, 2.0 * seed, 0]) for seed in range(1, 6)]
    (line,) = over_time.traces(plot, runs, "", "#000000")
    assert line.y.tolist() == [3, 6, 0]
    assert line.band is not None
    assert [side.tolist() for side in line.band] == [[2, 4, 0], [4, 8, 0]]


def test_lines_of_phases_are_as_high_as_what_is_drawn_and_within_it() -> None:
    plot = Plot(kind="time", of="queue_delay_rttmin", phases=["up", "drain"], between_s=(5, 6))
    runs = [stored(1, [1, 2, 9])]
    drawn = over_time.traces(plot, runs, "", "#000000")
    assert drawn[0].x.tolist() == [5, 6]
    (line,) = over_time.phases(plot, runs, drawn)
    assert line.name == "UP begins"
    assert line.x.tolist() == [5.5] * 3
    assert line.y[:2].tolist() == [0, 2] and np.isnan(line.y[2])


def test_percentiles_of_nothing_are_none() -> None:
    assert series.percentiles(np.array([np.nan])) == []
    assert series.percentiles(np.arange(101.0))[25] == 25.0
