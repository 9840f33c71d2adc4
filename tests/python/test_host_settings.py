"""A host's settings are read as linux/ethtool.h lays them out, and what would spoil a measurement
is told with what bless2025, section III, does about it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fullpipe.engines.host_settings import (
    Interface,
    concerns,
    facts,
    interface_to,
    read_interface,
)

#: The bless2025 receiver's interface before its ring was enlarged: ethtool_ringparam,
#: ethtool_pauseparam, ethtool_coalesce, ethtool_value and ethtool_drvinfo.
ANSWERS = {
    0x10: struct.pack("=9I", 0x10, 32768, 0, 0, 8192, 512, 0, 0, 1024),
    0x12: struct.pack("=4I", 0x12, 1, 0, 1),
    0x0E: struct.pack("=23I", 0x0E, 50, 0, 0, 0, 25, 0, 0, 0, 0, 1, *[0] * 12),
    0x1E: struct.pack("=2I", 0x1E, 1),
    0x23: struct.pack("=2I", 0x23, 1),
    0x2B: struct.pack("=2I", 0x2B, 0),
    0x25: struct.pack("=2I", 0x25, 1 << 15),
    0x03: struct.pack("=I32s160x", 0x03, b"ixgbe"),
}


def answer(command: int, words: int) -> bytes:
    """The answer, which the kernel writes over the question: it must have the same size."""
    assert len(ANSWERS[command]) == 4 * words
    return ANSWERS[command]


def test_settings_are_where_the_kernels_header_has_them() -> None:
    assert read_interface("eth7", answer) == Interface(
        "eth7", "ixgbe", 512, 32768, 50, True, (False, True),
        {"TSO": True, "GSO": True, "GRO": False, "LRO": True},
    )  # fmt: skip


def test_what_a_driver_does_not_tell_is_left_out() -> None:
    silent = read_interface("eth7", lambda command, words: None)
    assert silent == Interface("eth7")
    assert facts(silent, Path("/nowhere")) == {"host: interface": "eth7 (driver unknown)"}
    assert concerns(silent, 10e9, 1500, Path("/nowhere")) == []


def test_the_kernel_answers_for_the_loopback() -> None:
    """dev_ethtool() answers for every interface; a loopback has offloads and no ring."""
    assert interface_to("127.0.0.1") == "lo"
    loopback = read_interface("lo")
    assert set(loopback.offloads) == {"TSO", "GSO", "GRO", "LRO"}
    assert loopback.ring is None and loopback.pauses is None


def test_a_name_without_an_address_has_no_interface() -> None:
    assert interface_to("no-such-host.invalid") is None


def host(folder: Path, governor: str) -> Path:
    """A root with a processor and a sysctl."""
    for file, text in (
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", f"{governor}\n"),
        ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t500000000\n"),
    ):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="ascii")
    return folder


def test_facts_are_words_for_a_report(tmp_path: Path) -> None:
    found = facts(read_interface("eth7", answer), host(tmp_path, "powersave"))
    assert found == {
        "host: net.ipv4.tcp_rmem": "4096 131072 500000000",
        "host: frequency governor": "powersave",
        "host: interface": "eth7 (ixgbe)",
        "host: receive ring": "512 of 32768 packets",
        "host: receive coalescing": "50 us, adaptive",
        "host: flow control": "received off, sent on",
        "host: offloads": "TSO on, GSO on, GRO off, LRO on",
    }


GOOD = Interface("eth7", "ixgbe", 32768, 32768, 0, False, (False, False))
BAD = Interface("eth7", "ixgbe", 512, 32768, 50, True, (False, True))


@pytest.mark.parametrize(
    ("interface", "rate_bps", "governor", "told"),
    [
        (GOOD, 10e9, "performance", ()),
        # A millisecond of 10 Gbit/s is 833 packets, of 1 Gbit/s 83.
        (BAD, 10e9, "powersave", ("flow control", "0.61 ms", "adaptively", "powersave")),
        (BAD, 1e9, "performance", ("flow control", "adaptively")),
        (BAD, 100e6, "powersave", ("flow control",)),
        # A ring that cannot be larger is no setting.
        (Interface("eth7", "e1000", 256, 256), 10e9, "performance", ()),
    ],
)
def test_what_would_spoil_a_measurement_is_told(
    interface: Interface, rate_bps: float, governor: str, told: tuple[str, ...], tmp_path: Path
) -> None:
    found = concerns(interface, rate_bps, 1500, host(tmp_path, governor))
    assert len(found) == len(told), found
    for sentence, words in zip(found, told, strict=True):
        assert words in sentence
