"""The stacks over real UDP sockets (crates/fullpipe-quic/examples/udp.rs): both ends in a network
namespace that has nothing but a loopback and vanishes with its processes. What the machine's clock
does must not matter. `make test-quic` builds the program and runs these."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "target/quic/release/examples/udp"
AMOUNT_BYTES = 1_000_000
#: The first process of a process namespace: when it ends, so does the server.
BOTH_ENDS = """
ip link set lo up
"$0" server "$@" 2> "$REPORT" &
exec "$0" client "$@" seconds=300 peer="$REPORT"
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")


def over_loopback(cc: str, report: Path, **others: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The reports of client and server."""
    given = {"cc": cc, "address": "127.0.0.1:443", "bytes": AMOUNT_BYTES, **others}
    done = subprocess.run(
        ["unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", BOTH_ENDS, PROGRAM]
        + [f"{key}={value}" for key, value in given.items()],
        env={**os.environ, "REPORT": str(report)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stderr)
    return told["client"], told["server"]


@pytest.mark.parametrize("ecn", ["true", "false"])
@pytest.mark.parametrize("cc", ["quinn:cubic", "quinn:bbr", "noq:cubic", "noq:bbr3"])
def test_an_amount_arrives_and_every_datagram_is_counted(cc: str, ecn: str, tmp_path: Path) -> None:
    client, server = over_loopback(cc, tmp_path / "server", ecn=ecn)
    assert client["failure"] == server["failure"] == ""
    assert client["established_us"] >= 0
    assert server["received_bytes"] == AMOUNT_BYTES
    assert AMOUNT_BYTES / client["datagram_bytes"] < server["received"] <= client["sent"]
    # An ACK for every second datagram, and more in the handshake and after losses.
    assert server["received"] / 2 - 1 <= server["sent"]
    assert client["received"] <= server["sent"]
    assert server["received_ce"] == 0


def test_a_stack_that_is_unknown_is_named(tmp_path: Path) -> None:
    words = [PROGRAM, "client", "cc=nobody:cubic", "address=127.0.0.1:443"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "udp: cc=nobody:cubic: no such stack\n"
