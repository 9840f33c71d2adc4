"""A send buffer limits a flow in the simulator, and in the machine's kernel, whose devices hold
nothing back."""

from __future__ import annotations

import pytest

from fullpipe.engines.vm import VmEngine, hardware
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from helpers import column, simulate

SECONDS, RTT_S, BURST_BYTES = 4, 0.1, 64 * 1024


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")
@pytest.mark.parametrize("kib", [32, 256])
def test_no_more_than_the_buffer_and_a_burst_leaves_in_a_round_trip(kib: int) -> None:
    document = {
        "duration": f"{SECONDS}s",
        "path": {"rate": "50mbit", "rtt": f"{RTT_S}s", "buffer": "1bdp"},
        "host": {"wmem_max": f"{kib}KB"},
        "flow": [{"cc": "kernel:cubic"}],
    }
    result = VmEngine().run(resolve(make_scenario(document)), lambda _done: True, {})
    (delivered,) = result.tables["flows"]["bytes_delivered"].to_pylist()
    in_a_trip = delivered / (SECONDS / RTT_S)
    assert kib * 1024 / 2 < in_a_trip < kib * 1024 + BURST_BYTES


def test_a_buffer_below_the_bdp_carries_what_it_carries_in_the_kernel() -> None:
    """Linux 6.12.117 delivers 8.04 MB: two writes of 64 KiB when a third of the buffer is free. The
    simulator made three of them, and had 6.73 MB."""
    raw = simulate(
        duration="4s",
        path={"rate": "50mbit", "rtt": "100ms", "buffer": "1bdp"},
        host={"wmem_max": "256KB"},
        flow=[{"cc": "cubic"}],
    )
    (delivered,) = column(raw, "flows", "bytes_delivered")
    assert delivered == pytest.approx(8.04e6, rel=0.02)
