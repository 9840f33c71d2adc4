"""Random scenarios over all features, held against what must hold on every network (tests/swarm).
`make swarm` runs more of them, for hours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from check import problems_of
from fullpipe.engines.record import record_result
from fullpipe.engines.run import Run
from fullpipe.engines.sim import SimEngine
from fullpipe.metrics.summary import summarise
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.scenario.qdiscs.registry import DISCIPLINES
from generate import generate
from network import Network
from run import command, run_seed

#: Seeds of each block.
COUNT = 80
BLOCKS = 5


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_what_a_run_records_of_any_network_holds_together(block: int) -> None:
    results = [run_seed(seed) for seed in range(block * COUNT, (block + 1) * COUNT)]
    wrong = [
        f"{problem}\n    {command(result.seed)}"
        for result in results
        for problem in result.problems
    ]
    assert not wrong, "\n".join(wrong)
    assert sum(result.refused is not None for result in results) < COUNT / 10


def test_the_seeds_reach_every_discipline_and_kind_of_sender() -> None:
    text = "".join(str(generate(seed).document) for seed in range(COUNT))
    for name in DISCIPLINES:
        assert name == "fifo" or f"'qdisc': '{name}'" in text, name
    for key in (
        "flow", "page", "udp", "traffic", "probe", "wifi", "rate_trace", "delay_trace",
        "rate_steps", "delay_steps", "outage", "duplicate", "reorder", "policer", "hold",
        "gemodel", "wifi_jitter", "loss_marks", "rtt_spread", "reverse_rate", "ack_policy", "tcp",
        "stop", "packet_cost", "receive_window", "enter", "far_host",
    ):  # fmt: skip
        assert f"'{key}': " in text, key


DOCUMENT: dict[str, Any] = {
    "duration": "2s",
    "sample_interval": "10ms",
    "path": {"rate": "10mbit", "rtt": "20ms", "forward_delay": "5ms", "buffer": "1bdp"},
    "flow": [{"cc": "cubic", "count": 2}],
    "udp": [{"rate": "500kbit", "payload": "500B"}],
    "probe": [{"interval": "50ms"}],
}


def _set(column: str, change: Callable[[list[Any]], None]) -> Callable[[pa.Table], pa.Table]:
    def changed(table: pa.Table) -> pa.Table:
        values = table[column].to_pylist()
        change(values)
        index = table.column_names.index(column)
        return table.set_column(index, column, pa.array(values, table.schema.field(column).type))

    return changed


def _at(index: int, by: int) -> Callable[[list[Any]], None]:
    def change(values: list[Any]) -> None:
        values[index] += by

    return change


def _grow(values: list[Any]) -> None:
    values[:] = [value + value // 5 for value in values]


def _stop(values: list[Any]) -> None:
    values[100:] = [values[100]] * len(values[100:])


@pytest.mark.parametrize(
    ("table", "change", "kind"),
    [
        ("flows", _set("packets_sent", _at(0, 1)), "totals"),
        ("flows", _set("packets_retransmitted", _at(0, 1)), "capture"),
        ("flows", _set("bytes_acked", _at(1, 10**9)), "flows"),
        ("flow_samples", _set("bytes_delivered", _at(5, 10**8)), "samples"),
        ("flow_samples", _set("min_rtt_us", _at(-1, -15_000)), "samples"),
        ("queue_samples", _set("queue_bytes", _at(60, 10**5)), "queues"),
        ("queue_samples", _set("dropped_packets", _at(-1, 5)), "offered"),
        ("queue_samples", _set("sent_bytes", _grow), "rates"),
        ("queue_samples", _set("sent_bytes", _stop), "idle"),
        ("queue_samples", _set("marked_packets", _at(-1, 1)), "marks"),
        ("ping_samples", _set("rtt_us", _at(0, -1000)), "pings"),
        ("datagrams", _set("delay_us", _at(3, 10**5)), "datagrams"),
        ("datagrams", _set("delay_us", _at(0, -1000)), "datagrams"),
    ],
)  # fmt: skip
def test_the_checker_finds_a_recording_that_was_tampered_with(
    tmp_path: Path, table: str, change: Callable[[pa.Table], pa.Table], kind: str
) -> None:
    plan = resolve(make_scenario(DOCUMENT))
    pcap = tmp_path / "run.pcap"
    result = SimEngine().run(plan, lambda _done: True, {"pcap": str(pcap)})
    recording = record_result(Run(plan, ""), tmp_path / "run", result)
    summary = summarise(recording)
    assert problems_of(recording.path, pcap, summary) == []
    file = recording.path / f"{table}.parquet"
    pq.write_table(change(pq.read_table(file)), file)
    found = problems_of(recording.path, pcap, summary)
    assert kind in {problem.partition(":")[0] for problem in found}, found


def test_the_checker_knows_what_a_link_may_carry() -> None:
    document = {
        "duration": "10s",
        "link": [{"name": "a", "rate": "8mbit", "rate_steps": [["2s", "80mbit"]],
                  "outage": [["4s", "1s"]]}],
        "flow": [{"cc": "cubic"}],
    }  # fmt: skip
    way = Network(resolve(make_scenario(document))).by_queue["a.forward"]
    capacity = way.capacity()
    assert capacity is not None
    for at_s, carried in ((1, 1e6), (2, 2e6), (3, 12e6), (4, 22e6), (4.5, 22e6), (6, 32e6)):
        assert capacity.until(int(at_s * 1e9)) == (carried, carried)
