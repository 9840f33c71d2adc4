"""Settings of hosts that a kernel does not have: the engines refuse them before anything starts,
and the agent refuses the same.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.engines import assets
from fullpipe.engines.arrivals import refuse_many_flows
from fullpipe.engines.live import LiveEngine
from fullpipe.engines.sim import SimEngine
from fullpipe.engines.vm import VmEngine, kernels
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

#: Key -> values that a kernel does not have.
FOREIGN: dict[str, tuple[Any, ...]] = {
    "host.tsq": ("2ms", "4ms", "8ms"),
    "host.ack_policy": ("every_second",),
    "host.rate_restart": ("inflight",),
    "host.tcp": ("6.1",),
    "flow.tcp": ("6.1",),
    "host.packet_cost": ("1us",),
    "host.ack_cost": ("1us",),
    "host.send_cost": ("1us",),
    "host.handshake_cost": ("1us",),
    "host.reader_pause": ("1ms",),
    "host.receive_aggregation": ("100us",),
}
#: Such as a kernel has: values of the same keys, and keys with all their values.
OWN: dict[str, tuple[Any, ...]] = {
    "host.tsq": ("1ms",),
    "host.ack_policy": ("linux", "every_packet"),
    "host.rate_restart": ("unacknowledged",),
    "host.pacing": ("internal", "fq"),
    "host.gso_max_segments": (1, 44),
    "host.receive_aggregation": ("0ms",),
}


def plan_of(key: str, value: Any, **flow: Any) -> dict[str, Any]:
    table, name = key.split(".")
    host = {name: value} if table == "host" else {}
    flow |= {name: value} if table == "flow" else {}
    return resolve(make_scenario({
        "name": "hosts", "duration": "1s", "host": host, "flow": [{"cc": "cubic", **flow}],
        "path": {"rate": "10mbit", "rtt": "20ms"},
    }))  # fmt: skip


def said_by_agent(plan: dict[str, Any], folder: Path) -> str:
    """Why the agent ends at once: it refuses the plan, or there are no congestion controls here."""
    request = {
        "plan": plan, "clock": "wall", "objects": str(folder), "cc_trace": None,
        "background_processes": 0, "peer": None,
    }  # fmt: skip
    output = folder / "stream"
    command = [str(assets.agent()), "run", str(output)]
    subprocess.run(command, input=json.dumps(request).encode(), check=True)
    return str(_native.stream.decode(output.read_bytes())["failure"])


CASES = [(key, value) for key, values in FOREIGN.items() for value in values]


@pytest.mark.parametrize(("key", "value"), CASES)
def test_what_no_kernel_has_is_refused_before_anything_starts(
    key: str, value: Any, tmp_path: Path
) -> None:
    plan = plan_of(key, value)
    with pytest.raises(UserError, match=rf"{key}\b.*: for --engine sim, not vm: "):
        VmEngine().check(plan)
    with pytest.raises(UserError, match=rf"{key}\b.*: for --engine sim, not live: "):
        LiveEngine().check(plan, {})
    assert key in said_by_agent(plan, tmp_path).partition(": ")[0]
    LiveEngine().check(plan, {"peer": "lab2"})


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in OWN.items() for value in values]
)
def test_what_a_kernel_has_is_not_refused(key: str, value: Any, tmp_path: Path) -> None:
    plan = plan_of(key, value)
    VmEngine().check(plan)
    LiveEngine().check(plan, {})
    assert not said_by_agent(plan, tmp_path).startswith(("host.", "flow."))


@pytest.mark.parametrize("qdisc", ["fq", "codel", "fq_codel"])
def test_a_kernel_has_the_queue_disciplines_of_its_own_release(qdisc: str, tmp_path: Path) -> None:
    def plan(**options: str) -> dict[str, Any]:
        path = {"rate": "10mbit", "rtt": "20ms", "qdisc": qdisc, "qdisc_options": options}
        flows = [{"cc": "cubic"}]
        return resolve(make_scenario({"duration": "1s", "path": path, "flow": flows}))

    VmEngine().check(plan())
    for engine in (lambda plan: VmEngine().check(plan), lambda plan: LiveEngine().check(plan, {})):
        with pytest.raises(UserError, match=r"qdisc_options\.kernel: 6\.1 is for --engine sim"):
            engine(plan(kernel="6.1"))
    assert "qdisc_options.kernel" in said_by_agent(plan(kernel="6.1"), tmp_path)


@pytest.mark.skipif(
    None in map(kernels.cached, ("6.12", "7.3")), reason="Debian's kernels could not be downloaded"
)
def test_the_machine_says_before_it_starts_which_kernel_has_no_accurate_ecn() -> None:
    plan = plan_of("flow.ecn", "accecn")
    VmEngine().check(plan, {"kernel": "7.3"})
    with pytest.raises(UserError, match=r"flow\.0\.ecn: 'accecn' needs .* this one is 6\.12"):
        VmEngine().check(plan, {})


def test_a_thousand_long_flows_are_the_most_that_a_kernel_runs_and_the_simulator_runs_more() -> (
    None
):
    common = {"duration": "5s", "path": {"rate": "1gbit", "rtt": "10ms"}}
    plans = [
        resolve(make_scenario({**common, "flow": [{"cc": "reno", "count": count}]}))
        for count in (1000, 1001)
    ]
    refuse_many_flows(plans[0], "vm")
    for check in (VmEngine().check, LiveEngine().check):
        with pytest.raises(UserError, match=r"flow: 1001 flows in all, at most 1000 with --engine"):
            check(plans[1])
    SimEngine().check(plans[1])
