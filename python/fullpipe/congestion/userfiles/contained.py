"""Runs the code of algorithms from files in worker processes without rights (worker.py), and turns
whatever ends one into an error that names the file and, where it is known, the line.

A worker serves one set of algorithms, and is used again for it. What it sends is checked: their
code may have forged it. Must never know an engine.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fullpipe.base.cache import user_cache
from fullpipe.base.errors import AlgorithmError, RunError, UserError
from fullpipe.base.machine import needs_linux
from fullpipe.base.printable import printable
from fullpipe.congestion.userfiles import toolchain
from fullpipe.congestion.userfiles.frames import (
    MAX_BLOB_BYTES,
    ForgedError,
    Frame,
    Frames,
    unpacked,
)
from fullpipe.congestion.userfiles.source import Source, folder_of
from fullpipe.congestion.userfiles.stalls import StallClock, computed_s, queued_s, threads_of
from fullpipe.congestion.userfiles.worker import message

#: Seconds that a worker computes or sleeps without any simulated time, after which it is stopped.
STALL_S = "FULLPIPE_ALGORITHM_STALL_S"
DEFAULT_STALL_S = 10.0
#: MiB of address space that a worker may take.
MEMORY_MIB = "FULLPIPE_ALGORITHM_MEMORY_MIB"
DEFAULT_MEMORY_MIB = 4096

#: Most idle workers that wait for another job.
_MOST_IDLE = 4
#: Time for a worker to say where it is, after which it is killed.
_LAST_WORDS_S = 1.0
#: Time for a worker that has closed its pipe to end by itself.
_END_S = 0.5
#: Time for a worker to give what it has when it is asked to stop.
_STOP_S = 1.0
_TICK_S = 0.1
#: Share of a run's simulated time that has to pass within the stall limit: steps of one nanosecond
#: would keep a command for ever.
_LEAST_STEP = 1 / 1000
#: Most threads of a worker: the host's process ids are for all.
_MOST_THREADS = 256
#: Most bytes of what code may print in one job, of a fault's report, and of rows that come while no
#: simulated time passes.
_MAX_WORDS, _MAX_REPORT, _MAX_IDLE_ROWS = 1 << 20, 1 << 16, 1 << 30
_PIPE_BYTES = 1 << 20

#: The rest of the environment may hold secrets, and decides nothing.
_ENVIRONMENT = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "OMP_NUM_THREADS",
                "OPENBLAS_NUM_THREADS", "TZ")  # fmt: skip
#: What Python, its libraries and the C library read.
_SYSTEM = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store", "/gnu/store",
    "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/dev/null", "/dev/urandom",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu",
)  # fmt: skip

_FAULT = re.compile(r"^fault (\d+) ([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)$", re.M)
_FRAME = re.compile(r'^  File "([^"\n]+)", line (\d+) in (\S+)$', re.M)
_NO_MEMORY = re.compile(r"memory allocation of \d+ bytes failed|MemoryError")
#: Distance of an address from the stack's end within which it is the stack that was used up.
_STACK_MARGIN = 1 << 20


#: What a forged answer raises where it is used: in the decoder, or in whoever takes rows (Arrow's
#: errors are among these).
_FORGED = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError,
           RecursionError, NotImplementedError)  # fmt: skip


class Algorithm(NamedTuple):
    """An algorithm that a worker loads."""

    source: Source
    #: Of a C file.
    shared_object: Path | None


class Answer(NamedTuple):
    """What a job gave."""

    value: Any
    blobs: list[bytes]


@dataclass
class Listener:
    """Takes what comes while a job runs."""

    #: Called with the simulated ns done, and at least every 0.1 s; False asks the job to stop.
    progress: Callable[[int], bool] = lambda _done: True
    #: Takes rows of tables: table -> columns.
    rows: Callable[[Mapping[str, Any]], None] = lambda _rows: None


class Bounds(NamedTuple):
    """What a job's answers cannot exceed."""

    #: The run's duration; None where the job has no simulated time.
    end_ns: int | None = None
    #: Of one message's columns.
    blob_bytes: int = MAX_BLOB_BYTES


