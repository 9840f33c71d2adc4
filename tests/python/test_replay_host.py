"""`fullpipe kernel trace` on this host's kernel, and `fullpipe replay` of what it wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fullpipe import kernel
from kernel_host import TRAFFIC, available, fullpipe, why_not

REASON = why_not()
pytestmark = [
    pytest.mark.live,
    pytest.mark.root,
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]


def traced(cc: str, out: Path, count: int, *more: str) -> str:
    """Traces a program that sends `count` bytes over a lossy path; returns the kernel name."""
    name = kernel.own_name()
    sender = f"echo go | unshare -n {sys.executable} {TRAFFIC} {name} {count} {' '.join(more)}"
    command = ("--", "sh", "-c", sender)
    done = fullpipe("kernel", "trace", cc, "--name", name, "--out", str(out), *command)
    assert done.returncode == 0, done.stderr
    assert f'"arrived": {count}' in done.stdout
    assert name not in available()
    return name


@pytest.fixture(scope="module")
def path_object(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path that drops and marks; the kernel of this host may have no netem."""
    out = tmp_path_factory.mktemp("path") / "path.bpf.o"
    source = Path(__file__).parent / "kernel_path.bpf.c"
    headers = f"/usr/include/{os.uname().machine}-linux-gnu"
    command = ["clang", "-O2", "-g", "-target", "bpf", f"-I{headers}", "-c", str(source),
               "-o", str(out)]  # fmt: skip
    subprocess.run(command, check=True)
    return out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cc", "megabytes"),
    [("reno", 550), ("cubic", 450), ("bbr1", 250), ("bbr2", 250), ("bbr3", 250),
     ("bbr3-linux", 250), ("bbrnplus", 250)],
)  # fmt: skip
def test_a_hundred_thousand_calls_replay_bit_for_bit(
    cc: str, megabytes: int, path_object: Path, tmp_path: Path
) -> None:
    out = tmp_path / "trace"
    traced(cc, out, megabytes * 10**6, "--path", str(path_object))
    (one,) = kernel.replay(out).algorithms
    assert one.difference is None
    assert (one.lost, one.skipped, one.connections) == (0, 0, 1)
    assert one.calls >= 100_000


@pytest.mark.parametrize("cc", ["cubic", "dctcp", "bbr3"])
def test_this_kernels_calls_replay_bit_for_bit(cc: str, tmp_path: Path) -> None:
    out = tmp_path / "trace"
    name = traced(cc, out, 4_000_000)
    done = fullpipe("replay", str(out), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (one,) = found["algorithms"]
    assert (one["kernel_name"], one["algorithm"]) == (name, cc)
    assert one["release"] == os.uname().release
    assert one["difference"] is None
    assert (one["lost"], one["skipped"], one["connections"]) == (0, 0, 1)
    assert one["calls"] > one["acks"] > 200
    assert "identical" in fullpipe("replay", str(out)).stdout


def test_a_difference_is_shown_with_its_call_field_and_values(tmp_path: Path) -> None:
    out = tmp_path / "trace"
    traced("reno", out, 500_000)
    data = bytearray(out.read_bytes())
    first = _first_call(data)
    record_bytes = 8 + int.from_bytes(data[first + 4 : first + 8], "little")
    # A call ends with cwnd_cnt, four bytes and timer_us.
    data[first + 41 * record_bytes - 16] ^= 1
    out.write_bytes(data)
    done = fullpipe("replay", str(out))
    assert done.returncode == 1
    assert "cwnd_cnt is" in done.stderr
    assert "connection 1, call 40 (" in done.stderr
    assert "differs from the kernel" in done.stderr


def _first_call(data: bytearray) -> int:
    """Where the first record of a call begins: behind the magic and the algorithm's record."""
    return 8 + 8 + int.from_bytes(data[12:16], "little")


def test_a_failing_program_leaves_its_trace_and_its_status(tmp_path: Path) -> None:
    out = tmp_path / "trace"
    done = fullpipe("kernel", "trace", "reno", "--name", kernel.own_name(),
                    "--out", str(out), "--", "false")  # fmt: skip
    assert done.returncode == 1
    assert "false: exit status 1" in done.stderr
    assert out.exists()
    again = fullpipe("kernel", "trace", "reno", "--out", str(out), "--", "true")
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"not a trace at all")
    for path, words in ((other, "not a trace"), (tmp_path / "none", "No such file")):
        done = fullpipe("replay", str(path))
        assert done.returncode == 2
        assert words in done.stderr
