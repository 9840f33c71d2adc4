"""What a command and a worker (worker.py) say to each other: a job, and the frames that answer it.

What comes is checked, since the code of files may have forged it. Whatever that code does, a job
ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fullpipe.base.errors import AlgorithmError, RunError
from fullpipe.congestion.userfiles import diagnosis, limits
from fullpipe.congestion.userfiles.frames import (
    MAX_BLOB_BYTES,
    ForgedError,
    Frame,
    Frames,
    unpacked,
)
from fullpipe.congestion.userfiles.process import Outgoing, Process, Rights
from fullpipe.congestion.userfiles.source import Source
from fullpipe.congestion.userfiles.stalls import StallClock, computed_s, queued_s, threads_of
from fullpipe.congestion.userfiles.worker import message

#: Time that a worker has to send its rows after the signal to stop.
_STOP_S = 1.0
#: Share of a run's simulated time that has to pass within the stall limit: steps of one nanosecond
#: would keep a command for ever.
_LEAST_STEP = 1 / 1000
#: Most bytes of rows that come while no simulated time passes.
_MAX_IDLE_ROWS = 1 << 30
#: A look at a worker that comes later than this after the last one counts as this.
_LONGEST_LOOK_S = 0.2

#: What a forged answer raises where it is used: in the decoder, or in whoever takes rows (Arrow's
#: errors are among these).
_FORGED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
    NotImplementedError,
)


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


class Worker:
    """A process that does one job at a time; `is_ready` after one that it answered."""

    def __init__(self, algorithms: Sequence[Algorithm], rights: Rights) -> None:
        self.is_ready = False
        self._sources = [algorithm.source for algorithm in algorithms]
        self._objects = {algorithm.source.id: algorithm.shared_object for algorithm in algorithms}
        self._memory_bytes = rights.memory_bytes
        self._bases: dict[str, int] = {}
        self._is_loaded = False
        paths = {
            identity: None if path is None else str(path)
            for identity, path in self._objects.items()
        }
        self._process = Process(paths, rights)

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._process.is_alive

    def do(
        self,
        job: str,
        arguments: Mapping[str, Any],
        blobs: Sequence[bytes],
        listener: Listener,
        bounds: Bounds,
    ) -> Answer:
        """Does one job. Whatever the code does, this ends: see `Job`."""
        self.is_ready = False
        self._process.begin_job()
        outgoing = Outgoing(message({"job": job, "arguments": arguments}, blobs))
        state = Job(self._process.pid, bounds)
        while True:
            data = self._process.exchange(outgoing)
            if data is None:
                raise self._ended()
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
        self._process.show_words(last=True)
        self.is_ready = True
        if frame.kind == "done":
            return Answer(frame.value, frame.blobs)
        if frame.is_simulators:
            raise RunError(f"{self._names()}: its run failed: {frame.value}")
        raise AlgorithmError(frame.value)

    def _take(self, frame: Frame, state: Job, listener: Listener) -> None:
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

    def _check(self, state: Job) -> None:
        """Raises AlgorithmError where the job has to be ended."""
        if state.is_late_to_stop:
            raise AlgorithmError(f"{self._names()}: it did not stop when it was asked to")
        stall_s = limits.stall_s()
        if state.clock.stalled_s > stall_s:
            raise self._stalled(stall_s, state)
        # A kernel that counts no time of processes says that it computed nothing.
        if state.clock.idle_s > stall_s + state.clock.computed_s > stall_s:
            raise AlgorithmError(
                f"{self._names()}: stopped: it waited for {state.clock.idle_s:.0f} s and computed "
                f"for {state.clock.computed_s:.0f} s ({limits.STALL_S} sets the limit)"
            )
        threads = threads_of(self._process.pid)
        if threads > limits.MOST_THREADS:
            raise AlgorithmError(
                f"{self._names()}: it has {threads} threads; at most {limits.MOST_THREADS} are "
                "allowed"
            )

    def _stalled(self, stall_s: float, state: Job) -> AlgorithmError:
        where = self._location(self._process.stopped())
        done_ns = state.done_ns
        at = f" at {done_ns / 1e9:.3f} s of it" if done_ns >= 0 else ""
        passed = "no simulated time" if done_ns <= 0 else "hardly any simulated time"
        return AlgorithmError(
            f"{where}: stopped: {passed} passed in {stall_s:g} s{at}: a loop without end, or code "
            f"that waits ({limits.STALL_S} sets the limit)"
        )

    def _ended(self) -> AlgorithmError:
        """Why there are no more answers."""
        status, report, words = self._process.ended()
        cause = diagnosis.cause(status, report, words, self._memory_bytes)
        return AlgorithmError(f"{self._location(report)}: {cause}")

    def _location(self, report: str) -> str:
        return diagnosis.location(report, self._sources, self._objects, self._bases)

    def _names(self) -> str:
        return diagnosis.names(self._sources)

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.abandon()

    def abandon(self) -> None:
        """Lets go of the process, as a fork does of its parent's."""
        self._process.abandon()


class Job:
    """How far a job is, and what it may still take."""

    def __init__(self, pid: int, bounds: Bounds) -> None:
        self.clock = StallClock(
            _LONGEST_LOOK_S, lambda: queued_s(pid), computed=lambda: computed_s(pid)
        )
        self.frames = Frames(bounds.blob_bytes, bounds.end_ns)
        self.done_ns = -1
        self.is_stopping = False
        self._end_ns = bounds.end_ns or 0
        self._restarts_at_ns = 0
        self._rows_bytes = self._all_rows_bytes = 0
        self._most_rows_bytes = limits.output_bytes()
        self._asked_at_s = 0.0

    def advance(self, done_ns: int) -> None:
        """The worker says how much simulated time has passed."""
        self.done_ns = max(self.done_ns, done_ns)
        if self.done_ns >= self._restarts_at_ns:
            self._restarts_at_ns = self.done_ns + max(int(self._end_ns * _LEAST_STEP), 1)
            self._rows_bytes = 0
            self.clock.restart()

    def count_rows(self, count: int) -> None:
        """Raises ForgedError where rows come without simulated time, or too many in all."""
        self._rows_bytes += count
        self._all_rows_bytes += count
        if self._all_rows_bytes > self._most_rows_bytes:
            raise ForgedError(limits.too_large(self._most_rows_bytes))
        if self._rows_bytes > _MAX_IDLE_ROWS:
            raise ForgedError(f"more than {_MAX_IDLE_ROWS} bytes of rows while no time passes")

    def stop(self) -> None:
        """The signal to stop: the worker sends what it has and ends."""
        self.is_stopping, self._asked_at_s = True, self.clock.own_s

    @property
    def is_late_to_stop(self) -> bool:
        """Whether it has had its time to stop."""
        return self.is_stopping and self.clock.own_s - self._asked_at_s > _STOP_S


@cache
def _say_missing(missing: tuple[str, ...]) -> None:
    """Says once what the kernel does not contain; processes of a pool leave it to their parent."""
    words = {
        "files": "files that it may read or write (Landlock, Linux 5.13)",
        "calls": "system calls: programs, processes, sockets (seccomp)",
    }
    import multiprocessing

    if missing and multiprocessing.parent_process() is None:
        lacking = "; ".join(words[name] for name in missing if name in words)
        print(
            f"fullpipe: code from files is not contained by this kernel in: {lacking}",
            file=sys.stderr,
        )
