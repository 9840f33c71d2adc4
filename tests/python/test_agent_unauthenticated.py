"""The far end against those who do not know the token, and against a plan that names files."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator

import pytest

from fullpipe.engines.assets import agent
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario

TOKEN = "secret"
HELLO = b"fpagent1"


@pytest.fixture
def port() -> Iterator[int]:
    """An agent that serves on a port of the loopback address."""
    process = subprocess.Popen(
        [agent(), "serve", "127.0.0.1:0", "/nonexistent"], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{TOKEN}\n")
    process.stdin.flush()
    try:
        yield int(process.stdout.readline().rpartition(":")[2])
    finally:
        process.kill()
        process.communicate()


def _greeted(port: int, source: str = "127.0.0.1") -> tuple[socket.socket, bytes]:
    """A connection, and the far end's nonce."""
    connection = socket.create_connection(("127.0.0.1", port), None, (source, 0))
    hello = connection.recv(24, socket.MSG_WAITALL)
    assert hello[:8] == HELLO
    return connection, hello[8:]


def _authenticated(port: int) -> socket.socket:
    """A control connection of a near end that knows the token."""
    connection, far = _greeted(port)
    near, purpose = os.urandom(16), b"C\0\0\0\0"

    def proof(role: bytes) -> bytes:
        return hmac.digest(TOKEN.encode(), role + far + near + purpose, "sha256")

    connection.sendall(purpose + near + proof(b"near"))
    assert connection.recv(32, socket.MSG_WAITALL) == proof(b"far")
    return connection


@pytest.mark.parametrize("addresses", [1, 4, 100])
def test_connections_that_only_wait_keep_nobody_out(port: int, addresses: int) -> None:
    """Two hundred of them, of which each has sent a byte: they hold every place that they get."""
    with contextlib.ExitStack() as held:
        for index in range(200):
            source = f"127.0.0.{1 + index % addresses}"
            with contextlib.suppress(OSError):
                peer, _ = _greeted(port, source)
                held.callback(peer.close)
                peer.sendall(b"C")
        with _authenticated(port):
            pass


def _asked(connection: socket.socket, command: object) -> object:
    text = json.dumps(command).encode()
    connection.sendall(struct.pack("<I", len(text)) + text)
    (length,) = struct.unpack("<I", connection.recv(4, socket.MSG_WAITALL))
    return json.loads(connection.recv(length, socket.MSG_WAITALL))


@pytest.mark.parametrize("name", ["../../../../tmp/evil", "/tmp/evil", ".."])
def test_a_peers_plan_names_algorithms_and_never_files(port: int, name: str) -> None:
    scenario = {
        "duration": "1s", "path": {"rate": "10mbit", "rtt": "20ms"},
        "flow": [{"cc": "bbr3", "direction": "down"}],
    }  # fmt: skip
    plan = resolve(make_scenario(scenario))
    for flow in plan["flows"]:
        flow["cc"]["algorithm"] = name
    with _authenticated(port) as connection:
        answer = _asked(connection, {"prepare": plan})
    assert isinstance(answer, dict)
    assert "must be a name" in answer["refused"] and "bpf.o" not in answer["refused"]