def ask(
    algorithms: Sequence[Algorithm],
    job: str,
    arguments: Mapping[str, Any],
    blobs: Sequence[bytes] = (),
    listener: Listener | None = None,
    read: Sequence[str] = (),
    files: Mapping[str, int] | None = None,
    bounds: Bounds | None = None,
) -> Answer:
    """Does a job of `worker.py` in a worker that has loaded these algorithms. `read`: files that it
    may read. `files`: descriptors that it may write to.

    Raises AlgorithmError where their code failed or ended the worker, RunError where the
    simulator did."""
    key = _Key(
        tuple(sorted((one.source.id, str(one.shared_object or "")) for one in algorithms)),
        tuple(read), _memory_bytes(), str(user_cache()), threading.get_native_id(),
    )  # fmt: skip
    worker = None if files else _take(key)
    if worker is None:
        worker = _Worker(algorithms, key, files or {})
    try:
        return worker.do(job, arguments, blobs, listener or Listener(), bounds or Bounds())
    finally:
        if worker.is_ready and not files:
            _give_back(worker)
        else:
            worker.end()


class _Key(NamedTuple):
    algorithms: tuple[tuple[str, str], ...]
    read: tuple[str, ...]
    memory_bytes: int
    cache: str
    #: A worker ends with the thread that started it (PR_SET_PDEATHSIG of prctl(2)).
    thread: int


_idle: list[_Worker] = []
_lock = threading.Lock()


def _take(key: _Key) -> _Worker | None:
    with _lock:
        for place, worker in enumerate(_idle):
            if worker.key == key and worker.is_alive:
                del _idle[place]
                return worker
    return None


def _give_back(worker: _Worker) -> None:
    with _lock:
        _idle.append(worker)
        surplus = _idle.pop(0) if len(_idle) > _MOST_IDLE else None
    if surplus:
        surplus.end()


def _forget() -> None:
    """A fork has descriptors of its parent's workers, which would outlive the parent by them."""
    global _lock
    _lock = threading.Lock()
    for worker in _all:
        worker.abandon()
    _all.clear()
    _idle.clear()


_all: set[_Worker] = set()
os.register_at_fork(after_in_child=_forget)


@atexit.register
def _end_all() -> None:
    for worker in [*_all]:
        worker.end()


