"""Accurate ECN (RFC 9768) of kernels that negotiate it: three counts of the same marks, which are
the queue's, the receiver's and the sender's, and the simulator beside them.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from fullpipe.engines.base import Engine, RunResult
from fullpipe.engines.live import LiveEngine
from fullpipe.engines.sim import SimEngine
from fullpipe.engines.vm import VmEngine, kernels
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

NEWEST = {"kernel": "7.3"}
needs_vm = pytest.mark.skipif(
    kernels.cached("7.3") is None, reason="Debian's kernel 7.3 could not be downloaded"
)
needs_host = pytest.mark.skipif(
    os.geteuid() != 0 or int(os.uname().release.split(".")[0]) < 7,
    reason=f"engine live needs root, and Linux 7.0 or later; here is {os.uname().release}",
)
#: Marks nearly all above 20 packets (RFC 8257's step): many in a round trip.
STEP = {
    "rate": "50mbit", "rtt": "20ms", "buffer": "400KB", "qdisc": "red",
    "qdisc_options": {"min": "30KB", "max": "33KB", "max_probability": 1.0},
}  # fmt: skip
CODEL = {"rate": "10mbit", "rtt": "40ms", "buffer": "200KB", "qdisc": "codel"}


def run(engine: Engine, path: dict[str, Any], options: dict[str, Any], **keys: Any) -> RunResult:
    plan = resolve(make_scenario({
        "name": "marks", "duration": "4s", "seed": 7, "sample_interval": "10ms",
        "path": {"ecn": "accecn", **path}, **keys,
    }))  # fmt: skip
    done = engine.run(plan, lambda _done: True, options)
    assert done.failure is None
    return done


def marks_of_queue(done: RunResult) -> int:
    return int(max(done.tables["queue_samples"].column("marked_packets").to_pylist()))


def marks_of_receiver(done: RunResult) -> dict[str, int]:
    """Of each flow that has accurate ECN at both ends."""
    told = done.metadata["facts"].get("accurate_ecn", "")
    return {name: int(count) for name, count in (line.split() for line in told.splitlines())}


def flows_of(done: RunResult) -> list[dict[str, Any]]:
    return list(done.tables["flows"].to_pylist())


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(VmEngine(), marks=[pytest.mark.vm, needs_vm]),
        pytest.param(LiveEngine(), marks=[pytest.mark.live, pytest.mark.root, needs_host]),
    ],
    ids=["vm", "live"],
)
@pytest.mark.parametrize("cc", ["dctcp", "kernel:dctcp", "prague", "bbr3-ecn", "cubic"])
def test_every_mark_is_counted_once_also_where_many_come_in_a_round_trip(
    engine: Engine, cc: str
) -> None:
    done = run(engine, STEP, NEWEST if engine.name == "vm" else {}, flow=[{"cc": cc}])
    assert done.health["problems"] == [] or engine.name == "live"
    (flow,) = flows_of(done)
    ((_, received),) = marks_of_receiver(done).items()
    queue, samples = marks_of_queue(done), done.tables["flow_samples"].to_pydict()
    # Marks on the way, and those that came with ACKs that are on their way back.
    under_way = max(samples["inflight_packets"])
    assert flow["packets_delivered_ce"] <= received <= queue + 1
    assert queue - flow["packets_delivered_ce"] <= under_way
    assert queue > 50


@pytest.mark.vm
@needs_vm
def test_the_simulator_counts_what_the_kernel_counts_and_classic_ecn_many_times_more() -> None:
    keys = {"duration": "10s", "flow": [{"cc": "cubic"}]}
    kernels_run = run(VmEngine(), CODEL, NEWEST, **keys)
    simulated = run(SimEngine(), CODEL, {}, **keys)
    (ours,), (theirs,) = flows_of(simulated), flows_of(kernels_run)
    assert ours["packets_delivered"] == pytest.approx(theirs["packets_delivered"], rel=0.005)
    assert ours["packets_delivered_ce"] == pytest.approx(theirs["packets_delivered_ce"], abs=1)
    assert marks_of_queue(simulated) == pytest.approx(marks_of_queue(kernels_run), abs=1)
    # Linux sends the option with data too: 12 bytes less payload in each packet.
    payload = [flow["bytes_delivered"] / flow["packets_delivered"] for flow in (theirs, ours)]
    assert payload[0] == pytest.approx(payload[1] - 12, abs=2)
    classic = run(VmEngine(), {**CODEL, "ecn": True}, NEWEST, **keys)
    assert flows_of(classic)[0]["packets_delivered_ce"] > 10 * marks_of_queue(classic)


@pytest.mark.vm
@needs_vm
def test_a_flow_that_got_another_ecn_than_it_asked_for_is_a_problem_of_the_run() -> None:
    # Who loses its SYN twice asks no more (RFC 9768 section 3.1.4), half of them at first.
    path = {"rate": "10mbit", "rtt": "20ms", "loss": "60%"}
    done = run(VmEngine(), path, NEWEST, duration="12s", flow=[{"cc": "reno", "count": 12}])
    has_it = set(marks_of_receiver(done))
    problems = [text for text in done.health["problems"] if "accurate ECN was requested" in text]
    without = {text.split(":")[0].removeprefix("flow ") for text in problems}
    assert has_it and without and not has_it & without
    # Of a handshake that was not over at the end only one end is there to tell. With so many losses
    # an end may also find that the counter is always 0 (RFC 9768 section 3.2.2.4).
    whole = [text for text in problems if "unknown" not in text]
    ends = ("sender no ECN", "counter does not come through")
    assert all(any(end in text for end in ends) for text in whole)


@pytest.mark.vm
@needs_vm
def test_accurate_and_classic_ecn_stand_side_by_side() -> None:
    flows = [{"cc": "cubic", "name": "new"}, {"cc": "cubic", "name": "old", "ecn": True}]
    done = run(VmEngine(), CODEL, NEWEST, duration="8s", flow=flows)
    assert list(marks_of_receiver(done)) == ["new"]
    new, old = flows_of(done)
    queue = marks_of_queue(done)
    assert new["packets_delivered_ce"] < queue < old["packets_delivered_ce"]
