"""Paths of namespaces on this host's kernel: what a link passes, loses, reorders and shares is what
its formula says, or what the kernel counted. In real time a busy machine makes a flow slower and a
packet later: what asks for a speed or a delay runs where time is counted in instructions, in the
machine of `make test-live`, whose kernel also has all qdiscs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullpipe.base.errors import RunError
from fullpipe.engines.base import RunResult
from fullpipe.engines.live import LiveEngine
from live_host import plan_of, run_here, wire_bytes

if os.geteuid() != 0:
    pytest.skip("engine live needs root", allow_module_level=True)

pytestmark = [pytest.mark.live, pytest.mark.root]
own_time = pytest.mark.skipif(
    "FULLPIPE_OWN_TIME" not in os.environ,
    reason="speeds and delays in real time; `make test-live` runs it in a machine of its own time",
)

MS = 1000


def columns(result: RunResult, table: str, *names: str) -> list[np.ndarray[Any, Any]]:
    """Columns of a table; null is NaN."""
    return [result.tables[table][name].to_numpy(zero_copy_only=False) for name in names]


def last(result: RunResult, name: str, queue: str = "forward") -> int:
    """A counter of a queue at the end."""
    which, values = columns(result, "queue_samples", "queue", name)
    return int(values[which == queue][-1])


def delivered(result: RunResult) -> list[int]:
    """Payload of each flow."""
    counts: list[int] = result.tables["flows"]["bytes_delivered"].to_pylist()
    return counts


def passed_bytes(result: RunResult, start_s: float, end_s: float, queue: str = "forward") -> int:
    """What a queue let go between two samples."""
    which, at, sent = columns(result, "queue_samples", "queue", "t_us", "sent_bytes")
    mine = which == queue
    within = mine & (at >= start_s * 1e6) & (at <= end_s * 1e6)
    return int(sent[within][-1] - sent[within][0])


def ping_rtts(result: RunResult, probe: str, start_s: float = 0, end_s: float = 60) -> Any:
    """Round trips of the answered ones that were sent in a span, in ms."""
    name, at, rtt = columns(result, "ping_samples", "probe", "t_us", "rtt_us")
    chosen = rtt[(name == probe) & (at >= start_s * 1e6) & (at < end_s * 1e6)]
    return chosen[~np.isnan(chosen.astype(float))] / MS


@pytest.mark.parametrize("cc", ["kernel:cubic", "reno"])
def test_a_path_of_namespaces_carries_what_its_rate_allows_and_leaves_nothing(cc: str) -> None:
    def namespaces() -> set[str]:
        folder = Path("/run/netns")
        return {path.name for path in folder.iterdir()} if folder.is_dir() else set()

    before = namespaces()
    result = run_here(plan_of({"cc": cc}))
    counted = last(result, "sent_bytes")
    assert 0.9 * counted < wire_bytes(delivered(result)[0]) < 1.05 * counted
    assert 0 < delivered(result)[0] < 20e6 * 2 / 8
    assert namespaces() == before
    listed = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text()
    assert not any(name.startswith("fp0_") for name in listed.split())


def test_a_path_either_runs_or_names_the_qdisc_that_this_kernel_lacks() -> None:
    try:
        result = LiveEngine().run(plan_of({"cc": "kernel:cubic"}), lambda _done: True, {})
    except RunError as error:
        assert "Specified qdisc kind is unknown (does this kernel have sch_" in str(error)
    else:
        assert result.failure is None


@own_time
def test_algorithms_share_a_path_and_tell_their_states_from_inside_the_kernel() -> None:
    result = run_here(plan_of({"cc": "kernel:cubic"}, {"cc": "bbr3"}, duration="3s"))
    counted = last(result, "sent_bytes")
    assert 0.9 * counted < wire_bytes(sum(delivered(result))) < 1.05 * counted
    assert min(delivered(result)) > 100_000
    flow, phase = columns(result, "cc_samples", "flow_id", "phase")
    assert phase[flow == 1][0] == "startup"
    assert len(set(phase[flow == 1])) > 1


@own_time
def test_a_row_has_the_rates_delays_and_schedules_of_its_links() -> None:
    first = {
        "name": "first", "rate": "2mbit", "delay": "10ms", "buffer": "30KB",
        "rate_steps": [["3s", "4mbit"]], "delay_steps": [["1s", "25ms"]],
        "outage": [["5s", "500ms"]],
    }  # fmt: skip
    second = {"name": "second", "rate": "6mbit", "delay": "5ms", "buffer": "30KB"}
    result = run_here(
        plan_of(
            {"cc": "bbr3", "start": "2s"},
            {"cc": "reno", "enter": "second", "start": "2s"},
            link=[first, second],
            probe=[
                {"name": "long", "interval": "20ms"},
                {"name": "short", "interval": "20ms", "enter": "second"},
            ],
            duration="7s",
        )
    )
    # The least of fifty: the delays of the links that a probe passes, and hardly more.
    for name, start_s, end_s, least_ms in (
        ("long", 0, 0.95, 30), ("long", 1.05, 1.95, 45), ("short", 0, 1.95, 10),
    ):  # fmt: skip
        rtts = ping_rtts(result, name, start_s, end_s)
        assert least_ms <= rtts.min() < least_ms + 5
    # A link passes its rate and its burst of a few packets, the long one no more than the first.
    for start_s, end_s, rate_bps in ((2, 3, 2e6), (3, 5, 4e6), (5.5, 7, 4e6)):
        passed = passed_bytes(result, start_s, end_s, "first.forward")
        assert 0.3 * rate_bps * (end_s - start_s) / 8 < passed
        assert passed < 1.05 * rate_bps * (end_s - start_s) / 8 + 10_000
    assert passed_bytes(result, 5.1, 5.4, "first.forward") < 3 * 1514
    assert passed_bytes(result, 2, 7, "second.forward") < 1.05 * 6e6 * 5 / 8 + 10_000


@own_time
def test_a_trace_lets_no_more_through_than_its_opportunities(tmp_path: Path) -> None:
    # 12 Mbit/s for half a second, 1.2 for the next one.
    times = [*range(1, 500), *range(500, 1001, 10)]
    (tmp_path / "trace").write_text("".join(f"{ms}\n" for ms in times))
    link = {"name": "path", "rate_trace": str(tmp_path / "trace"), "delay": "5ms", "buffer": "60KB"}
    result = run_here(plan_of({"cc": "kernel:cubic"}, link=[link], duration="4s"))
    passed = last(result, "sent_bytes")
    assert 0.5 * 4 * len(times) * 1514 < passed < 1.03 * 4 * len(times) * 1514 + 10_000
    fast = passed_bytes(result, 2, 2.45)
    slow = passed_bytes(result, 2.55, 2.95)
    assert fast > 3 * slow


@own_time
def test_damage_is_as_often_and_as_long_as_its_formulas_say() -> None:
    link = {
        "name": "path", "rate": "10mbit", "delay": "20ms", "buffer": "200KB",
        "gemodel": {"p": "1%", "r": "25%"}, "duplicate": "2%", "reorder": "5%",
    }  # fmt: skip
    stream = {"rate": "1280kbit", "payload": "160B"}
    result = run_here(plan_of(link=[link], udp=[stream], duration="5s"))
    (delay_us,) = columns(result, "datagrams", "delay_us")
    lost = np.isnan(delay_us.astype(float))
    count = len(delay_us)
    assert count == pytest.approx(5000, rel=0.01)
    # p / (p + r) are lost, in bursts of 1 / r; four standard deviations of that chain.
    assert 0.01 < lost.mean() < 0.07
    begins = (lost[1:] & ~lost[:-1]).sum()
    assert lost.sum() / begins == pytest.approx(4, abs=2)
    # Those that overtake leave without the delay.
    early = delay_us[~lost] < 20 * MS
    assert early.mean() == pytest.approx(0.05, abs=0.015)
    # netem makes copies of what is sent before it loses one of the two.
    passed = last(result, "sent_packets")
    assert passed == pytest.approx(count * (1 - lost.mean() + 0.02), rel=0.015)


@own_time
@pytest.mark.parametrize("qdisc", ["cake", "fq_codel", "sfq"])
def test_fair_queues_share_by_flow_whatever_the_flows_do(qdisc: str) -> None:
    path = {"rate": "8mbit", "rtt": "10ms", "qdisc": qdisc}
    flows = {"cc": "kernel:cubic", "count": 2}, {"cc": "bbr3", "start": "100ms"}
    result = run_here(plan_of(*flows, path=path, duration="6s"))
    parts = np.array(delivered(result)) / sum(delivered(result))
    assert parts == pytest.approx([1 / 3] * 3, abs=0.08)


@own_time
def test_pie_drops_before_its_queue_is_full_and_keeps_the_delay_near_its_target() -> None:
    path = {"rate": "8mbit", "rtt": "10ms", "qdisc": "pie"}
    result = run_here(
        plan_of({"cc": "kernel:cubic", "count": 4}, path=path, duration="6s", warmup="2s")
    )
    assert last(result, "dropped_packets") > 10
    which, at, backlog = columns(result, "queue_samples", "queue", "t_us", "queue_bytes")
    waits_ms = backlog[(which == "forward") & (at > 2e6)] * 8 / 8e6 * 1000
    # 15 ms; PIE's own limit of 1000 packets would be 1.5 s.
    assert 3 < np.median(waits_ms) < 40


@own_time
def test_priorities_go_by_dscp() -> None:
    path = {"rate": "8mbit", "rtt": "10ms", "qdisc": "prio", "buffer": "60KB"}
    flows = {"cc": "kernel:cubic", "count": 2}, {"cc": "kernel:cubic", "dscp": "EF"}
    result = run_here(plan_of(*flows, path=path, duration="4s"))
    # While one flow always has something to send, strict priority leaves others nothing.
    assert delivered(result)[2] > 3 * sum(delivered(result)[:2])


@own_time
def test_a_queue_in_each_direction_manages_its_own_way() -> None:
    path = {
        "rate": "8mbit", "rtt": "20ms", "qdisc": "fq_codel",
        "reverse_rate": "4mbit", "reverse_qdisc": "cake",
    }  # fmt: skip
    flows = {"cc": "kernel:cubic"}, {"cc": "cubic", "direction": "down"}
    result = run_here(plan_of(*flows, path=path, duration="4s"))
    for flow, queue, rate_bps in ((0, "forward", 8e6), (1, "reverse", 4e6)):
        data = wire_bytes(delivered(result)[flow])
        assert 0.3 * rate_bps * 4 / 8 < data < rate_bps * 4 / 8
        # The other flow's ACKs pass there, too.
        assert data < last(result, "sent_bytes", queue) < 1.25 * data