class _Worker:
    """A process that does one job at a time; `is_ready` after one that it answered."""

    def __init__(
        self, algorithms: Sequence[Algorithm], key: _Key, files: Mapping[str, int]
    ) -> None:
        needs_linux(toolchain.CONFINED)
        self.key = key
        self.is_ready = False
        self._sources = [one.source for one in algorithms]
        self._objects = {one.source.id: one.shared_object for one in algorithms}
        self._bases: dict[str, int] = {}
        self._is_loaded = False
        self._is_printing = True
        self._words_left = _MAX_WORDS
        self._words = ""
        theirs: list[int] = []
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self._reports, reports = os.pipe()
        self._printed, printed = os.pipe()
        theirs += commands, answers, reports, printed
        _widen(self._answers)
        for descriptor in (reports, self._commands):
            os.set_blocking(descriptor, False)
        setup = {
            "path": _import_path(), "read": [*_readable(), *map(str, self._folders()), *key.read],
            "parent": os.getpid(), "memory_bytes": key.memory_bytes,
            "commands": commands, "answers": answers, "reports": reports, "files": dict(files),
            "algorithms": {one.source.id: one.shared_object and str(one.shared_object)
                           for one in algorithms},
        }  # fmt: skip
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        script = Path(__file__).with_name("worker.py")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-u", str(script), json.dumps(setup)],
                stdin=subprocess.DEVNULL, stdout=printed, stderr=printed,
                pass_fds=(commands, answers, reports, *files.values()), process_group=0,
                env={**environment, "XDG_CACHE_HOME": str(user_cache().parent)},
            )  # fmt: skip
        except OSError as error:
            self._close()
            raise RunError(f"{sys.executable}: cannot be started: {error.strerror}") from None
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        _all.add(self)

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._process.poll() is None

    def _folders(self) -> list[Path]:
        return [folder_of(source.id) for source in self._sources]

    def do(
        self,
        job: str,
        arguments: Mapping[str, Any],
        blobs: Sequence[bytes],
        listener: Listener,
        bounds: Bounds,
    ) -> Answer:
        """Does one job. Whatever the code does, this ends: see `_Job`."""
        self.is_ready = False
        self._words_left = _MAX_WORDS
        outgoing = _Outgoing(message({"job": job, "arguments": arguments}, blobs))
        state = _Job(self._process.pid, bounds)
        while True:
            data = self._wait(outgoing)
            state.clock.look()
            try:
                for frame in state.frames.add(data):
                    if frame.kind in ("done", "error"):
                        return self._answer(frame)
                    self._take(frame, state, listener)
            except _FORGED as error:
                raise AlgorithmError(f"{self._names()}: its answers are forged: {error}") from None
            if not state.is_stopping and not listener.progress(max(state.done_ns, 0)):
                state.stop()
                outgoing.pieces += message({})
            self._check(state)

    def _answer(self, frame: Frame) -> Answer:
        self._show_words(last=True)
        self.is_ready = True
        if frame.kind == "done":
            return Answer(frame.value, frame.blobs)
        if frame.is_simulators:
            raise RunError(f"{self._names()}: its run failed: {frame.value}")
        raise AlgorithmError(frame.value)

    def _take(self, frame: Frame, state: _Job, listener: Listener) -> None:
        if frame.kind == "progress":
            state.advance(frame.value)
        elif frame.kind == "rows":
            state.count_rows(sum(map(len, frame.blobs)))
            listener.rows(unpacked(frame.value, frame.blobs))
        elif frame.kind == "bases":
            self._bases = frame.value
        elif not self._is_loaded:
            self._is_loaded = True
            state.clock.restart()
            _say_missing(tuple(frame.value))

    def _check(self, state: _Job) -> None:
        """Raises AlgorithmError where the job has to be ended."""
        if state.is_late_to_stop:
            raise AlgorithmError(f"{self._names()}: it did not stop when it was asked to")
        stall_s = _stall_s()
        if state.clock.stalled_s > stall_s:
            raise self._stalled(stall_s, state)
        # A kernel that counts no time of processes says that it computed nothing.
        if state.clock.idle_s > stall_s + state.clock.computed_s > stall_s:
            raise AlgorithmError(
                f"{self._names()}: stopped: it waited for {state.clock.idle_s:.0f} s and computed "
                f"for {state.clock.computed_s:.0f} s ({STALL_S} sets the limit)"
            )
        threads = threads_of(self._process.pid)
        if threads > _MOST_THREADS:
            raise AlgorithmError(
                f"{self._names()}: it has {threads} threads; at most {_MOST_THREADS} are allowed"
            )

    def _wait(self, outgoing: _Outgoing) -> bytes:
        """Waits for a tick at most; reads what is there, and writes what can be written. Returns
        what came of answers."""
        waiting = select.poll()
        waiting.register(self._answers, select.POLLIN)
        if self._is_printing:
            waiting.register(self._printed, select.POLLIN)
        if outgoing.pieces:
            waiting.register(self._commands, select.POLLOUT)
        data = b""
        for descriptor, events in waiting.poll(1000 * _TICK_S):
            if descriptor == self._commands:
                outgoing.write(self._commands)
            elif descriptor == self._printed:
                self._is_printing = bool(events & select.POLLIN)
                if self._is_printing:
                    self._hear(os.read(self._printed, _PIPE_BYTES))
            else:
                data = os.read(self._answers, _PIPE_BYTES)
                if not data:
                    raise self._ended()
        return data

    def _hear(self, data: bytes) -> None:
        """Keeps what the code prints, and shows its whole lines."""
        if self._words_left <= 0:
            return
        self._words_left -= len(data)
        self._words += data.decode("utf-8", "replace")
        self._show_words()

    def _show_words(self, last: bool = False) -> None:
        *lines, rest = self._words.split("\n")
        if last and rest:
            lines, rest = [*lines, rest], ""
        self._words = rest
        for line in lines:
            print(printable(line), file=sys.stderr)

    def _stalled(self, stall_s: float, state: _Job) -> AlgorithmError:
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)
        report = self._last_words(_LAST_WORDS_S)
        self._kill()
        done_ns = state.done_ns
        at = f" at {done_ns / 1e9:.3f} s of it" if done_ns >= 0 else ""
        passed = "no simulated time" if done_ns <= 0 else "hardly any simulated time"
        return AlgorithmError(
            f"{self._place(report)}: stopped: {passed} passed in {stall_s:g} s{at}: a "
            f"loop without end, or code that waits ({STALL_S} sets the limit)"
        )

    def _ended(self) -> AlgorithmError:
        """Why there are no more answers. That the pipe is closed does not say that the process has
        ended."""
        try:
            status: int | None = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            status = None
            self._kill()
        report = self._last_words(0.0)
        told = self._words + self._rest_of_words()
        if status is None:
            what = "it closed the pipe of its answers, and was stopped"
        elif status == -signal.SIGABRT and _NO_MEMORY.search(told):
            what = f"it took more than {self.key.memory_bytes >> 20} MiB of memory ({MEMORY_MIB})"
        else:
            what = _cause(status, report)
        self._words = ""
        return AlgorithmError(f"{self._place(report)}: {what}")

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _last_words(self, patience_s: float) -> str:
        """What the fault handlers wrote: so many bytes, and so long, at most."""
        waiting = select.poll()
        waiting.register(self._reports, select.POLLIN)
        told = b""
        deadline_s = time.monotonic() + patience_s
        while len(told) < _MAX_REPORT and waiting.poll(1000 * patience_s):
            data = os.read(self._reports, _MAX_REPORT)
            if not data:
                break
            told += data
            patience_s = min(max(deadline_s - time.monotonic(), 0.0), 0.1)
        return told[:_MAX_REPORT].decode("utf-8", "replace")

    def _rest_of_words(self) -> str:
        os.set_blocking(self._printed, False)
        with suppress(BlockingIOError):
            return os.read(self._printed, _PIPE_BYTES).decode("utf-8", "replace")
        return ""

    def _place(self, report: str) -> str:
        """`file:line` of what broke, as far as the handlers' report says; or the file."""
        for path, line, _ in _FRAME.findall(report):
            for source in self._sources:
                if source.is_class and Path(path).name in source.files:
                    return f"{source.folder / Path(path).name}:{line}"
        for _, code, _, _ in _FAULT.findall(report)[:1]:
            below = [(at, one) for one, at in self._bases.items() if at <= int(code, 16)]
            if below:
                at, identity = max(below)
                source = next(one for one in self._sources if one.id == identity)
                found = _line(source, self._objects[identity], int(code, 16) - at)
                if found:
                    return found
        return self._names()

    def _names(self) -> str:
        return " or ".join(str(source.path) for source in self._sources)

    def end(self) -> None:
        """Ends the process."""
        self._kill()
        self.abandon()
        _all.discard(self)

    def abandon(self) -> None:
        """Lets go of it, as a fork does of its parent's."""
        self._process.returncode = self._process.returncode or 0
        self._close()

    def _close(self) -> None:
        for descriptor in (self._commands, self._answers, self._reports, self._printed):
            with suppress(OSError):
                os.close(descriptor)


