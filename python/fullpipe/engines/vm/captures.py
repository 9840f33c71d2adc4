"""Captures of the packets at both ends of a machine's path, as files."""

from __future__ import annotations

import struct
from pathlib import Path

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.plan.plan import Plan

#: Magic of ns, version, time zone, accuracy, length that is kept, Ethernet (pcap-savefile(5)).
_HEADER = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1)
#: A record with its header, and how many a packet and its acknowledgement make at two ends.
_RECORD_BYTES, _RECORDS = 144, 4


def files(senders: Path) -> tuple[Path, Path]:
    """The file of the senders, which the user named, and that of the receivers beside it."""
    return senders, senders.with_name(f"{senders.stem}.receivers{senders.suffix}")


def refuse(path: Path) -> None:
    """Raises UserError if a capture cannot be written there."""
    try:
        for file in files(path):
            file.touch()
    except OSError as error:
        raise UserError(f"--pcap {path}: cannot be written: {error}") from None


def mib(plan: Plan) -> int:
    """Space for the captures of a run."""
    path = plan["path"]
    packets = path["rate_bps"] / 8 / path["mtu_bytes"] * plan["duration_ns"] / 1e9
    directions = len({flow["direction"] for flow in plan["flows"]}) or 1
    return int(packets * directions * _RECORDS * _RECORD_BYTES // 2**20) + 1


def write(stream: bytes, path: Path) -> None:
    """Writes the captures that came in the agent's stream."""
    for file, records in zip(files(path), _native.stream.captures(stream), strict=True):
        file.write_bytes(_HEADER + records)
