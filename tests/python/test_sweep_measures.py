"""The metrics of a chunk of runs are those of `fullpipe.metrics`, run by run."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import tomli_w

from fullpipe import metrics
from fullpipe.engines import run_scenario
from fullpipe.metrics import View, summarise
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import TABLES, Recording, write_recording
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.measures import Rows, facts_of, measured, recorded
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
        pairs.append((facts, {name: recording.table(name) for name in TABLES}))
    together = measured(pairs)
    for index, pair in enumerate(pairs):
        alone = measured([pair])
        assert alone["runs"].to_pylist() == together["runs"].slice(index, 1).to_pylist()
        assert alone["path"].to_pylist() == together["path"].slice(index, 1).to_pylist()


def _drawn(draw: random.Random) -> dict[str, object]:
    """A small scenario of any kind."""
    down = draw.random() < 0.2
    flows: list[dict[str, object]] = []
    for _ in range(draw.choice([1, 2, 4])):
        flow: dict[str, object] = {"cc": draw.choice(["bbr3", "bbr1", "cubic", "reno"])}
        if down or draw.random() < 0.2:
            flow["direction"] = "down"
        if draw.random() < 0.3:
            flow["start"] = f"{draw.randint(0, 900)}ms"
        if draw.random() < 0.3:
            flow["amount"] = f"{draw.randint(1, 200)}kB"
        flows.append(flow)
    path: dict[str, object] = {
        "rate": draw.choice(["1mbit", "10mbit"]), "rtt": f"{draw.randint(1, 120)}ms",
        "buffer": draw.choice(["0.5bdp", "2bdp", "30pkt"]),
        "qdisc": draw.choice(["fifo", "fifo", "fq_codel", "pie"]),
        "loss": draw.choice([0, 0, 0.02]),
    }  # fmt: skip
    document: dict[str, object] = {
        "duration": "1500ms", "seed": draw.randint(1, 99), "path": path, "flow": flows,
        "warmup": draw.choice(["0", "333ms"]), "sample_interval": draw.choice(["100ms", "33ms"]),
        "probe": [{"kind": "ping"}] if draw.random() < 0.5 else [],
    }  # fmt: skip
    if draw.random() < 0.2:
        row = {"name": "far", "rate": "1mbit", "delay": "5ms"}
        document |= {"path": {}, "link": [{"name": "near", "rate": "5mbit"}, row]}
    if draw.random() < 0.1:
        document |= {"flow": [], "page": [{"cc": "cubic", "levels": [["30kB"]]}]}
    return document


def test_what_is_measured_in_memory_is_what_is_measured_of_the_recording(tmp_path: Path) -> None:
    draw = random.Random(7)
    for index in range(40):
        document = _drawn(draw)
        scenario = make_scenario(document)
        plan = resolve(scenario)
        facts = facts_of("key", plan, plan["seed"], "sim", scenario.warmup)
        rows, text = Rows(), json.dumps(plan).encode()
        assert rows.simulate([(facts, text)]) == []
        in_memory = rows.take()
        run_scenario(scenario, tomli_w.dumps(document), [tmp_path / str(index)])
        recording = Recording.open(tmp_path / str(index))
        assert measured([recorded("key", recording)]) == in_memory
        view = View(recording)
        (path,) = in_memory["path"].to_pylist()
        assert path["queue"] == view.main_queue
        assert _close(path["utilisation"], summarise(recording)["path"]["utilisation"])


def _late(table: pa.Table, late_us: int) -> pa.Table:
    place = table.column_names.index("t_us")
    later = pc.cast(pc.add(table["t_us"], late_us), table.schema.field("t_us").type)
    return table.set_column(place, "t_us", later)


@pytest.mark.parametrize("late_us", [120, 1500])
def test_samples_that_are_taken_a_little_late_are_of_the_time_they_were_asked_for(
    tmp_path: Path, late_us: int
) -> None:
    # As a kernel's are: the window's first sample is else that of an interval before it.
    document = {
        "duration": "4s", "warmup": "1s", "path": {"rate": "10mbit", "rtt": "20ms"},
        "flow": [{"cc": "cubic"}, {"cc": "bbr3"}],
    }  # fmt: skip
    [made] = run_scenario(make_scenario(document), "", [tmp_path / "made"]).recordings
    tables = {name: made.table(name) for name in TABLES}
    late = tables | {
        name: _late(tables[name], late_us)
        for name in ("flow_samples", "queue_samples", "cc_samples")
    }
    metadata = {**made.metadata, "engine": "vm"}
    shifted = write_recording(tmp_path / "late", metadata, "", late)
    facts = [recorded("key", one)[0]._replace(engine="sim") for one in (made, shifted)]
    rows = [measured([(one, of)]) for one, of in zip(facts, (tables, late), strict=True)]
    assert rows[0] == rows[1]
    one, other = (summarise(recording) for recording in (made, shifted))
    assert (one["flows"], one["path"]) == (other["flows"], other["path"])


@pytest.mark.parametrize("table", ["runs", "flows", "path"])
def test_a_store_opens_in_polars(tmp_path: Path, table: str) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    frame = polars.read_parquet(tmp_path / "store" / "parts" / "*" / f"{table}.parquet")
    assert frame.height == store.table(table).num_rows > 0
