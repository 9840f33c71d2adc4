"""Recoveries and undos of a run in a kernel are the kernel's, whatever the samples see."""

from __future__ import annotations

from typing import Any

import pytest

from fullpipe.engines.unfinished import with_totals
from fullpipe.engines.vm import VmEngine, hardware
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import TABLES
from fullpipe.scenario.model import make_scenario

#: A delay spike makes recoveries spurious, and each lasts less than a sample of 1 s.
SPIKES: dict[str, Any] = {
    "duration": "5s",
    "link": [
        {"name": "bn", "rate": "5mbit", "buffer": "4bdp",
         "delay_steps": [["0s", "30ms"], ["2s", "70ms"], ["2.2s", "30ms"]]},
        {"name": "re", "delay": "20ms", "reorder": "3%", "reverse": {"delay": "0ms"}},
    ],
    "flow": [{"cc": "kernel:reno"}],
}  # fmt: skip


def counted(interval: str) -> tuple[int, int, int]:
    plan = resolve(make_scenario(SPIKES | {"sample_interval": interval}))
    flows = VmEngine().run(plan, lambda _done: True, {"kernel": "6.12"}).tables["flows"]
    (row,) = flows.to_pylist()
    return row["recoveries"], row["undos"], row["packets_retransmitted"]


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")
def test_the_kernel_counts_what_samples_would_miss() -> None:
    fine, coarse = counted("10ms"), counted("1s")
    assert fine == coarse
    recoveries, undos, retransmitted = fine
    assert 0 < undos <= recoveries <= retransmitted


def test_a_run_that_did_not_finish_has_no_numbers_of_them() -> None:
    plan = resolve(make_scenario(SPIKES))
    sample = dict.fromkeys(TABLES["flow_samples"].names, 1) | {"flow_id": 0}
    tables = {
        name: schema.empty_table() if name != "flow_samples"
        else schema.empty_table().from_pylist([sample], schema=schema)
        for name, schema in TABLES.items()
    }  # fmt: skip
    (row,) = with_totals(tables, plan)["flows"].to_pylist()
    assert row["recoveries"] is row["undos"] is None and row["timeouts"] == 0
