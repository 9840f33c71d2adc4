"""One run of a virtual machine: QEMU with instruction counting, so that time in the guest is the
number of instructions it ran and nothing else. It knows nothing of plans; it carries a job in
and bytes out, through memory that both sides see.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from fullpipe.base.cache import user_cache
from fullpipe.base.errors import RunError
from fullpipe.base.scratch import scratch
from fullpipe.engines import assets
from fullpipe.engines.child import stop
from fullpipe.engines.vm import retries, shared, snapshot
from fullpipe.engines.vm.core import reserved
from fullpipe.engines.vm.hardware import CONSOLE, SHARED, Hardware, version
from fullpipe.engines.vm.qmp import Monitor
from fullpipe.engines.vm.shared import Job
from fullpipe.engines.vm.snapshot import Launch, Snapshot
from fullpipe.engines.vm.watch import Ended, follow, last_words, prepare, wait

#: Wall-clock seconds that a panic may take on a busy host.
_PANIC_S = 60.0
#: A guest's memory that begins empty.
_EMPTY = "memory-backend-ram"


def run(
    hardware: Hardware,
    job: Job,
    progress: Callable[[int], bool],
    from_snapshot: bool = True,
) -> Ended:
    """Boots a machine, or resumes a snapshot of that hardware, which gives the same result faster.
    A machine that does not start is booted once more. Waits for the end and returns the agent's
    output. `progress(ns)` may return False to stop the machine. Leaves no process behind. Raises
    RunError if QEMU itself fails."""
    with reserved(user_cache() / "cores") as core:
        launch = partial(_launch, core)
        if from_snapshot:
            folder = user_cache() / "snapshots"
            try:
                saved = snapshot.find_or_make(hardware, folder, launch, lambda: progress(0))
            except snapshot.StoppedError:
                return Ended(None, b"", [], interrupted=True, silent=False)
            if saved is not None:
                try:
                    return _run(hardware, job, progress, launch, saved)
                except _NotStartedError as error:
                    retries.note(f"not resumed: {error}")
                    snapshot.forget(saved)
                    return _run(hardware, job, progress, launch, None)
        try:
            return _run(hardware, job, progress, launch, None)
        except _NotStartedError as error:
            retries.note(f"not booted: {error}")
            return _run(hardware, job, progress, launch, None)


class _NotStartedError(RunError):
    """QEMU ended before the guest wrote anything."""


def _run(
    hardware: Hardware,
    job: Job,
    progress: Callable[[int], bool],
    launch: Launch,
    saved: Snapshot | None,
) -> Ended:
    with scratch("fullpipe-vm-") as folder:
        start = shared.create(folder / SHARED, hardware.shared_bytes, job)
        with shared.view(folder / SHARED) as view:
            with _running(hardware, launch, saved, folder) as (process, greeting, monitor):
                interrupted, silent = wait(process, view, start, progress)
                if silent and monitor:
                    _say_where(process, monitor)
            _, end = follow(view, start)
            stream = view[start:end]
        if process.returncode not in (0, -signal.SIGTERM, -signal.SIGKILL):
            words = (folder / "errors").read_text(errors="replace").strip().splitlines()
            problem = f"QEMU: {words[0] if words else 'no reason given'}"
            raise RunError(problem) if stream else _NotStartedError(problem)
        console = (folder / CONSOLE).read_text(errors="replace").splitlines()
        return Ended(greeting, stream, last_words(console), interrupted, silent)


@contextmanager
def _running(
    hardware: Hardware, launch: Launch, saved: Snapshot | None, folder: Path
) -> Iterator[tuple[subprocess.Popen[bytes], str | None, Monitor | None]]:
    """Yields a running QEMU, its version and what controls it, and stops it at the end."""
    if saved is None:
        process = launch(hardware.arguments(_EMPTY), folder)
        try:
            yield process, version(), None
        finally:
            stop(process)
        return
    with Monitor() as monitor, saved.state() as state:
        command = [*hardware.arguments(saved.memory()), *saved.arguments(), *monitor.arguments()]
        process = launch(command, folder, (monitor.theirs.fileno(), state.fileno()))
        try:
            try:
                greeting = monitor.greet()
                saved.resume(monitor, state)
            except RunError as error:
                raise _NotStartedError(str(error)) from None
            yield process, greeting, monitor
        finally:
            stop(process)


def _say_where(process: subprocess.Popen[bytes], monitor: Monitor) -> None:
    """Has the kernel of a machine that hangs panic, which prints its registers and calls (the agent
    has set unknown_nmi_panic)."""
    with suppress(RunError, subprocess.TimeoutExpired):
        monitor.ask("inject-nmi")
        process.wait(_PANIC_S)


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
            preexec_fn=lambda: prepare(core),
            start_new_session=True,
            pass_fds=inherited,
        )