class _Job:
    """How far a job is, and what it may still take."""

    def __init__(self, pid: int, bounds: Bounds) -> None:
        self.clock = StallClock(
            2 * _TICK_S, lambda: queued_s(pid), computed=lambda: computed_s(pid)
        )
        self.frames = Frames(bounds.blob_bytes, bounds.end_ns)
        self.done_ns = -1
        self.is_stopping = False
        self._end_ns = bounds.end_ns or 0
        self._restarts_at_ns = 0
        self._rows_bytes = 0
        self._asked_at_s = 0.0

    def advance(self, done_ns: int) -> None:
        """The worker says how much simulated time has passed."""
        self.done_ns = max(self.done_ns, done_ns)
        if self.done_ns >= self._restarts_at_ns:
            self._restarts_at_ns = self.done_ns + max(int(self._end_ns * _LEAST_STEP), 1)
            self._rows_bytes = 0
            self.clock.restart()

    def count_rows(self, count: int) -> None:
        """Raises ForgedError where rows come without simulated time."""
        self._rows_bytes += count
        if self._rows_bytes > _MAX_IDLE_ROWS:
            raise ForgedError(f"more than {_MAX_IDLE_ROWS} bytes of rows while no time passes")

    def stop(self) -> None:
        """The worker is asked to stop."""
        self.is_stopping, self._asked_at_s = True, self.clock.own_s

    @property
    def is_late_to_stop(self) -> bool:
        """Whether it has had its time to stop."""
        return self.is_stopping and self.clock.own_s - self._asked_at_s > _STOP_S


