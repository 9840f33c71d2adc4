"""A program that knows nothing of fullpipe: TCP over a lossy loopback of its own, under a
congestion control chosen by name. Started by the tests in a network namespace of its own
(`unshare -n`), which ends with it.

kernel_traffic.py NAME BYTES [--user ID] [--path OBJECT]: connects and says "connected" (a line);
at every line on standard input sends BYTES and answers with a JSON line of what arrived and what
chose; at its end, closes. --user is who to become before the socket is made; --path an eBPF object
that drops and marks what arrives (kernel_path.bpf.c), for a faster path with ECN.
"""

from __future__ import annotations

import argparse
import array
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from queue import SimpleQueue

CHUNK = bytes(1 << 16)
_SIOCETHTOOL = 0x8946
_ETHTOOL_SET_TSO, _ETHTOOL_SET_GSO = 0x1F, 0x24


def make_path(impairment: str | None) -> None:
    """A queue for both directions: 100 Mbit/s and 30 packets, or three times that; it overflows."""
    rate, limit = ("100mbit", 45_000) if impairment is None else ("300mbit", 135_000)
    commands = [
        "ip link set lo mtu 1500",
        "ip link set lo up",
        f"tc qdisc add dev lo root tbf rate {rate} burst 20000 limit {limit}",
    ]
    if impairment is not None:
        # Packets, not bursts of them, are to be dropped and marked; small bursts make many calls.
        commands.append("ip link set lo gso_max_segs 2")
        for feature in (_ETHTOOL_SET_TSO, _ETHTOOL_SET_GSO):
            _turn_off(feature)
        Path("/proc/sys/net/ipv4/tcp_ecn").write_text("1")
        commands += [
            "tc qdisc add dev lo clsact",
            f"tc filter add dev lo ingress bpf direct-action object-file {impairment} section tc",
        ]
    for command in commands:
        subprocess.run(command.split(), check=True)


def _turn_off(feature: int) -> None:
    """An offload of lo (linux/ethtool.h, struct ethtool_value)."""
    value = array.array("I", [feature, 0])
    request = struct.pack("16sP", b"lo", value.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCETHTOOL, request)


def receive(listener: socket.socket, arrived: SimpleQueue[int]) -> None:
    """Counts what comes on one connection."""
    peer, _ = listener.accept()
    while data := peer.recv(len(CHUNK)):
        arrived.put(len(data))


def main(name: str, count: int, user: int | None, impairment: str | None) -> None:
    """Connects and sends as told."""
    make_path(impairment)
    if user is not None:
        os.setuid(user)
    listener = socket.create_server(("127.0.0.1", 0))
    arrived: SimpleQueue[int] = SimpleQueue()
    receiver = threading.Thread(target=receive, args=(listener, arrived))
    receiver.start()
    with socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        sender.connect(listener.getsockname())
        print("connected", flush=True)
        for _ in sys.stdin:
            sent = came = 0
            while sent < count:
                sent += sender.send(CHUNK[: count - sent])
            while came < count:
                came += arrived.get()
            chosen = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            answer = {"arrived": came, "name": chosen.rstrip(b"\0").decode()}
            print(json.dumps(answer), flush=True)
    receiver.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("count", type=int)
    parser.add_argument("--user", type=int)
    parser.add_argument("--path")
    given = parser.parse_args()
    main(given.name, given.count, given.user, given.path)
