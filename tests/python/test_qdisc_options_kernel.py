"""Options of queue disciplines in the kernel of the virtual machine: each is taken, and does what
it does in the simulator."""

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

IN_STOCK_KERNELS = [
    ("fq", {"ce_threshold": "1ms"}),
    ("codel", {"ce_threshold": "1ms"}),
    ("fq_codel", {"ce_threshold": "1ms"}),
    ("red", {"adaptive": True}),
]


#: Which packets RED marks is drawn at random, and in a kernel the timing of its host decides the
#: draws: queues of single runs spread by 4 %.
SEEDS = range(1, 5)


def queue_bytes(
    engine: Engine, cc: str, path: dict[str, Any], seed: int = 1, **options: Any
) -> float:
    """The mean queue of one flow at 20 Mbit/s; also checks that marks and no drops made it so."""
    plan = resolve(make_scenario({
        "duration": "6s", "seed": seed, "sample_interval": "5ms", "start_spread": "5ms",
        "path": {"rate": "20mbit", "rtt": "20ms", **path}, "flow": [{"cc": cc}],
    }))  # fmt: skip
    run = engine.run(plan, lambda _done: True, options)
    assert run.failure is None
    samples = run.tables["queue_samples"].to_pydict()
    late = np.array(samples["t_us"]) > 2_000_000
    forward = np.array(samples["queue"]) == "forward"
    marks = np.array(samples["marked_packets"], float)[late & forward]
    assert np.ptp(marks) > 50
    return float(np.mean(np.array(samples["queue_bytes"], float)[late & forward]))


@pytest.mark.parametrize(("qdisc", "options"), IN_STOCK_KERNELS)
def test_an_option_keeps_the_queue_that_it_keeps_in_the_simulator(
    qdisc: str, options: dict[str, Any]
) -> None:
    path = {"qdisc": qdisc, "ecn": True, "qdisc_options": options}
    simulated = np.mean([queue_bytes(SimEngine(), "dctcp", path, seed) for seed in SEEDS])
    found = np.mean([queue_bytes(VmEngine(), "dctcp", path, seed) for seed in SEEDS])
    # A packet of 1514 bytes more or less is what a step's phase decides.
    assert found == pytest.approx(simulated, rel=0.1, abs=757)


def most_packets(engine: Engine) -> int:
    """The longest queue of two Reno flows that FQ-CoDel's limit of memory holds back."""
    plan = resolve(make_scenario({
        "duration": "6s", "sample_interval": "2ms", "flow": [{"cc": "reno", "count": 2}],
        "path": {
            "rate": "10mbit", "rtt": "100ms", "qdisc": "fq_codel", "buffer": "10000pkt",
            "qdisc_options": {"memory_limit": "150kB", "target": "500ms", "interval": "2s"},
        },
    }))  # fmt: skip
    run = engine.run(plan, lambda _done: True, {})
    assert run.failure is None
    samples = run.tables["queue_samples"].to_pydict()
    forward = np.array(samples["queue"]) == "forward"
    return int(np.array(samples["queue_packets"])[forward].max())


def test_a_limit_of_memory_holds_as_many_packets_as_in_the_kernel() -> None:
    simulated, found = most_packets(SimEngine()), most_packets(VmEngine())
    # Debian's 6.12 takes 2304 bytes for a full packet; a packet more is with the shaper.
    assert found == pytest.approx(150_000 / 2304, abs=2)
    assert simulated == pytest.approx(found, abs=2)


@pytest.mark.skipif(
    "stock-7.3" not in kernels.built_here(),
    reason="no kernel with DualPI2: scripts/build_kernel.py --module net/sched/sch_dualpi2",
)
def test_min_qlen_step_lets_so_many_packets_wait_in_the_kernels_dualpi2() -> None:
    path: dict[str, Any] = {"qdisc": "dualpi2", "ecn": "l4s"}
    for packets in (5, 20):
        path["qdisc_options"] = {"step": "200us", "min_qlen_step": packets}
        simulated = queue_bytes(SimEngine(), "prague", path)
        assert simulated > 1514 * packets / 2
        kernels_own = queue_bytes(VmEngine(), "prague", path, kernel="stock-7.3")
        assert kernels_own == pytest.approx(simulated, rel=0.15, abs=757)
