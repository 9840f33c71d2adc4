"""What the protocols of each host counted is in a kernel's recording, as `nstat` shows it."""

from __future__ import annotations

import pytest

from fullpipe.engines.vm import VmEngine, hardware
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")
def test_a_hosts_counters_agree_with_what_its_flow_retransmitted() -> None:
    path = {"rate": "5mbit", "rtt": "20ms", "loss": "1%"}
    plan = resolve(
        make_scenario({"duration": "3s", "path": path, "flow": [{"cc": "kernel:cubic"}]})
    )
    result = VmEngine().run(plan, lambda _done: True, {})
    told = [
        dict(line.split() for line in text.splitlines())
        for name, text in result.metadata["facts"].items()
        if name.startswith("nstat ")
    ]
    (sender,) = [one for one in told if "TcpActiveOpens" in one]
    (flow,) = result.tables["flows"].to_pylist()
    assert int(sender["TcpRetransSegs"]) >= flow["packets_retransmitted"] > 0
    assert int(sender["TcpExtTCPSackRecovery"]) == flow["recoveries"]
