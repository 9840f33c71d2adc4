"""A program that knows nothing of fullpipe: TCP over a lossy loopback of its own, under a
congestion control chosen by name. Started by the tests in a network namespace of its own
(`unshare -n`), which ends with it.

kernel_traffic.py NAME BYTES [USER]: connects and says "connected" (a line); at every line on
standard input sends BYTES and answers with a JSON line of what arrived and what chose; at its end,
closes. USER is a user id to become before the socket is made.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from queue import SimpleQueue

CHUNK = bytes(1 << 16)


def make_path() -> None:
    """100 Mbit/s and 30 packets of buffer, both ways through the same queue: it overflows."""
    for command in (
        "ip link set lo mtu 1500",
        "ip link set lo up",
        "tc qdisc add dev lo root tbf rate 100mbit burst 20000 limit 45000",
    ):
        subprocess.run(command.split(), check=True)


def receive(listener: socket.socket, arrived: SimpleQueue[int]) -> None:
    """Counts what comes on one connection."""
    peer, _ = listener.accept()
    while data := peer.recv(len(CHUNK)):
        arrived.put(len(data))


def main(name: str, count: int, user: int | None) -> None:
    """Connects and sends as told."""
    make_path()
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
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
