"""The process of a worker (worker.py): starts it, carries bytes to and from it, and ends it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fullpipe.base.cache import user_cache
from fullpipe.base.errors import RunError
from fullpipe.base.machine import needs_linux
from fullpipe.base.printable import printable
from fullpipe.congestion.userfiles import toolchain
from fullpipe.congestion.userfiles.stem import Forked, stem

#: Time for a worker to say where it is, after which it is killed.
_LAST_WORDS_S = 1.0
#: Time for a worker that has closed its pipe to end by itself.
_END_S = 0.5
#: How long one wait for a worker's bytes lasts, at most: until then nobody counts its threads.
TICK_S = 0.02
#: Most bytes of what code may print in one job, and of a fault's report.
_MAX_WORDS, _MAX_REPORT = 1 << 20, 1 << 16
_PIPE_BYTES = 1 << 20

#: The rest of the environment may hold secrets, and decides nothing.
_ENVIRONMENT = (
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "TZ",
)
#: What Python, its libraries and the C library read.
_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/dev/null",
    "/dev/urandom",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
)


@dataclass(frozen=True)
class Rights:
    """What a worker may read (files and folders), write (descriptors) and take."""

    read: Sequence[str]
    files: Mapping[str, int]
    memory_bytes: int
    #: Of each file that it writes.
    file_bytes: int = 0


class Process:
    """A process that has loaded algorithms (identity -> shared object; None: a class). With a class
    it is the fork of a stem (stem.py)."""

    def __init__(self, algorithms: Mapping[str, str | None], rights: Rights) -> None:
        needs_linux(toolchain.CONFINED)
        self._process: subprocess.Popen[bytes] | Forked
        self._is_printing = True
        self._is_open = True
        self._words_left = _MAX_WORDS
        self._words = ""
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self._reports, reports = os.pipe()
        self._printed, printed = os.pipe()
        _widen(self._answers)
        for descriptor in (reports, self._commands):
            os.set_blocking(descriptor, False)
        setup = {
            "path": _import_path(),
            "read": [*_readable(), *rights.read],
            "parent": os.getpid(),
            "memory_bytes": rights.memory_bytes,
            "file_bytes": rights.file_bytes,
            "commands": commands,
            "answers": answers,
            "reports": reports,
            "files": dict(rights.files),
            "algorithms": dict(algorithms),
        }
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment["XDG_CACHE_HOME"] = str(user_cache().parent)
        descriptors = (commands, answers, reports, *rights.files.values())
        try:
            forked = None
            if None in algorithms.values():
                grown = stem(_import_path(), environment)
                forked = grown and grown.fork(
                    {**setup, "environment": environment}, descriptors, printed
                )
            self._process = forked or _started(setup, descriptors, printed, environment)
        except OSError as error:
            self._close()
            raise RunError(f"{sys.executable}: cannot be started: {error.strerror}") from None
        finally:
            for descriptor in (commands, answers, reports, printed):
                os.close(descriptor)

    @property
    def pid(self) -> int:
        """Its id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def exchange(self, outgoing: Outgoing) -> bytes | None:
        """Waits for a tick at most; reads what is there, and writes what can be written. Returns
        what came of answers; None where no more will come."""
        waiting = select.poll()
        waiting.register(self._answers, select.POLLIN)
        if self._is_printing:
            waiting.register(self._printed, select.POLLIN)
        if outgoing.pieces:
            waiting.register(self._commands, select.POLLOUT)
        data = b""
        for descriptor, events in waiting.poll(1000 * TICK_S):
            if descriptor == self._commands:
                outgoing.write(self._commands)
            elif descriptor == self._printed:
                self._is_printing = bool(events & select.POLLIN)
                if self._is_printing:
                    self._hear(os.read(self._printed, _PIPE_BYTES))
            else:
                data = os.read(self._answers, _PIPE_BYTES)
                if not data:
                    return None
        return data

    def begin_job(self) -> None:
        """Resets the limit of what it may print."""
        self._words_left = _MAX_WORDS

    def _hear(self, data: bytes) -> None:
        """Keeps what the code prints, and shows its whole lines."""
        if self._words_left <= 0:
            return
        self._words_left -= len(data)
        self._words += data.decode("utf-8", "replace")
        self.show_words()

    def show_words(self, last: bool = False) -> None:
        """Shows the lines that it printed; with `last` also one that has no end yet."""
        *lines, unfinished = self._words.split("\n")
        if last and unfinished:
            lines, unfinished = [*lines, unfinished], ""
        self._words = unfinished
        for line in lines:
            print(printable(line), file=sys.stderr)

    def ended(self) -> tuple[int | None, str, str]:
        """Ends what gives no more answers. Returns its exit status, None where it still ran: that
        the pipe is closed does not say that the process has ended; the fault handlers' report; and
        what it printed last."""
        try:
            status: int | None = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            status = None
            self.kill()
        report = self._report(0.0)
        words = self._words + self._rest_of_words()
        self._words = ""
        return status, report, words

    def stopped(self) -> str:
        """Asks where it is, and kills it. Returns the fault handlers' report."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)
        report = self._report(_LAST_WORDS_S)
        self.kill()
        return report

    def _report(self, patience_s: float) -> str:
        """What the fault handlers wrote: so many bytes, and so long, at most."""
        waiting = select.poll()
        waiting.register(self._reports, select.POLLIN)
        report = b""
        deadline_s = time.monotonic() + patience_s
        while len(report) < _MAX_REPORT and waiting.poll(1000 * patience_s):
            data = os.read(self._reports, _MAX_REPORT)
            if not data:
                break
            report += data
            patience_s = min(max(deadline_s - time.monotonic(), 0.0), 0.1)
        return report[:_MAX_REPORT].decode("utf-8", "replace")

    def _rest_of_words(self) -> str:
        os.set_blocking(self._printed, False)
        with suppress(BlockingIOError):
            return os.read(self._printed, _PIPE_BYTES).decode("utf-8", "replace")
        return ""

    def kill(self) -> None:
        """Kills it, and waits for its end."""
        self._process.kill()
        self._process.wait()

    def abandon(self) -> None:
        """Lets go of it, as a fork does of its parent's."""
        self._process.returncode = self._process.returncode or 0
        self._close()

    def _close(self) -> None:
        # Once closed, their numbers are those of other files.
        if self._is_open:
            self._is_open = False
            for descriptor in (self._commands, self._answers, self._reports, self._printed):
                os.close(descriptor)


