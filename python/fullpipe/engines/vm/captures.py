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


def files(near: Path) -> tuple[Path, Path]:
    """The file of the path's near end, where data "up" is sent, which the user named, and that of
    the far end beside it."""
    return near, near.with_name(f"{near.stem}.far{near.suffix}")


def refuse(path: Path) -> None:
    """Raises UserError if a capture cannot be written there."""
    try:
        for file in files(path):
            file.open("ab").close()  # of a folder, touch() would say nothing
    except OSError as error:
        raise UserError(f"--pcap {path}: cannot be written: {error}") from None


def mib(plan: Plan) -> int:
    """Space for the captures of a run: full packets and their ACKs at the fastest link's rate, in
    the directions that have data."""
    others = ("pages", "datagrams", "traffic")
    directions = {flow["direction"] for flow in plan["flows"]}
    if not directions or any(plan.get(kind) for kind in others):
        directions = {"up", "down"}
    rate_bps = sum(_fastest_bps(plan, direction) for direction in directions)
    packets = rate_bps / 8 / plan["path"]["mtu_bytes"] * plan["duration_ns"] / 1e9
    return int(packets * _RECORDS * _RECORD_BYTES // 2**20) + 1


def _fastest_bps(plan: Plan, direction: str) -> float:
    """The rate of the fastest link for this direction's data."""
    side = "forward" if direction == "up" else "reverse"
    parts = [link["medium"].get(side) or {} for link in plan["links"]]
    return max([part.get("rate_bps") or 0 for part in parts] + [plan["path"]["rate_bps"]])


def write(stream: bytes, path: Path) -> None:
    """Writes the captures that came in the agent's stream."""
    for file, records in zip(files(path), _native.stream.captures(stream), strict=True):
        file.write_bytes(_HEADER + records)
