"""Flows that come and go over real sockets: the machine sees the simulator's arrivals, repeats
itself, and what it cannot run is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullpipe.engines import run_scenario
from fullpipe.engines.arrivals import with_arrivals
from fullpipe.engines.base import RunResult
from fullpipe.engines.sim import SimEngine
from fullpipe.engines.vm import VmEngine, hardware, kernels
from fullpipe.errors import UserError
from fullpipe.plan import resolve
from fullpipe.scenario import make_scenario

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
    trace = tmp_path / "flows.csv"
    trace.write_text("flow,start_us,pause_us,bytes\n0,0,0,900\n")
    replay = {"cc": "reno", "trace": str(trace), "configuration": "replay"}
    with pytest.raises(UserError, match=r"traffic\.0\.configuration: replay"):
        VmEngine().check(plan_of(traffic=[replay]))
    monkeypatch.setattr("fullpipe.engines.arrivals.MAX_FLOWS", 10)
    with pytest.raises(UserError, match=r"traffic\.0: more than 10 flows"):
        with_arrivals(plan_of())


@pytest.mark.vm
@pytest.mark.skipif(
    hardware.version() is None or kernels.cached(kernels.DEFAULT) is None,
    reason="no QEMU or no kernel here: `fullpipe doctor --mend` brings them",
)
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