def _started(
    setup: Mapping[str, Any],
    descriptors: Sequence[int],
    printed: int,
    environment: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("worker.py")
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-u", str(script), json.dumps(setup)],
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=printed,
        pass_fds=descriptors,
        process_group=0,
        env=dict(environment),
    )


@dataclass
class Outgoing:
    """What is still to be sent to a worker."""

    pieces: list[bytes]

    def write(self, descriptor: int) -> None:
        """Writes what the pipe takes. That nobody reads shows where the answers end."""
        while self.pieces:
            try:
                count = os.write(descriptor, self.pieces[0])
            except BlockingIOError:
                return
            except BrokenPipeError:
                self.pieces.clear()
                return
            if count < len(self.pieces[0]):
                self.pieces[0] = self.pieces[0][count:]
            else:
                del self.pieces[0]


@cache
def _import_path() -> list[str]:
    """Where the worker finds modules: what is installed, not the folders of programs."""
    package_parent = str(Path(__file__).resolve().parents[3])
    bases = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    installed = [
        entry
        for entry in sys.path
        if any(Path(entry).is_relative_to(base) for base in bases)
        or Path(entry).name in ("site-packages", "dist-packages")
    ]
    return list(dict.fromkeys([*installed, package_parent]))


@cache
def _readable() -> list[str]:
    """Files of Python and of this package."""
    package = Path(__file__).resolve().parents[2]
    installed = [entry for entry in _import_path() if entry != str(package.parent)]
    libraries = [f"{prefix}/lib" for prefix in (sys.prefix, sys.base_prefix)]
    named = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return [*_SYSTEM, *installed, *libraries, str(package), *filter(None, named)]


def _widen(pipe: int) -> None:
    import fcntl  # Linux has it; this module is imported elsewhere too

    with suppress(OSError):  # fs.pipe-user-pages-soft
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
