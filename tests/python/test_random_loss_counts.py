"""How many packets random loss took or marked by the recordings, of single packets and of bursts,
in simulator and kernel: held against what flows learn from ACKs, probes and datagrams, and against
the probability.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from fullpipe.engines.base import RunResult, engine
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

PROBABILITY = 0.01
BURST_PACKETS = 8
RTT_US = 4000
#: Deep enough that the queue drops nothing.
PATH = {
    "rate": "100mbit", "rtt": f"{RTT_US}us", "buffer": "4MB", "ecn": True,
    "loss": f"{PROBABILITY:.0%}",
}  # fmt: skip
TRAFFIC: dict[str, Any] = {
    # With windows as large as this no tail loss probe repeats what was not lost.
    "flow": [{"cc": "bbr3", "count": 2}],
    "probe": [{"interval": "2ms"}],
    "udp": [{"rate": "1mbit", "payload": "250B", "stop": "2900ms"}],
}
#: What was sent later may have had no answer when the run ended.
LAST_US = 2_900_000
ENGINES = ["sim", pytest.param("vm", marks=pytest.mark.vm)]


def run(name: str, path: dict[str, Any], **document: Any) -> RunResult:
    plan = resolve(
        make_scenario({
            "duration": "3s",
            "path": {**PATH, **path},
            "host": {"gso_max_segments": BURST_PACKETS},
            **document,
        })
    )  # fmt: skip
    options = {"machine": "auto"} if name == "vm" else {}
    result = engine(name).run(plan, lambda _done: True, options)
    assert result.failure is None
    return result


def counts(result: RunResult, name: str, queue: str = "forward") -> list[tuple[int, int]]:
    """A counter of a queue in each sample: (t_us, count)."""
    table = result.tables["queue_samples"].to_pydict()
    rows = zip(table["queue"], table["t_us"], table[name], strict=True)
    return [(at, count) for of_queue, at, count in rows if of_queue == queue]


def counted(result: RunResult, name: str, queue: str = "forward") -> int:
    """A counter of a queue at the end."""
    return counts(result, name, queue)[-1][1]


def of_flows(result: RunResult, name: str) -> list[int]:
    return result.tables["flows"][name].to_pylist()


def sent_in_vain(result: RunResult, table: str, answer: str) -> list[int]:
    """When the packets of a table that got no answer were sent."""
    columns = result.tables[table].to_pydict()
    return [at for at, got in zip(columns["t_us"], columns[answer], strict=True) if got is None]


def unknown(result: RunResult) -> int:
    """Packets of whose fate their senders had not heard at the end."""
    of = of_flows(result, "packets_sent"), of_flows(result, "packets_delivered")
    lost = sum(of_flows(result, "packets_lost"))
    return sum(of[0]) - sum(of[1]) - lost


def assert_probable(count: int, packets: int, per: str) -> None:
    """Within four standard deviations of the probability: n packets in bursts of at most b have a
    variance of at most n b p (1 - p)."""
    most_together = BURST_PACKETS if per == "burst" else 1
    variance = packets * most_together * PROBABILITY * (1 - PROBABILITY)
    assert abs(count - PROBABILITY * packets) < 4 * math.sqrt(variance)


@pytest.mark.parametrize("per", ["packet", "burst"])
@pytest.mark.parametrize("name", ENGINES)
def test_marks_are_as_many_as_dctcps_receiver_reports(name: str, per: str) -> None:
    result = run(name, {"loss_per": per, "loss_marks": True}, flow=[{"cc": "dctcp"}])
    marked, [reported] = (
        counted(result, "random_marked_packets"),
        of_flows(result, "packets_delivered_ce"),
    )
    assert counted(result, "dropped_packets") == 0
    assert 0 <= marked - reported <= unknown(result)
    assert_probable(marked, of_flows(result, "packets_sent")[0], per)


@pytest.mark.parametrize("per", ["packet", "burst"])
@pytest.mark.parametrize("name", ENGINES)
def test_lost_packets_are_those_that_senders_miss(name: str, per: str) -> None:
    result = run(name, {"loss_per": per}, **TRAFFIC)
    lost = counted(result, "random_lost_packets")
    unanswered = sent_in_vain(result, "ping_samples", "rtt_us")
    in_time = sum(at < LAST_US for at in unanswered)
    datagrams = len(sent_in_vain(result, "datagrams", "delay_us"))
    assert datagrams > 0
    known = sum(of_flows(result, "packets_lost")) + in_time + datagrams
    not_known = unknown(result) + len(unanswered) - in_time
    assert counted(result, "dropped_packets") == 0
    assert 0 <= lost - known <= not_known
    assert_probable(lost, sum(of_flows(result, "packets_sent")), per)


@pytest.mark.parametrize("per", ["packet", "burst"])
@pytest.mark.parametrize("name", ENGINES)
def test_no_sample_has_fewer_losses_than_senders_know(name: str, per: str) -> None:
    """A sample is read while hosts send: no packet sent meanwhile may hide a lost one."""
    result = run(name, {"loss_per": per}, sample_interval="10ms", **TRAFFIC)
    samples = result.tables["flow_samples"].to_pydict()
    known: dict[int, int] = {}
    for at, lost in zip(samples["t_us"], samples["packets_lost"], strict=True):
        known[at] = known.get(at, 0) + lost
    others = sent_in_vain(result, "ping_samples", "rtt_us")
    others += sent_in_vain(result, "datagrams", "delay_us")
    counted_so_far = counts(result, "random_lost_packets")
    assert len(counted_so_far) == 300
    for at, lost in counted_so_far:
        if at < LAST_US:
            assert lost >= known[at] + sum(sent < at - RTT_US for sent in others)


@pytest.mark.parametrize("name", ENGINES)
def test_marks_of_the_reverse_queue_are_not_those_of_bursts(name: str) -> None:
    # CUBIC's ACKs carry no mark.
    result = run(
        name,
        {"loss_per": "burst", "loss_marks": True, "reverse_qdisc": "codel"},
        flow=[{"cc": "dctcp"}, {"cc": "cubic", "direction": "down"}],
    )
    assert counted(result, "marked_packets", "reverse") > 0
    marked = counted(result, "random_marked_packets")
    assert 0 <= marked - of_flows(result, "packets_delivered_ce")[0] <= unknown(result)
