"""Two hosts: namespaces with a cable between them, which vanish with the processes that hold them.
What arrived must be what the kernel counted at the cable's qdisc, which lets no more through than
its rate, and nothing may be left. How much of the rate a flow reaches is not asked: these runs are
in real time, and a busy machine stops both hosts for as long as it likes.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fullpipe.base.errors import UserError
from fullpipe.engines.live import LiveEngine
from fullpipe.recording.recording import Recording
from live_host import plan_of, wire_bytes

FULLPIPE = [str(Path(sys.executable).with_name("fullpipe"))]
TOKEN = "a-token-of-the-tests"
NEAR, FAR = "10.231.7.1", "10.231.7.2"
RATE_MBPS = 40
#: What the qdisc of the cable holds; it passes after the last sample, too.
QUEUE_BYTES = 200_000

if os.geteuid() != 0:
    pytest.skip("engine live needs root", allow_module_level=True)

pytestmark = [pytest.mark.live, pytest.mark.root]


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[str, list[str]]]:
    """Commands that run another command on either of two hosts, 40 Mbit/s apart."""
    with ExitStack() as stack:
        inside: dict[str, list[str]] = {}
        for name in ("near", "far"):
            process = subprocess.Popen(
                ["unshare", "--net", "sh", "-c", "echo; read line"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            stack.callback(process.wait)
            assert process.stdin is not None and process.stdout is not None
            stack.callback(process.stdin.close)
            process.stdout.readline()
            inside[name] = ["nsenter", f"--net=/proc/{process.pid}/ns/net"]
            if name == "near":
                holder = process.pid
        far = int(inside["far"][1].split("/")[2])
        cable = f"ip link add fp0 netns {holder} type veth peer name fp0 netns {far}"
        subprocess.run(cable.split(), check=True)
        for name, address in (("near", NEAR), ("far", FAR)):
            for command in (
                "ip link set lo up",
                f"ip address add {address}/24 dev fp0",
                "ip link set fp0 up",
                "sysctl -qw net.ipv4.ping_group_range=0\t2147483647",
                f"tc qdisc add dev fp0 root tbf rate {RATE_MBPS}mbit burst 8000 "
                f"limit {QUEUE_BYTES}",
            ):
                subprocess.run([*inside[name], *command.split(" ")], check=True)
        yield inside


@pytest.fixture
def server(hosts: dict[str, list[str]], tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`fullpipe agent serve` on the far host."""
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    process = subprocess.Popen(
        [*hosts["far"], *FULLPIPE, "agent", "serve", FAR, "--token-file", tmp_path / "token"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == f"listening on {FAR}:7717".encode()
    yield process
    process.terminate()
    process.wait()


def run_near(
    hosts: dict[str, list[str]], folder: Path, scenario: str, token: str = TOKEN
) -> subprocess.CompletedProcess[str]:
    """`fullpipe run --peer` on the near host."""
    (folder / "scenario.toml").write_text(scenario)
    command = ["run", folder / "scenario.toml", "--engine", "live", "--peer", FAR]
    return subprocess.run(
        [*hosts["near"], *FULLPIPE, *command, "--no-report", "--out", folder / "out"],
        env={**os.environ, "FULLPIPE_TOKEN": token},
        capture_output=True,
        text=True,
        check=False,
    )


def counters(inside: list[str]) -> dict[str, int]:
    """What the kernel counted at the qdisc of this host's end of the cable."""
    command = [*inside, "tc", "-s", "-j", "qdisc", "show", "dev", "fp0"]
    (qdisc,) = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return {name: qdisc[name] for name in ("bytes", "overlimits")}


SCENARIO = f"""
duration = "3s"
[path]
rate = "{RATE_MBPS}mbit"
rtt = "1ms"
buffer = "200KB"
"""


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("cc", ["kernel:cubic", "bbr3"])
def test_two_hosts_deliver_what_the_network_between_them_passed_in_both_directions(
    hosts: dict[str, list[str]],
    server: subprocess.Popen[bytes],
    tmp_path: Path,
    direction: str,
    cc: str,
) -> None:
    scenario = (
        f'{SCENARIO}[[flow]]\ncc = "{cc}"\ndirection = "{direction}"\n[[probe]]\nkind="ping"\n'
    )
    sender = hosts["near" if direction == "up" else "far"]
    before = counters(sender)
    done = run_near(hosts, tmp_path, scenario)
    assert done.returncode == 0, done.stderr
    after = counters(sender)
    passed_bytes = after["bytes"] - before["bytes"]
    assert after["overlimits"] > before["overlimits"], "the rate of the path must be the limit"
    recording = Recording.open(tmp_path / "out")
    delivered = recording.table("flows").to_pydict()["bytes_delivered"][0]
    assert 0.9 * passed_bytes - QUEUE_BYTES < wire_bytes(delivered) <= passed_bytes
    assert delivered * 8 / 3 / 1e6 < 1.05 * RATE_MBPS
    for table in ("flow_samples", "cc_samples"):
        times_us = recording.table(table).column("t_us").to_pylist()
        assert times_us and times_us == sorted(times_us)
    assert len(recording.table("ping_samples").column("rtt_us").drop_null()) > 0
    assert server.poll() is None


def test_another_token_is_refused_and_the_server_lives_on(
    hosts: dict[str, list[str]], server: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    done = run_near(
        hosts, tmp_path, f'{SCENARIO}[[flow]]\ncc="kernel:reno"\n', "not-that-one-at-all"
    )
    assert done.returncode == 1
    assert "refused the token" in done.stderr
    assert "Traceback" not in done.stderr
    assert server.poll() is None


def test_what_a_real_network_decides_is_refused_by_key(
    hosts: dict[str, list[str]], server: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    scenario = SCENARIO.replace('rtt = "1ms"', 'rtt = "1ms"\nloss = "1%"')
    done = run_near(hosts, tmp_path, f'{scenario}[[flow]]\ncc="kernel:reno"\n')
    assert done.returncode != 0
    assert "path.loss: a real network has its own" in done.stderr
    assert server.poll() is None


def test_garbage_on_the_port_does_not_stop_the_next_run(
    hosts: dict[str, list[str]], server: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    code = (
        "import socket\n"
        f"for junk in (b'', b'C', b'\\xff' * 200, b'GET / HTTP/1.0\\r\\n\\r\\n'):\n"
        f"    s = socket.create_connection(('{FAR}', 7717)); s.sendall(junk); s.close()\n"
    )
    subprocess.run([*hosts["near"], sys.executable, "-c", code], check=True)
    done = run_near(hosts, tmp_path, f'{SCENARIO}[[flow]]\ncc="kernel:reno"\n')
    assert done.returncode == 0, done.stderr


def test_a_server_listens_where_it_was_told_and_nowhere_else(
    hosts: dict[str, list[str]], server: subprocess.Popen[bytes]
) -> None:
    assert server.poll() is None
    sockets = subprocess.run(
        [*hosts["far"], "cat", "/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp"],
        capture_output=True,
        text=True,
        check=True,
    )
    listening = [line.split()[1] for line in sockets.stdout.splitlines() if " 0A " in line]
    address = socket.inet_aton(FAR)[::-1].hex().upper()
    assert listening == [f"{address}:{7717:04X}"]


@pytest.mark.parametrize("where", ["localhost", "1.2.3.4.5", "127.0.0.1:0", "127.0.0.1:x"])
def test_an_address_that_is_none_is_refused(where: str) -> None:
    done = subprocess.run(
        [*FULLPIPE, "agent", "serve", where], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert where in done.stderr


def test_a_peer_without_a_token_is_refused() -> None:
    plan = plan_of({"cc": "kernel:cubic"})
    with pytest.raises(UserError, match="needs the token"):
        LiveEngine().run(plan, lambda _done: True, {"peer": "127.0.0.1"})
