"""One run of a virtual machine: QEMU with instruction counting, so that time in the guest is the
number of instructions it ran and nothing else. It knows nothing of plans; it carries a job in
and bytes out, through memory that both sides see.
"""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fullpipe import _native
from fullpipe.base.cache import user_cache
from fullpipe.base.errors import RunError
from fullpipe.base.scratch import scratch
from fullpipe.engines import assets
from fullpipe.engines.child import die_with_parent, inherit_autogroup_nice, stop
from fullpipe.engines.vm import shared, snapshot
from fullpipe.engines.vm.core import confine, reserved
from fullpipe.engines.vm.hardware import CONSOLE, SHARED, Hardware, version
from fullpipe.engines.vm.qmp import Monitor
from fullpipe.engines.vm.shared import Job
from fullpipe.engines.vm.snapshot import Launch, Snapshot

#: CPU seconds without a frame after which a guest counts as hung. A second of the guest is at most
#: 10^9 instructions, some 10 s of a slow core, and the guest writes a frame every tenth of one.
_SILENCE_CPU_S = 120.0
#: Wall-clock seconds without a frame after which a guest that is not runnable counts as hung. One
#: that waits for a core on a busy host does not.
_SILENCE_S = 180.0
_POLL_S = 0.1
_LAST_WORDS = 12

#: A guest's memory that begins empty.
_EMPTY = "memory-backend-ram"


@dataclass(frozen=True)
class Ended:
    """The result of a machine: the agent's stream, and the last lines of its console."""

    #: QEMU's version; None if it was not started.
    version: str | None
    stream: bytes
    console: list[str]
    #: Stopped on request.
    interrupted: bool
    #: Hung and was stopped.
    silent: bool


def run(
    hardware: Hardware,
    job: Job,
    progress: Callable[[int], bool],
    from_snapshot: bool = True,
) -> Ended:
    """Boots a machine, or resumes a snapshot of that hardware, which gives the same result faster.
    Waits for the end and returns the agent's output. `progress(ns)` may return False to stop the
    machine. Leaves no process behind. Raises RunError if QEMU itself fails."""
    with reserved(user_cache() / "cores") as core:
        launch = partial(_launch, core)
        if from_snapshot:
            folder = user_cache() / "snapshots"
            try:
                kept = snapshot.find_or_make(hardware, folder, launch, lambda: progress(0))
            except snapshot.StoppedError:
                return Ended(None, b"", [], interrupted=True, silent=False)
            if kept is not None:
                try:
                    return _run(hardware, job, progress, launch, kept)
                except _NotStartedError:
                    snapshot.forget(kept)
        return _run(hardware, job, progress, launch, None)


class _NotStartedError(RunError):
    """QEMU ended before the guest wrote anything."""


def _run(
    hardware: Hardware,
    job: Job,
    progress: Callable[[int], bool],
    launch: Launch,
    kept: Snapshot | None,
) -> Ended:
    with scratch("fullpipe-vm-") as folder:
        start = shared.create(folder / SHARED, hardware.shared_bytes, job)
        with shared.view(folder / SHARED) as view:
            with _running(hardware, launch, kept, folder) as (process, said):
                interrupted, silent = _wait(process, view, start, progress)
            _, end = _follow(view, start)
            stream = view[start:end]
        if process.returncode not in (0, -signal.SIGTERM, -signal.SIGKILL):
            words = (folder / "errors").read_text(errors="replace").strip().splitlines()
            problem = f"QEMU: {words[0] if words else 'no reason given'}"
            raise RunError(problem) if stream else _NotStartedError(problem)
        console = (folder / CONSOLE).read_text(errors="replace").splitlines()
        return Ended(said, stream, _last_words(console), interrupted, silent)


@contextmanager
def _running(
    hardware: Hardware, launch: Launch, kept: Snapshot | None, folder: Path
) -> Iterator[tuple[subprocess.Popen[bytes], str | None]]:
    """Yields a running QEMU and its version, and stops it at the end."""
    if kept is None:
        process = launch(hardware.arguments(_EMPTY), folder)
        try:
            yield process, version()
        finally:
            stop(process)
        return
    with Monitor() as monitor, kept.state() as state:
        command = [*hardware.arguments(kept.memory()), *kept.arguments(), *monitor.arguments()]
        process = launch(command, folder, (monitor.theirs.fileno(), state.fileno()))
        try:
            try:
                said = monitor.greet()
                kept.resume(monitor, state)
            except RunError as error:
                raise _NotStartedError(str(error)) from None
            yield process, said
        finally:
            stop(process)


def _launch(
    core: int | None,
    command: Sequence[str],
    folder: Path,
    inherited: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts QEMU in a folder that has the shared memory; stderr goes to a file there."""
    turnstile = {"LD_PRELOAD": str(assets.turnstile()), "FULLPIPE_SHARED": SHARED}
    with (folder / "errors").open("wb") as errors:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, **turnstile, **(environment or {})},
            preexec_fn=lambda: _prepare(core),
            start_new_session=True,
            pass_fds=inherited,
        )


def _prepare(core: int | None) -> None:
    die_with_parent()
    inherit_autogroup_nice()
    confine(core)


def _last_words(console: list[str]) -> list[str]:
    """The console from the kernel's panic line on, if there is one: it says more than the call
    trace after it."""
    verdicts = [i for i, line in enumerate(console) if "Kernel panic" in line or "BUG:" in line]
    start = verdicts[0] if verdicts else max(len(console) - _LAST_WORDS, 0)
    return console[start : start + _LAST_WORDS]


def _wait(
    process: subprocess.Popen[bytes],
    view: mmap.mmap,
    start: int,
    progress: Callable[[int], bool],
) -> tuple[bool, bool]:
    offset = start
    heard, spent_s = time.monotonic(), 0.0
    while True:
        try:
            process.wait(_POLL_S)
            return False, False
        except subprocess.TimeoutExpired:
            pass
        done_ns, offset = _follow(view, offset)
        now_s, wants_more = _effort(process.pid)
        if done_ns is not None:
            heard, spent_s = time.monotonic(), now_s
        if not progress(done_ns or 0):
            return True, False
        idles = time.monotonic() - heard > _SILENCE_S and not wants_more
        if idles or now_s - spent_s > _SILENCE_CPU_S:
            return False, True


def _effort(pid: int) -> tuple[float, bool]:
    """CPU seconds of a process so far, and whether any of its threads is runnable
    (proc(5), /proc/PID/task/TID/stat)."""
    ticks, wants_more = 0, False
    for task in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            fields = task.read_text().rpartition(")")[2].split()
        except OSError:  # the thread ended meanwhile
            continue
        wants_more |= fields[0] == "R"
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), wants_more


def _follow(view: mmap.mmap, offset: int) -> tuple[int | None, int]:
    """The newest progress and the next offset to read. Frames are read in windows, so that a long
    stream is not copied at every poll."""
    newest = None
    while True:
        window = view[offset : offset + 2**21]
        done_ns, used = _native.stream.follow(window, 0)
        newest = done_ns if done_ns is not None else newest
        offset += used
        if used == 0:
            return newest, offset
