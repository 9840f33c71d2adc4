"""A send buffer limits a flow in the machine's kernel, although its devices hold nothing back."""

from __future__ import annotations

import pytest

from fullpipe.engines.vm import VmEngine, hardware
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

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
