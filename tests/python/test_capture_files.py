"""Captures and traces of calls are there when they are complete, and otherwise not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import pytest

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.engines.runner import run_scenario
from fullpipe.engines.sim import SimEngine
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.scenario.traffic import captures

SCENARIO = {
    "duration": "1s", "path": {"rate": "10mbit", "rtt": "20ms"}, "flow": [{"cc": "cubic"}],
}  # fmt: skip


@pytest.mark.parametrize("option", ["pcap", "cc_trace"])
def test_a_run_that_fails_leaves_the_file_that_was_there_or_none(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    plan, file = resolve(make_scenario(SCENARIO)), tmp_path / "file"
    monkeypatch.setattr(_native.sim, "run", fails)
    with pytest.raises(UserError, match="No space left"):
        SimEngine().run(plan, lambda _done: True, {option: str(file)})
    assert list(tmp_path.iterdir()) == []
    file.write_text("good")
    with pytest.raises(UserError, match="No space left"):
        SimEngine().run(plan, lambda _done: True, {option: str(file)})
    assert file.read_text() == "good" and list(tmp_path.iterdir()) == [file]
    monkeypatch.undo()
    SimEngine().run(plan, lambda _done: True, {option: str(file)})
    assert file.stat().st_size > 1000


def test_a_capture_is_read_back_as_the_traffic_of_the_run(tmp_path: Path) -> None:
    udp = {"rate": "1mbit", "direction": "down", "stop": "500ms"}
    scenario = make_scenario({
        "duration": "1s", "path": {"rate": "10mbit", "rtt": "20ms"},
        "flow": [{"cc": "cubic", "amount": "20KB", "start": "100ms"}],
        "udp": [udp, {"rate": "8mbit", "payload": "1000B", "start": "900ms", "stop": "901500us"}],
        "probe": [{"kind": "ping"}],
    })  # fmt: skip
    capture = tmp_path / "run.pcap"
    run_scenario(scenario, "", [tmp_path / "run"], "sim", {"pcap": str(capture)})
    found = {name: values.tolist() for name, values in captures.read(capture).columns.items()}
    # 1 Mbit/s are 1200 B each 9.6 ms: 53 until 500 ms. 8 Mbit/s are 1000 B a ms.
    assert found["bytes"] == [53 * 1200, 20 * 1024, 2 * 1000]
    # A round trip of 20 ms before TCP's data.
    assert found["start_us"] == [0, 120_000, 900_000]


def test_the_application_of_a_captured_flow_is_that_of_the_run(tmp_path: Path) -> None:
    scenario = make_scenario(
        {
            "duration": "3s",
            "path": {"rate": "50mbit", "rtt": "20ms"},
            "flow": [
                {"cc": "cubic", "pattern": {"write": "60KB", "every": "80ms"}},
                {"cc": "reno", "direction": "down"},
            ],
        }
    )
    capture = tmp_path / "run.pcap"
    run_scenario(scenario, "", [tmp_path / "run"], "sim", {"pcap": str(capture)})
    captured = captures.read(capture)
    ((flow, application),) = captured.steady.items()
    # 60 KB each 80 ms are 6.144 Mbit/s.
    assert application.write_bytes == pytest.approx(60 * 1024, rel=0.01)
    assert application.every_us == pytest.approx(80_000, rel=0.01)
    assert application.rate_bps == pytest.approx(6.144e6, rel=0.01)
    assert captured.untold == [1 - flow], "one that always has data in flight"
    pauses_us = captured.columns["pause_us"][captured.columns["flow"] == flow][5:-1]
    # Acknowledged after 20 ms and 60 KB at 50 Mbit/s, 10 ms with headers.
    assert np.median(pauses_us) == pytest.approx(80_000 - 30_000, abs=3_000)


NEAR, FAR = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
SYN, ACK = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK


def _frame(src: bytes, flags: int, seq: int, ack: int, data: bytes = b"") -> bytes:
    """A packet of a connection from port 80 of NEAR to port 90 of FAR, or back."""
    dst, ports = (FAR, (80, 90)) if src == NEAR else (NEAR, (90, 80))
    tcp = dpkt.tcp.TCP(sport=ports[0], dport=ports[1], flags=flags, seq=seq, ack=ack, data=data)
    ip = dpkt.ip.IP(src=src, dst=dst, p=6, data=tcp)
    ip.len = len(ip)
    return bytes(dpkt.ethernet.Ethernet(data=ip, type=0x0800))


def _columns(folder: Path, packets: Sequence[tuple[float, bytes]]) -> dict[str, Any]:
    """The trace of a capture with these frames at these times."""
    file = folder / "a.pcap"
    with file.open("wb") as out:
        writer = dpkt.pcap.Writer(out)
        for time_s, frame in packets:
            writer.writepkt(frame, ts=time_s)
    return captures.read(file).columns


def test_a_capture_whose_clock_jumps_gives_a_trace_that_can_be_read(tmp_path: Path) -> None:
    columns = _columns(
        tmp_path,
        [
            (0.0, _frame(NEAR, SYN, 9, 0)),
            (50.0, _frame(FAR, SYN | ACK, 4, 10)),
            (0.01, _frame(NEAR, ACK, 10, 5)),
            (60.0, _frame(NEAR, ACK, 10, 5, b"abc")),
            (1.7e9, _frame(FAR, ACK, 5, 13)),
            (0.02, _frame(NEAR, ACK, 13, 5, b"def")),
            (61.0, _frame(NEAR, ACK, 16, 5, b"ghi")),
        ],
    )
    assert columns["bytes"].sum() == 9
    assert columns["pause_us"].max() <= 61e6


def test_without_the_handshake_pauses_below_the_silence_are_not_told(tmp_path: Path) -> None:
    """Sequence numbers, acknowledgments and times of two bursts that are 60 ms apart."""
    zero_s = 1e9
    handshake = [
        (zero_s + 0.00, _frame(NEAR, SYN, 999, 0)),
        (zero_s + 0.02, _frame(FAR, SYN | ACK, 499, 1000)),
        (zero_s + 0.02, _frame(NEAR, ACK, 1000, 500)),
    ]
    data = [
        (zero_s + 0.03, _frame(NEAR, ACK, 1000, 500, b"a" * 700)),
        (zero_s + 0.05, _frame(FAR, ACK, 500, 1700)),
        (zero_s + 0.09, _frame(NEAR, ACK, 1700, 500, b"b" * 300)),
        # Sent before the answer: the application did not pause.
        (zero_s + 0.10, _frame(NEAR, ACK, 2000, 500, b"c" * 50)),
        (zero_s + 0.11, _frame(FAR, ACK, 500, 2050)),
        # At once after the answer: it waited for the window.
        (zero_s + 0.111, _frame(NEAR, ACK, 2050, 500, b"d" * 20)),
    ]
    sizes = []
    for packets in (handshake + data, data):
        columns = _columns(tmp_path, packets)
        sizes.append((columns["bytes"].tolist(), columns["pause_us"].tolist()))
    assert sizes == [([700, 370], [0, 40_000]), ([1070], [0])]
