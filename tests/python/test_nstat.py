"""A kernel's own words of a run are in its recording: counters of protocols as `nstat` shows them,
sockets as `ss -i`, queues as `tc -s`."""

from __future__ import annotations

import re

import pytest

from fullpipe.engines.vm import VmEngine, hardware
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")
def test_the_kernels_own_words_agree_with_the_rows_of_its_flow() -> None:
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

    facts = result.metadata["facts"]
    name, words = facts["ss -i"].splitlines()
    assert name == flow["flow"] and re.search(r"\bcubic\b", words)
    told = dict(re.findall(r"(\w+):([\d.]+)", words))
    *_, sample = result.tables["flow_samples"].to_pylist()
    assert int(told["cwnd"]) == sample["cwnd_packets"]
    assert int(told["data_segs_out"]) == flow["packets_sent"]
    assert round(1000 * float(told["minrtt"])) == sample["min_rtt_us"]
    (retransmitted,) = re.findall(r"retrans:\d+/(\d+)", words)
    assert int(retransmitted) == flow["packets_retransmitted"]
    # What the flow lost, netem and the queue behind it dropped.
    dropped = re.findall(r"qdisc netem .*\n.*\(dropped (\d+),", facts["tc -s router"])
    assert max(map(int, dropped)) == flow["packets_lost"]
