"""The metrics of a chunk of runs are those of `fullpipe.metrics`, run by run."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fullpipe import metrics
from fullpipe.metrics import View, summarise
from fullpipe.recording import TABLES, Recording
from fullpipe.sweep.measures import facts_of, measured, raw_of
from sweep_files import filled, sweep


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is None and other is None
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def test_every_metric_of_a_chunk_is_the_one_of_fullpipe_metrics(tmp_path: Path) -> None:
    found = sweep(sweep={"seeds": 2, "keep": "recordings"})
    store, outcome = filled(tmp_path / "store", found)
    assert outcome.ran == 12
    runs = {row["key"]: row for row in store.table("runs").to_pylist()}
    paths = {row["key"]: row for row in store.table("path").to_pylist()}
    flows: dict[str, list[dict[str, float]]] = {}
    for row in store.table("flows").to_pylist():
        flows.setdefault(row["key"], []).append(row)
    for key, run in runs.items():
        recording = Recording.open(store.recording(key))
        view, want = View(recording), summarise(recording)
        assert run["seed"] == want["seed"] and run["engine"] == "sim"
        assert _close(run["goodput_bps"], float(metrics.goodput_bps(view).sum()))
        assert _close(run["jain"], float(metrics.jain(metrics.goodput_bps(view))))
        assert _close(run["retransmit_ratio"], metrics.retransmission_ratio(view))
        for name in ("p50", "p95", "p99", "max"):
            assert _close(run[f"ping_{name}_ms"], want["ping_ms"][name])
        path = paths[key]
        assert _close(path["utilisation"], want["path"]["utilisation"])
        assert _close(path["loss_ratio"], want["path"]["loss_ratio"])
        assert _close(path["drops"], want["path"]["drops"])
        assert _close(path["marks"], want["path"]["marks"])
        assert _close(path["queue_bytes_mean"], want["path"]["queue_bytes"]["mean"])
        for name in ("mean", "p50", "p95", "max"):
            measured_delay = path[f"queue_delay_{name}_rttmin"]
            assert _close(measured_delay, want["path"]["queue_delay_rttmin"][name])
        spent = metrics.completion_s(view)
        for row, flow, seconds in zip(flows[key], want["flows"], spent, strict=True):
            assert row["flow"] == flow["flow"] and row["cc"] == flow["cc"]
            for name in ("goodput_bps", "share", "retransmit_ratio"):
                assert _close(row[name], flow[name])
            for name in ("min", "p50", "p95", "p99", "mean"):
                assert _close(row[f"rtt_{name}_us"], flow["rtt_us"][name])
            assert _close(row["cwnd_mean_packets"], flow["cwnd_packets"]["mean"])
            assert _close(row["completion_s"], None if np.isnan(seconds) else float(seconds))
    assert any(row["completion_s"] is not None for rows in flows.values() for row in rows)


def test_a_chunk_gives_each_run_what_it_gives_alone(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", sweep(sweep={"seeds": 1, "keep": "recordings"}))
    pairs = []
    for key in sorted(store.known()):
        recording = Recording.open(store.recording(key))
        metadata = recording.metadata
        plan = metadata["plan"]
        facts = facts_of(key, plan, plan["seed"], "sim", metadata["warmup_ns"])
        pairs.append((facts, raw_of({name: recording.table(name) for name in TABLES})))
    together = measured(pairs)
    for index, pair in enumerate(pairs):
        alone = measured([pair])
        assert alone["runs"].to_pylist() == together["runs"].slice(index, 1).to_pylist()
        assert alone["path"].to_pylist() == together["path"].slice(index, 1).to_pylist()


@pytest.mark.parametrize("table", ["runs", "flows", "path"])
def test_a_store_opens_in_polars(tmp_path: Path, table: str) -> None:
    polars = pytest.importorskip("polars")
    store, _ = filled(tmp_path / "store", sweep())
    frame = polars.read_parquet(tmp_path / "store" / "parts" / "*" / f"{table}.parquet")
    assert frame.height == store.table(table).num_rows > 0
