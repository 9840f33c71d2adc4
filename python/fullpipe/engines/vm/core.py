"""Reserves a core for a machine. QEMU's vCPU thread and its main loop alternate whenever the guest
idles, some 40,000 times a simulated second at 100 Mbit/s. Across two cores each switch costs an
interrupt, on one core a function call: one core halves the CPU time. It knows nothing of QEMU.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOOK_S = 0.1


@contextmanager
def reserved(folder: Path) -> Iterator[int | None]:
    """The number of the idlest core that no other machine of this user has; None if all are taken.
    `folder` keeps a lock for every core, which the kernel releases when this process ends."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    for core in _idlest_first():
        lock = _lock(folder / f"{core}.lock")
        if lock is not None:
            try:
                yield core
            finally:
                os.close(lock)
            return
    yield None


def confine(core: int | None) -> None:
    """Pins the calling process to a core, and stops its threads from preempting one another
    (sched(7), SCHED_BATCH)."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _lock(path: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _idlest_first() -> list[int]:
    before = _idle_ticks()
    time.sleep(_LOOK_S)
    after = _idle_ticks()
    idle = {core: after.get(core, 0) - before.get(core, 0) for core in os.sched_getaffinity(0)}
    return sorted(idle, key=lambda core: (-idle[core], core))


def _idle_ticks() -> dict[int, int]:
    """Idle ticks of each core so far (proc(5), /proc/stat, fourth column)."""
    ticks = {}
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *figures = line.split()
        if name.startswith("cpu") and name != "cpu":
            ticks[int(name[3:])] = int(figures[3])
    return ticks