@dataclass
class _Outgoing:
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


def _cause(status: int, report: str) -> str:
    if status >= 0:
        return f"it ended its process (exit status {status})"
    fault = _FAULT.search(report)
    if -status in (signal.SIGSEGV, signal.SIGBUS) and fault:
        stack, touched = int(fault[3], 16), int(fault[4], 16)
        if abs(stack - touched) < _STACK_MARGIN:
            return "it used up its stack: unbounded recursion"
    known = {
        signal.SIGSEGV: "it touched memory that is not its own",
        signal.SIGBUS: "it touched memory that is not its own",
        signal.SIGFPE: "division by zero",
        signal.SIGILL: "an index outside its array, or a division by zero",
        signal.SIGTRAP: "an index outside its array, or a division by zero",
        signal.SIGSYS: "it made a system call of another architecture",
        signal.SIGKILL: "it was killed; where memory was short, by the kernel",
    }
    number = signal.Signals(-status) if -status in set(signal.Signals) else None
    return known.get(number, f"it ended its process ({number.name if number else -status})")  # type: ignore[arg-type]


def _line(source: Source, shared_object: Path | None, offset: int) -> str | None:
    """`file:line` of code at an offset of a shared object, if binutils know it."""
    if shared_object is None or shutil.which("addr2line") is None:
        return None
    with toolchain.workplace() as place:
        command = ["addr2line", "-i", "-e", str(shared_object), hex(offset)]
        answer = toolchain.run(command, [shared_object.parent], place, source.path)
    # The innermost function first, then those that it is part of.
    for words in answer.stdout.splitlines() if answer.returncode == 0 else []:
        line = source.place(words.split(" (")[0])
        if Path(line.rpartition(":")[0]).name in source.files:
            return line
    return None


@cache
def _say_missing(missing: tuple[str, ...]) -> None:
    """Says once what the kernel does not contain; processes of a pool leave it to their parent."""
    words = {
        "files": "files that it may read or write (Landlock, Linux 5.13)",
        "calls": "system calls: programs, processes, sockets (seccomp)",
    }
    import multiprocessing

    if missing and multiprocessing.parent_process() is None:
        told = "; ".join(words[one] for one in missing if one in words)
        print(f"fullpipe: code from files is not contained by this kernel in: {told}",
              file=sys.stderr)  # fmt: skip


@cache
def _import_path() -> list[str]:
    """Where the worker finds modules: what is installed, not the folders of programs."""
    own = str(Path(__file__).resolve().parents[3])
    bases = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    installed = [
        entry for entry in sys.path
        if any(Path(entry).is_relative_to(base) for base in bases)
        or Path(entry).name in ("site-packages", "dist-packages")
    ]  # fmt: skip
    return list(dict.fromkeys([*installed, own]))


@cache
def _readable() -> list[str]:
    """Files of Python and of this package."""
    own = Path(__file__).resolve().parents[2]
    installed = [entry for entry in _import_path() if entry != str(own.parent)]
    libraries = [f"{prefix}/lib" for prefix in (sys.prefix, sys.base_prefix)]
    named = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return [*_SYSTEM, *installed, *libraries, str(own), *filter(None, named)]


def _widen(pipe: int) -> None:
    import fcntl

    with suppress(OSError):  # fs.pipe-user-pages-soft
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _stall_s() -> float:
    return _number(STALL_S, DEFAULT_STALL_S)


def _memory_bytes() -> int:
    return int(_number(MEMORY_MIB, DEFAULT_MEMORY_MIB) * 2**20)


def _number(name: str, default: float) -> float:
    text = os.environ.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise UserError(f"{name}: {text!r}: must be a number above 0")
    return value
