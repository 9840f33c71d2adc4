"""Whose TCP the simulator's hosts have; the rules themselves are tested in crates/fullpipe-tcp."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from fullpipe import _native
from fullpipe._native import DEFAULT_KERNEL, GSO_MAX_SEGMENTS, KERNELS
from fullpipe.base.errors import UserError
from fullpipe.base.overrides import apply_changes
from fullpipe.base.toml import parse_toml
from fullpipe.engines.sim import SimEngine
from fullpipe.kernel.calls import read_calls
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import Scenario, make_scenario


def beside_reno(**host: Any) -> Scenario:
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


def test_what_sacks_free_lets_the_application_write_on_during_a_recovery(tmp_path: Path) -> None:
    # Debian's 6.12.117 in QEMU, same plan: the three losses of the second Recovery come from data
    # that were written while packets from the first hole on were only SACKed.
    path = {"rate": "10mbit", "rtt": "40ms", "buffer": "400 packets", "qdisc": "codel"}
    document = {"duration": "0.7s", "seed": 1, "rtt_spread": "1pkt", "path": path,
                "flow": [{"cc": "reno", "start": "3.739903ms"}]}  # fmt: skip
    plan = resolve(make_scenario(document))
    SimEngine().run(plan, lambda _done: True, {"cc_trace": tmp_path / "trace"})
    calls = read_calls(tmp_path / "trace", ["call", "ssthresh", "conn_lost"]).to_pylist()
    assert [one["ssthresh"] for one in calls if one["call"] == "ssthresh"] == [66, 33, 16]
    assert calls[-1]["conn_lost"] == 7


@pytest.mark.parametrize("written", [7.3, 5.13, 6.12, 6.4, 6.18])
def test_a_release_may_be_written_as_a_number(written: float) -> None:
    # TOML and --set read 7.3 as a number.
    assert resolve(beside_reno(tcp=written)) == resolve(beside_reno(tcp=repr(written)))


@pytest.mark.parametrize("written", ["6.1", "6.12", '"6.1"'])
def test_a_release_in_a_document_is_read_as_it_is_written(written: str) -> None:
    document = parse_toml(f'[host]\ntcp = {written}\n[[flow]]\ncc = "reno"\n')
    changed = apply_changes({"flow": [{"cc": "reno"}]}, [f"host.tcp={written}"])
    for found in (document, changed, parse_toml(tomli_w.dumps(document))):
        path = {"rate": "10mbit", "rtt": "20ms"}
        assert make_scenario({**found, "duration": "1s", "path": path}).host.tcp == written.strip(
            '"'
        )


def test_a_number_that_two_releases_have_is_refused() -> None:
    # 6.1 and 6.10 are one number.
    with pytest.raises(UserError, match=r'host.tcp.*6.1 is also 6.10; write "6.1" in quotes'):
        beside_reno(tcp=6.1)
    with pytest.raises(UserError, match=r"host.tcp"):
        beside_reno(tcp=6.13)


def test_bursts_are_as_large_as_a_buffer_where_they_end_with_it() -> None:
    # tcp_grow_skb() came with 6.10; 65215 bytes are 45 packets of 1448.
    assert 65215 // 1448 == 45
    assert {tcp for tcp, most in GSO_MAX_SEGMENTS.items() if most == 45} == {"5.13", "6.1", "6.4"}
    for tcp in KERNELS:
        host = resolve(beside_reno(tcp=tcp))["host"]
        assert host["gso_max_segments"] == GSO_MAX_SEGMENTS[tcp]
    assert resolve(beside_reno(tcp="5.13", gso_max_segments=10))["host"]["gso_max_segments"] == 10


def flows_with(first: dict[str, Any], second: dict[str, Any]) -> Scenario:
    return make_scenario({
        "duration": "10s", "path": {"rate": "10mbit", "rtt": "10ms", "buffer": "0.5bdp"},
        "flow": [{"cc": "bbr2", **first}, {"cc": "reno", **second}],
    })  # fmt: skip


def test_a_flow_may_have_the_tcp_of_a_release_of_its_own() -> None:
    one, both = flows_with({"tcp": "5.13"}, {}), flows_with({"tcp": "5.13"}, {"tcp": "5.13"})
    stack = {"tcp": "5.13", "gso_max_segments": 45}
    assert [flow.get("stack") for flow in resolve(one)["flows"]] == [stack, None]
    assert resolve(flows_with({"tcp": DEFAULT_KERNEL}, {})) == resolve(flows_with({}, {}))
    tables = [_native.sim.run(json.dumps(resolve(made))) for made in (one, both)]
    hosts = _native.sim.run(json.dumps(resolve(beside_reno(tcp="5.13"))))
    samples = [bytes(table["flow_samples"]["bytes_delivered"][1]) for table in (*tables, hosts)]
    assert samples[1] == samples[2] != samples[0]
