"""`--pcap` of the virtual machine: the packets at both ends, against the kernel's own counters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dpkt
import pytest

from fullpipe.base.errors import UserError
from fullpipe.engines.vm import VmEngine, captures, hardware
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

needs_machine = pytest.mark.skipif(not hardware.is_there(), reason="QEMU is not installed")
PATH = {"rate": "10mbit", "rtt": "40ms", "buffer": "0.5bdp"}


def plan(*directions: str) -> Any:
    flows = [
        {"cc": "kernel:cubic", "direction": direction, "amount": "1MB"} for direction in directions
    ]
    return resolve(make_scenario({"duration": "3s", "path": PATH, "flow": flows}))


def packets(file: Path) -> list[tuple[float, Any]]:
    """Times and TCP packets of a capture, which another program reads."""
    with file.open("rb") as content:
        records = [
            (float(at), dpkt.ethernet.Ethernet(data)) for at, data in dpkt.pcap.Reader(content)
        ]
    return [(at, frame.data) for at, frame in records if isinstance(frame.data.data, dpkt.tcp.TCP)]


def test_a_capture_without_packets_is_one(tmp_path: Path) -> None:
    captures.write(b"", tmp_path / "x.pcap")
    assert [file.name for file in captures.files(tmp_path / "x.pcap")] == [
        "x.pcap", "x.far.pcap",
    ]  # fmt: skip
    assert all(packets(file) == [] for file in captures.files(tmp_path / "x.pcap"))


def test_space_grows_with_packets_and_directions() -> None:
    once, twice = captures.mib(plan("up")), captures.mib(plan("up", "down"))
    # 10 Mbit/s are 2,500 packets of 1,500 bytes in 3 s; each and its ACK have two records of at
    # most 144 bytes.
    assert once >= 2500 * 4 * 144 / 2**20
    assert once < twice <= 2 * once


def test_a_place_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--pcap .*cannot be written"):
        captures.refuse(tmp_path / "none" / "x.pcap")


@pytest.mark.vm
@pytest.mark.slow
@needs_machine
def test_both_ends_have_what_the_kernel_counted_and_the_path_lies_between(tmp_path: Path) -> None:
    file = tmp_path / "x.pcap"
    result = VmEngine().run(plan("up"), lambda _done: True, {"kernel": "6.12", "pcap": str(file)})
    near, far = (packets(end) for end in captures.files(file))
    facts = result.metadata["facts"]
    sent = [packet for _, packet in near if packet.data.dport == 10000]
    counted = re.search(r"TcpOutSegs (\d+)\n", facts["nstat sender 0"])
    again = re.search(r"TcpRetransSegs (\d+)\n", facts["nstat sender 0"])
    assert counted and again and int(again[1]) > 0
    # The flow ends long before the run.
    assert len(sent) == int(counted[1]) + int(again[1])
    arrived = [packet for _, packet in far if packet.data.dport == 10000]
    counted = re.search(r"TcpInSegs (\d+)\n", facts["nstat receiver 0"])
    assert counted and len(arrived) == int(counted[1])
    assert [at for at, _ in near] == sorted(at for at, _ in near)
    # The path's delay is on the way back: the SYN-ACK needs 40 ms, the SYN nothing.
    ((left, _), (back, _)), ((came, _), (answered, _)) = near[:2], far[:2]
    assert 0 <= came - left < 0.001 and 0.040 <= back - answered < 0.041
