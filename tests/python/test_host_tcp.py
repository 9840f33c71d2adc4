"""Whose TCP the simulator's hosts have; the rules themselves are tested in crates/fullpipe-tcp."""

from __future__ import annotations

import json

from fullpipe import _native
from fullpipe._native import DEFAULT_KERNEL, KERNELS
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import Scenario, make_scenario


def beside_reno(**host: str) -> Scenario:
    return make_scenario({
        "duration": "10s", "path": {"rate": "10mbit", "rtt": "10ms", "buffer": "0.5bdp"},
        "host": host, "flow": [{"cc": "bbr2"}, {"cc": "reno"}],
    })  # fmt: skip


def test_a_plan_names_tcp_only_where_it_is_not_the_default() -> None:
    # Recordings from before the key are found by the plan they had.
    assert "tcp" not in resolve(beside_reno())["host"]
    assert resolve(beside_reno(tcp=DEFAULT_KERNEL)) == resolve(beside_reno())
    assert resolve(beside_reno(tcp="5.13"))["host"]["tcp"] == "5.13"


def test_a_plan_names_what_a_congestion_control_is_told_only_where_it_is_less() -> None:
    assert resolve(beside_reno(cc_facts="google")) == resolve(beside_reno())
    assert resolve(beside_reno(cc_facts="stock"))["host"]["cc_facts"] == "stock"


def test_each_tcp_sends_otherwise() -> None:
    tables = [
        _native.sim.run(json.dumps(resolve(beside_reno(tcp=tcp))))["flow_samples"]
        for tcp in KERNELS
    ]
    delivered = [bytes(table["bytes_delivered"][1]) for table in tables]
    assert len(set(delivered)) == len(delivered)
