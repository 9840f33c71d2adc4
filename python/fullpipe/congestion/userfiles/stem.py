"""A process that has loaded what a class of Python needs, and forks a worker for each job.

The worker then gives up its rights and executes the class's file: every run begins from the same
clean interpreter, for a tenth of what starting one costs. No code of a file runs in the stem. Its
workers are children of this process (CLONE_PARENT of clone(2)), which waits for them.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fullpipe.congestion.userfiles.worker import PID_BYTES


class Stem:
    """A stem of the thread that starts it: it ends with that thread, as workers do."""

    def __init__(self, path: Sequence[str], environment: Mapping[str, str]) -> None:
        """Raises OSError where it cannot be started."""
        self._asked, theirs = socket.socketpair()
        setup = {"stem": theirs.fileno(), "path": list(path), "parent": os.getpid()}
        script = Path(__file__).with_name("worker.py")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-u", str(script), json.dumps(setup)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
                env=dict(environment),
            )

    @property
    def is_alive(self) -> bool:
        """Whether it can fork."""
        return self._process.poll() is None

    def fork(
        self, setup: Mapping[str, Any], descriptors: Sequence[int], printed: int
    ) -> Forked | None:
        """A worker with this set-up and these descriptors, by their order in `worker.received`;
        None where the stem has ended or the kernel does not let it fork."""
        content = os.memfd_create("setup")
        try:
            os.write(content, json.dumps(setup).encode())
            os.lseek(content, 0, os.SEEK_SET)
            socket.send_fds(self._asked, [b"f"], [content, printed, *descriptors])
            answer = self._asked.recv(PID_BYTES, socket.MSG_WAITALL)
        except OSError:
            return None
        finally:
            os.close(content)
        pid = int.from_bytes(answer, "little", signed=True)
        return Forked(pid) if pid > 0 else None

    def end(self) -> None:
        """Ends it; its workers go on."""
        self._asked.close()
        self._process.kill()
        self._process.wait()

    def abandon(self) -> None:
        """Lets go of it, as a fork does of its parent's."""
        self._process.returncode = self._process.returncode or 0
        self._asked.close()


class Forked:
    """A child that this process did not start itself, with the part of `subprocess.Popen` that
    workers need."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, if it has ended: negative after a signal."""
        return self._reap(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end. Raises subprocess.TimeoutExpired."""
        if timeout is not None and self.poll() is None:
            watched = os.pidfd_open(self.pid)
            try:
                waiting = select.poll()
                waiting.register(watched, select.POLLIN)
                if not waiting.poll(1000 * timeout):
                    raise subprocess.TimeoutExpired("worker", timeout)
            finally:
                os.close(watched)
        status = self._reap(0)
        assert status is not None
        return status

    def send_signal(self, number: int) -> None:
        """Sends it a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills it."""
        self.send_signal(signal.SIGKILL)

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:  # another part of the program has waited for all children
                pid, status = self.pid, 0
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


_stems: dict[int, Stem] = {}


def stem(path: Sequence[str], environment: Mapping[str, str]) -> Stem | None:
    """This thread's stem; None where none can be started."""
    for thread, stem_of_thread in [*_stems.items()]:
        if not stem_of_thread.is_alive:  # its thread has ended
            del _stems[thread]
            stem_of_thread.end()
    thread = threading.get_native_id()
    if thread not in _stems:
        try:
            _stems[thread] = Stem(path, environment)
        except OSError:
            return None
    return _stems[thread]


def end_all() -> None:
    """Ends all stems."""
    while _stems:
        _stems.popitem()[1].end()


def _forget() -> None:
    while _stems:
        _stems.popitem()[1].abandon()


os.register_at_fork(after_in_child=_forget)
