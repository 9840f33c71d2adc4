"""What measured machines had to do: the tables obey what is known, and reports draw them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fullpipe.engines.runner import run_scenario
from fullpipe.metrics import View
from fullpipe.metrics.hosts import machine_loads, port_rates, tcp_memory
from fullpipe.recording.recording import OPTIONAL_TABLES, TABLES, empty_table, write_recording
from fullpipe.report.page import write_report
from fullpipe.scenario.model import make_scenario


@pytest.mark.vm
def test_a_machine_says_ten_times_a_second_what_it_did(tmp_path: Path) -> None:
    scenario = make_scenario({
        "duration": "3s", "sample_interval": "100ms",
        "path": {"rate": "20mbit", "rtt": "20ms", "buffer": "40bdp"},
        "flow": [{"cc": "kernel:cubic"}],
    })  # fmt: skip
    recording = run_scenario(scenario, "", [tmp_path / "run"], "vm").recordings[0]
    processor = recording.table("cpu_samples").to_pydict()
    assert set(processor["machine"]) == {"local"} and set(processor["cpu"]) == {0}
    assert np.diff(processor["t_us"]) == pytest.approx(100_000, abs=5_000)
    spent = sum(np.array(processor[name]) for name in processor if name.endswith("_us"))
    # Two of these columns are t_us and idle_us; ticks of 10 ms, each kind cut off by itself.
    assert spent - processor["t_us"] == pytest.approx(np.array(processor["t_us"]), abs=120_000)
    ports = recording.table("nic_samples").to_pydict()
    assert set(ports["host"]) == {"sender 0", "receiver 0"}
    last = {host: (sent, got) for host, sent, got in zip(
        ports["host"], ports["sent_bytes"], ports["received_bytes"], strict=True)}  # fmt: skip
    queue = recording.table("queue_samples").to_pydict()
    forward = [sent for name, sent in zip(queue["queue"], queue["sent_bytes"], strict=True)
               if name == "forward"][-1]  # fmt: skip
    assert last["receiver 0"][1] == pytest.approx(forward, rel=0.01)
    memory = recording.table("tcp_memory_samples").to_pydict()
    # Listening, connecting, accepted; what one processor keeps in hand, up to 1 MB, is not counted.
    assert set(memory["sockets"]) == {3} and 1e6 < max(memory["memory_bytes"]) < 2e7
    (load,) = machine_loads(View(recording, start_s=0.0))
    health = recording.metadata["health"]
    assert load.busiest.max() == pytest.approx(health["cpu_busy_max"], abs=0.03)
    page = write_report([recording], tmp_path / "page.html", light=True).read_text()
    for title in ("Processors of the measured machine", "hosts' ports", "TCP's buffers"):
        assert title in page.replace("&#39;", "'")


def test_shares_of_processors_are_what_idling_leaves_and_the_busiest_is_told(
    tmp_path: Path,
) -> None:
    # Two processors for two seconds: 0 is half busy, then wholly; 1 idles; ticks met half of it.
    t_us = np.repeat(np.arange(1, 21) * 100_000, 2)
    cpu = np.tile([0, 1], 20)
    busy = np.where(t_us <= 1_000_000, t_us // 2, 500_000 + (t_us - 1_000_000)) * (cpu == 0)
    columns = {
        "t_us": t_us, "machine": ["local"] * 40, "cpu": cpu, "user_us": busy // 8,
        "system_us": 0 * cpu, "irq_us": 0 * cpu, "softirq_us": 3 * busy // 8, "steal_us": 0 * cpu,
        "idle_us": t_us - busy,
    }  # fmt: skip
    tables = {name: empty_table(name) for name in TABLES}
    tables["cpu_samples"] = pa.table(columns, schema=OPTIONAL_TABLES["cpu_samples"])
    recording = write_recording(tmp_path / "made", {"plan": {}}, "", tables)
    view = View(recording, start_s=0.0)
    (load,) = machine_loads(view)
    assert load.processors == 2 and load.end_s.tolist() == [1.0, 2.0]
    assert load.busiest.tolist() == [0.5, 1.0]
    assert load.mean["softirq"].tolist() == pytest.approx([0.75 * 0.25, 0.75 * 0.5])
    assert load.mean["user"].tolist() == pytest.approx([0.25 * 0.25, 0.25 * 0.5])
    assert port_rates(view) == tcp_memory(view) == {}
