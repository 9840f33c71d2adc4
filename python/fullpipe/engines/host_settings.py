"""What of a host decides a measurement over a real network and is in no plan: sysctls, the
processors' frequency, and the interface's rings, coalescing, flow control and offloads.

bless2025, section III, sets these by hand. This module reads them and must never set one. Reading
through ethtool's ioctl (linux/ethtool.h) needs no rights.
"""

from __future__ import annotations

import array
import fcntl
import re
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

#: linux/sockios.h, linux/ethtool.h.
_SIOCETHTOOL, _SIOCGIFADDR = 0x8946, 0x8915
_DRIVER, _COALESCING, _RINGS, _PAUSE, _FLAGS = 0x03, 0x0E, 0x10, 0x12, 0x25
_OFFLOADS = {"TSO": 0x1E, "GSO": 0x23, "GRO": 0x2B}
_LRO = 1 << 15
_SYSCTLS = (
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_no_metrics_save",
    "net.core.default_qdisc",
)
#: A receiver's ring must hold what arrives while its processor is busy elsewhere.
_RING_S = 1e-3
#: From this rate on bless2025 found the frequency's and the moderation's changes in the RTT.
_FAST_BPS = 1e9


@dataclass(frozen=True)
class Interface:
    """An interface's settings; None for what its driver does not tell. `ring`, `largest_ring`:
    packets that wait for the receiving processor, and at most; `pauses`: whether Ethernet flow
    control is on, received or sent; `adapts`: whether the moderation of received interrupts changes
    by itself."""

    name: str
    driver: str | None = None
    ring: int | None = None
    largest_ring: int | None = None
    coalesce_us: int | None = None
    adapts: bool | None = None
    pauses: tuple[bool, bool] | None = None
    offloads: Mapping[str, bool] = field(default_factory=dict)


Ask = Callable[[int, int], bytes | None]


def interface_to(host: str) -> str | None:
    """The name of the interface through which packets to a host leave; None if there is none."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, 9, socket.AF_INET)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # of UDP: chooses a route, sends nothing
            local_address = socket.inet_aton(probe.getsockname()[0])
            for _, name in socket.if_nameindex():
                request = struct.pack("16s24x", name.encode()[:15])
                try:
                    reply = fcntl.ioctl(probe, _SIOCGIFADDR, request)
                except OSError:
                    continue  # without an address
                if reply[20:24] == local_address:
                    return name
    except OSError:
        return None
    return None


def read_interface(name: str, ask: Ask | None = None) -> Interface:
    """An interface's settings. `ask`: gives the kernel's answer to a command of so many 32-bit
    words, None if the driver refuses it."""
    ask = ask or _asker(name)
    rings, pause = _words(ask(_RINGS, 9)), _words(ask(_PAUSE, 4))
    coalescing, flags = _words(ask(_COALESCING, 23)), _words(ask(_FLAGS, 2))
    driver = ask(_DRIVER, 49)
    offloads = {
        offload: bool(words[1])
        for offload, command in _OFFLOADS.items()
        if (words := _words(ask(command, 2)))
    }
    if flags:
        offloads["LRO"] = bool(flags[1] & _LRO)
    return Interface(
        name,
        driver[4:36].split(b"\0")[0].decode(errors="replace") if driver else None,
        rings[5] if rings else None,
        rings[1] if rings else None,
        coalescing[1] if coalescing else None,
        bool(coalescing[10]) if coalescing else None,
        (bool(pause[2]), bool(pause[3])) if pause else None,
        offloads,
    )


def facts(interface: Interface | None, root: Path = Path("/")) -> dict[str, str]:
    """The host's settings as a recording keeps them: name -> words."""
    settings = {f"host: {name}": value for name, value in _sysctls(root).items()}
    if governors := _governors(root):
        settings["host: frequency governor"] = ", ".join(governors)
    if interface is None:
        return settings
    settings["host: interface"] = f"{interface.name} ({interface.driver or 'driver unknown'})"
    if interface.ring is not None:
        settings["host: receive ring"] = f"{interface.ring} of {interface.largest_ring} packets"
    if interface.coalesce_us is not None:
        kind = "adaptive" if interface.adapts else "fixed"
        settings["host: receive coalescing"] = f"{interface.coalesce_us} us, {kind}"
    if interface.pauses is not None:
        received, sent = map(_on, interface.pauses)
        settings["host: flow control"] = f"received {received}, sent {sent}"
    if interface.offloads:
        words = (f"{offload} {_on(on)}" for offload, on in interface.offloads.items())
        settings["host: offloads"] = ", ".join(words)
    return settings


def concerns(
    interface: Interface, rate_bps: float, mtu_bytes: int, root: Path = Path("/")
) -> list[str]:
    """Sentences on what would spoil a measurement at this rate."""
    sentences = []
    if interface.pauses and any(interface.pauses):
        sentences.append(
            f"{interface.name}: Ethernet flow control is on, so a switch's queue is held back "
            f"unseen (ethtool --pause {interface.name} rx off tx off)"
        )
    packets = _RING_S * rate_bps / (8 * mtu_bytes)
    ring, largest = interface.ring, interface.largest_ring or 0
    if ring is not None and ring < packets and ring < largest:
        sentences.append(
            f"{interface.name}: the receive ring of {ring} packets holds "
            f"{1e3 * ring / packets * _RING_S:.2g} ms at {rate_bps / 1e9:g} Gbit/s, so packets are "
            f"lost in the host (ethtool --set-ring {interface.name} rx {largest})"
        )
    if rate_bps >= _FAST_BPS:
        if interface.adapts:
            sentences.append(
                f"{interface.name}: interrupts are moderated adaptively, so the RTT changes with "
                f"the load (ethtool --coalesce {interface.name} adaptive-rx off)"
            )
        slow = [governor for governor in _governors(root) if governor != "performance"]
        if slow:
            sentences.append(
                f"the processors' frequency changes (governor {', '.join(slow)}), which is noise "
                "in the RTT (cpupower frequency-set --governor performance)"
            )
    return sentences


def _asker(name: str) -> Ask:
    def ask(command: int, words: int) -> bytes | None:
        value = array.array("I", [command] + [0] * (words - 1))
        request = struct.pack("16sP16x", name.encode()[:15], value.buffer_info()[0])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
            try:
                fcntl.ioctl(channel, _SIOCETHTOOL, request)
            except OSError:
                return None  # the driver has no such setting
        return value.tobytes()

    return ask


def _words(answer: bytes | None) -> tuple[int, ...]:
    return struct.unpack(f"={len(answer) // 4}I", answer) if answer else ()


def _sysctls(root: Path) -> dict[str, str]:
    files = {name: root / "proc/sys" / name.replace(".", "/") for name in _SYSCTLS}
    return {
        name: " ".join(file.read_text(encoding="ascii").split())
        for name, file in files.items()
        if file.is_file()
    }


def _governors(root: Path) -> list[str]:
    """The governors in use; none where the host's processors have a fixed frequency."""
    pattern = re.compile(r"cpu\d+")
    folder = root / "sys/devices/system/cpu"
    files = [
        cpu / "cpufreq/scaling_governor"
        for cpu in folder.glob("cpu*")
        if pattern.fullmatch(cpu.name)
    ]
    return sorted({file.read_text(encoding="ascii").strip() for file in files if file.is_file()})


def _on(on: bool) -> str:
    return "on" if on else "off"
