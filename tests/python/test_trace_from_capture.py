"""Traces of links from captures: by hand, packets that leave a link of known rates."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from pathlib import Path

import dpkt
import numpy as np
import pytest
from typer.testing import CliRunner

from fullpipe.base.errors import UserError
from fullpipe.cli.app import app
from fullpipe.scenario.link_trace_captures import link_trace

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
MSS = 1448
RTT_S = 0.04


def segment(source: str, seq: int, ack: int, length: int, stamp_ms: int, flags: int) -> bytes:
    """An Ethernet frame of TCP with timestamps."""
    ports = (40_000, 5_001) if source == CLIENT else (5_001, 40_000)
    options = b"\x01\x01\x08\x0a" + struct.pack("!II", stamp_ms, 0)
    tcp = dpkt.tcp.TCP(sport=ports[0], dport=ports[1], seq=seq, ack=ack, flags=flags,
                       opts=options, data=b"\0" * length, off=8)  # fmt: skip
    far = SERVER if source == CLIENT else CLIENT
    ip = dpkt.ip.IP(src=socket.inet_aton(source), dst=socket.inet_aton(far), p=6, data=tcp)
    ip.len = 20 + 32 + length
    return bytes(dpkt.ethernet.Ethernet(data=ip, type=0x0800))


def capture(
    path: Path, rate_bps: Callable[[float], float], sent_bps: Callable[[float], float],
    length_s: float = 10.0, at_sender: bool = False,
) -> Path:  # fmt: skip
    """What a receiver sees behind a link of this rate of a sender with this one; or a sender."""
    packets: list[tuple[float, bytes]] = [
        (0.0, segment(CLIENT, 0, 0, 0, 0, dpkt.tcp.TH_SYN)),
        (0.0, segment(SERVER, 0, 1, 0, 0, dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK)),
        (RTT_S, segment(CLIENT, 1, 1, 0, 0, dpkt.tcp.TH_ACK)),
    ]
    sent_s = free_s = RTT_S
    seq = 1
    while max(sent_s, free_s) < length_s:
        sent_s += 8 * 1514 / sent_bps(sent_s)
        free_s = max(free_s, sent_s) + 8 * 1514 / rate_bps(max(free_s, sent_s))
        seen_s = sent_s if at_sender else free_s + RTT_S / 2
        data = segment(CLIENT, seq, 1, MSS, round(1e3 * sent_s), dpkt.tcp.TH_ACK)
        seq += MSS
        answer = segment(SERVER, 1, seq, 0, 0, dpkt.tcp.TH_ACK)
        packets += [(seen_s, data), (seen_s + (RTT_S if at_sender else 1e-4), answer)]
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, nano=True)
        for at_s, frame in sorted(packets, key=lambda one: one[0]):
            writer.writepkt(frame, ts=1_700_000_000 + at_s)
    return path


def steps(at_s: float) -> float:
    return 4e6 if int(at_s) % 2 else 12e6


def rates_bps(times_ms: list[int], window_ms: int = 1000) -> np.ndarray:
    counts = np.bincount(np.array(times_ms) // window_ms)
    return counts * 1514 * 8 * 1000 / window_ms


def test_what_left_a_full_link_is_its_rate(tmp_path: Path) -> None:
    found = link_trace(capture(tmp_path / "c.pcap", steps, lambda _: 20e6))
    assert found.full > 0.95
    assert found.length_s == pytest.approx(10, abs=0.1)
    seen = rates_bps(found.made.times_ms)[1:9]
    wanted = [steps(second - 0.02 + 0.5) for second in range(1, 9)]
    assert seen == pytest.approx(wanted, rel=0.1)
    assert found.made.times_ms == sorted(found.made.times_ms)


def test_where_nothing_waits_the_rate_is_that_before_and_after_and_the_share_is_told(
    tmp_path: Path,
) -> None:
    """From 4 to 6 s the sender has 1 Mbit/s only; the link could carry 8."""
    found = link_trace(
        capture(tmp_path / "c.pcap", lambda _: 8e6, lambda s: 1e6 if 4 < s < 6 else 8.5e6)
    )
    assert 0.7 < found.full < 0.85
    assert rates_bps(found.made.times_ms)[2:9] == pytest.approx(8e6, rel=0.05)


def test_a_link_that_was_not_full_is_refused(tmp_path: Path) -> None:
    path = capture(tmp_path / "c.pcap", lambda _: 50e6, lambda _: 5e6)
    with pytest.raises(UserError, match="packets waited for the link in 0 % of the time only"):
        link_trace(path)


def test_a_capture_of_the_sender_is_refused(tmp_path: Path) -> None:
    path = capture(tmp_path / "c.pcap", lambda _: 8e6, lambda _: 10e6, at_sender=True)
    with pytest.raises(UserError, match="was taken before the link"):
        link_trace(path)


def test_the_command_writes_a_trace_that_scenarios_take(tmp_path: Path) -> None:
    path = capture(tmp_path / "c.pcap", lambda _: 8e6, lambda _: 10e6)
    words = ["trace", "from-capture", path, tmp_path / "t.trace"]
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output
    assert "the link was full in" in done.output
    shown = CliRunner().invoke(app, ["trace", "show", str(tmp_path / "t.trace")])
    assert "mean 7.9" in shown.output or "mean 8" in shown.output
    again = CliRunner().invoke(app, [*map(str, words)])
    assert isinstance(again.exception, UserError)
