"""DCTCP in the virtual machine: ours beside the kernel's own module, and the simulator's;
and Prague over the kernel's DualPI2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fullpipe.engines.base import Engine
from fullpipe.engines.sim import SimEngine
from fullpipe.engines.vm import VmEngine, kernels
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

pytestmark = pytest.mark.vm


def measured(engine: Engine, cc: str) -> dict[str, float]:
    """One flow over a queue that marks nearly all above 20 packets (RFC 8257's step)."""
    path: dict[str, Any] = {
        "rate": "50mbit", "rtt": "10ms", "buffer": "400KB", "ecn": True, "qdisc": "red",
        "qdisc_options": {"min": "30KB", "max": "33KB", "max_probability": 1.0},
    }  # fmt: skip
    plan = resolve(make_scenario({
        "name": "dctcp", "duration": "4s", "seed": 7, "sample_interval": "5ms", "path": path,
        "flow": [{"cc": cc}],
    }))  # fmt: skip
    run = engine.run(plan, lambda _done: True, {})
    assert run.failure is None
    (flow,) = run.tables["flows"].to_pylist()
    assert flow["packets_lost"] == 0
    samples = run.tables["flow_samples"].to_pydict()
    late = np.array(samples["t_us"]) > 1_000_000
    return {
        "cwnd": float(np.mean(np.array(samples["cwnd_packets"], float)[late])),
        "delivered": flow["packets_delivered"],
        "marked": flow["packets_delivered_ce"] / flow["packets_delivered"],
    }


def test_dctcp_is_the_kernels_twin_and_the_simulators() -> None:
    kernels_own = measured(VmEngine(), "kernel:dctcp")
    for ours in (measured(VmEngine(), "dctcp"), measured(SimEngine(), "dctcp")):
        assert ours["cwnd"] == pytest.approx(kernels_own["cwnd"], rel=0.03)
        assert ours["delivered"] == pytest.approx(kernels_own["delivered"], rel=0.01)
        assert ours["marked"] == pytest.approx(kernels_own["marked"], rel=0.2)
    assert 0.02 < kernels_own["marked"] < 0.2


@pytest.mark.skipif(
    "stock-7.3" not in kernels.built_here(),
    reason="no kernel with DualPI2: scripts/build_kernel.py --module net/sched/sch_dualpi2",
)
def test_over_the_kernels_dualpi2_prague_is_marked_and_does_not_wait_for_cubic() -> None:
    path = {"rate": "40mbit", "rtt": "20ms", "qdisc": "dualpi2", "ecn": "l4s"}
    plan = resolve(make_scenario({
        "name": "dualpi2", "duration": "4s", "seed": 7, "sample_interval": "10ms", "path": path,
        "flow": [{"cc": "prague"}, {"cc": "cubic", "ecn": False}],
    }))  # fmt: skip
    run = VmEngine().run(plan, lambda _done: True, {"kernel": "stock-7.3"})
    assert run.failure is None
    prague, cubic = run.tables["flows"].to_pylist()
    assert prague["packets_lost"] == 0 and prague["packets_delivered_ce"] > 20
    assert cubic["packets_lost"] > 0 and cubic["packets_delivered_ce"] == 0
    # Its receiver counts marks (RFC 9768), all that the queue made but for those under way.
    name, received = run.metadata["facts"]["accurate_ecn"].split()
    marked = max(run.tables["queue_samples"].column("marked_packets").to_pylist())
    assert name == prague["flow"] and marked - 20 < prague["packets_delivered_ce"] <= int(received)
    samples = run.tables["flow_samples"].to_pydict()
    rtt_us, late = np.array(samples["srtt_us"]), np.array(samples["t_us"]) > 2_000_000
    l_us, c_us = (rtt_us[late & (np.array(samples["flow_id"]) == n)] - 20_000 for n in (0, 1))
    assert np.percentile(l_us, 99) < 2000
    assert c_us.mean() > 5000
