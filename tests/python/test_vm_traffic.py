"""Flows that come and go over real sockets: the machine sees the simulator's arrivals, repeats
itself, and what it cannot run is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullpipe.base.errors import UserError
from fullpipe.engines.arrivals import with_arrivals
from fullpipe.engines.base import RunResult
from fullpipe.engines.runner import run_scenario
from fullpipe.engines.sim import SimEngine
from fullpipe.engines.vm import VmEngine, web
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

PATH = {"rate": "20mbit", "rtt": "20ms", "buffer": "1bdp"}
DRAWN = {"cc": "cubic", "load": 0.4, "sizes": "20KB", "senders": 2, "rtts": ["20ms", "40ms"]}


def plan_of(**document: Any) -> dict[str, Any]:
    return resolve(make_scenario({"duration": "3s", "path": PATH, "traffic": [DRAWN], **document}))


def run(engine: SimEngine | VmEngine, plan: Any) -> RunResult:
    return engine.run(plan, lambda _done: True, {})


def test_flows_that_were_listed_are_the_flows_that_were_drawn(tmp_path: Path) -> None:
    trace = tmp_path / "flows.csv"
    trace.write_text("flow,start_us,pause_us,bytes\n0,0,0,900\n1,5000,0,70000\n1,5000,9,300\n")
    traced = {"cc": "reno", "trace": str(trace), "configuration": "collapsed", "start": "1s"}
    plan = plan_of(traffic=[DRAWN, traced])
    drawn, listed = run(SimEngine(), plan), run(SimEngine(), with_arrivals(plan))
    assert drawn.tables["traffic"].num_rows > 50
    for name, table in drawn.tables.items():
        assert table.equals(listed.tables[name]), name


def test_what_a_kernel_cannot_run_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    replay = {"cc": "reno", "trace": pausing(tmp_path)}
    monkeypatch.setattr("fullpipe.engines.arrivals.MAX_CHUNKS", 5)
    with pytest.raises(UserError, match=r"traffic\.0: 6 chunks; engines with a kernel take 5"):
        with_arrivals(plan_of(traffic=[replay]))
    monkeypatch.setattr("fullpipe.engines.arrivals.MAX_FLOWS", 10)
    with pytest.raises(UserError, match=r"traffic\.0: more than 10 flows"):
        with_arrivals(plan_of())
    with pytest.raises(UserError, match=r"page p\.levels: curl and lighttpd load one level"):
        web.refuse_pages(
            plan_of(page=[{"cc": "cubic", "name": "p", "levels": [["1KB"]] * 2, "lookup": "none"}])
        )


def pausing(folder: Path) -> str:
    """A trace of three flows, one second apart, two of which pause."""
    trace = folder / "pauses.csv"
    trace.write_text(
        "flow,start_us,pause_us,bytes\n0,0,0,900\n"
        "1,1000000,0,20000\n1,1000000,150000,100\n1,1000000,120000,60000\n"
        "2,2000000,0,1448\n2,2000000,130000,1448\n"
    )
    return str(trace)


@pytest.mark.vm
def test_flows_pause_in_the_machine_as_in_the_simulator(tmp_path: Path) -> None:
    traced = [{"cc": "cubic", "trace": pausing(tmp_path), "start": "100ms"}]
    plan = plan_of(traffic=traced)
    simulated = run(SimEngine(), plan).tables["traffic"].to_pydict()
    given = run(SimEngine(), with_arrivals(plan)).tables["traffic"].to_pydict()
    assert simulated == given
    measured = run(VmEngine(), plan).tables["traffic"].to_pydict()
    for column in ("number", "chunks", "pause_us", "size_bytes", "bytes_acked", "packets_sent"):
        assert measured[column] == simulated[column], column
    took = [
        np.array(table["completion_us"]) - np.array(table["start_us"])
        for table in (measured, simulated)
    ]
    assert took[0] == pytest.approx(took[1], abs=1000)


@pytest.mark.vm
def test_flows_that_are_asked_for_are_sampled_alike_in_both_engines() -> None:
    """Flow 0 and 3 are alone on the path, so the kernel's windows are known."""
    alone = {"cc": "cubic", "flows_per_s": 2, "sizes": "300KB", "samples": [0, 3, 999]}
    plan = plan_of(traffic=[alone])
    seen = []
    for engine in (SimEngine(), VmEngine()):
        tables = run(engine, plan).tables
        assert set(tables["traffic_samples"]["number"].to_pylist()) == {0, 3}
        flows = {row["number"]: row for row in tables["traffic"].to_pylist()}
        for number in (0, 3):
            rows = [r for r in tables["traffic_samples"].to_pylist() if r["number"] == number]
            last, flow = rows[-1], flows[number]
            assert (last["t_us"], last["bytes_acked"]) == (flow["completion_us"], 300 * 1024)
            seen.append([row["cwnd_packets"] for row in rows])
    for simulated, measured in zip(seen[:2], seen[2:], strict=True):
        assert len(simulated) == len(measured)
        assert max(simulated) == pytest.approx(max(measured), abs=2)


def test_numbers_that_no_flow_can_have_are_refused() -> None:
    with pytest.raises(UserError, match=r"traffic\.0\.samples\.0"):
        plan_of(traffic=[{**DRAWN, "samples": [-1]}])


@pytest.mark.vm
def test_the_machine_sees_the_flows_of_the_simulator_and_repeats_itself(tmp_path: Path) -> None:
    down = {"cc": "kernel:reno", "flows_per_s": 30, "sizes": "5KB", "direction": "down"}
    plan = plan_of(traffic=[DRAWN, down])
    first, second = (run(VmEngine(), plan) for _ in range(2))
    assert first.failure is None and first.health["problems"] == []
    # Nobody waits by asking again and again.
    assert first.health["cpu_busy_max"] < 0.4
    for name, table in first.tables.items():
        assert table.equals(second.tables[name]), name
    ours = plan_of(traffic=[DRAWN, {**down, "cc": "reno"}])
    simulated = run(SimEngine(), ours).tables["traffic"].sort_by(
        [("group_id", "ascending"), ("number", "ascending")]
    ).to_pydict()  # fmt: skip
    measured = first.tables["traffic"].sort_by(
        [("group_id", "ascending"), ("number", "ascending")]
    ).to_pydict()  # fmt: skip
    for column in ("group_id", "number", "sender", "size_bytes", "base_rtt_us", "chunks"):
        assert measured[column] == simulated[column], column
    assert np.array(measured["start_us"]) == pytest.approx(np.array(simulated["start_us"]), abs=2e3)
    done = [row is not None for row in measured["completion_us"]]
    assert sum(done) > 0.95 * len(done)
    sizes, acked = np.array(measured["size_bytes"])[done], np.array(measured["bytes_acked"])[done]
    assert (sizes == acked).all()
    assert sum(measured["packets_sent"]) == pytest.approx(sum(simulated["packets_sent"]), rel=0.03)


def test_live_and_vm_take_the_same_scenario(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="leave --peer out"):
        run_scenario(
            make_scenario({"duration": "1s", "path": PATH, "traffic": [DRAWN]}), "",
            [tmp_path / "run"], "live", {"peer": "192.0.2.1:7717", "token": "x"},
        )  # fmt: skip
