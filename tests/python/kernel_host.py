"""What the tests of this host's kernel share: the command line, a program that uses what is loaded,
and whether this host can do any of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest

from fullpipe import kernel
from fullpipe.base.errors import UserError
from fullpipe.engines import assets

FULLPIPE = (sys.executable, "-c", "from fullpipe.cli import main; main()")
TRAFFIC = str(Path(__file__).parent / "kernel_traffic.py")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
PINS = Path("/sys/fs/bpf/fullpipe")


def why_not() -> str | None:
    """Why this host's kernel cannot be loaded into, if it cannot."""
    if os.geteuid() != 0:
        return "loading into this host's kernel needs root"
    if not Path("/sys/kernel/btf/vmlinux").exists():
        return "this host's kernel has no BTF"
    try:
        assets.agent()
        assets.bpf_object("bbr3")
        kernel.load_and_unload("reno")
    except UserError as error:
        return str(error)
    return None


def fullpipe(*arguments: str, inside: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """The command line, run to its end, `inside` another program where given."""
    command = [*inside, *FULLPIPE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def available() -> list[str]:
    """The congestion controls of the running kernel."""
    return AVAILABLE.read_text().split()


class Program:
    """A running program with one connection."""

    def __init__(self, stdin: IO[str], stdout: IO[str]) -> None:
        self._stdin, self._stdout = stdin, stdout

    def transfer(self) -> dict[str, object]:
        """Sends; returns how many bytes arrived and the connection's congestion control."""
        self._stdin.write("go\n")
        self._stdin.flush()
        answer: dict[str, object] = json.loads(self._stdout.readline())
        return answer


@contextmanager
def program(name: str, count: int, *more: str) -> Iterator[Program]:
    """A program with a connection under `name`, which ends with the context."""
    command = ["unshare", "-n", sys.executable, TRAFFIC, name, str(count), *more]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        try:
            first = process.stdout.readline()
            assert first == "connected\n", process.stderr.read()
            yield Program(process.stdin, process.stdout)
            process.stdin.close()
            assert process.wait() == 0, process.stderr.read()
        finally:
            process.kill()


@pytest.fixture
def loaded() -> Iterator[Callable[..., str]]:
    """Loads a congestion control under a name of this test's own; unloads what is left of it."""
    names: list[str] = []

    def load(cc: str, **overrides: float) -> str:
        name = kernel.own_name()
        kernel.load(kernel.request(cc, overrides, name))
        names.append(name)
        return name

    yield load
    for name in names:
        with suppress(UserError):
            kernel.unload(name)
