"""Clocks of what processes compute and sleep, without their waits for a processor: of a worker's
watchdog (pool.py), and of compilers. Must never know what the processes do.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fullpipe.base.sessions import session

#: How often the time of a process is counted.
_LOOK_S = 0.25


def queued_s(pid: int) -> float:
    """Seconds that a process has been ready to run while others had the processor
    (/proc/PID/schedstat, Documentation/scheduler/sched-stats.rst); 0 where the kernel counts
    none."""
    return _schedstat(pid, 1)


def computed_s(pid: int) -> float:
    """Seconds that a process has had a processor; 0 where the kernel counts none."""
    return _schedstat(pid, 0)


def queued_together_s(group: int) -> float:
    """`queued_s` of all processes of a process group."""
    return sum(map(queued_s, _members(group)))


def communicate(
    process: subprocess.Popen[str],
    limit_s: float,
    queued_together: Callable[[int], float] = queued_together_s,
) -> tuple[str, str]:
    """What the leader of a process group wrote to its pipes until it ended. Raises TimeoutExpired
    once the group has computed or slept for `limit_s`: its waits for a processor do not count."""
    clock = StallClock(2 * _LOOK_S, lambda: queued_together(process.pid))
    while True:
        try:
            return process.communicate(timeout=min(_LOOK_S, limit_s))
        except subprocess.TimeoutExpired:
            if clock.look() >= limit_s:
                raise


def output_of(
    command: Sequence[str], limit_s: float, **options: Any
) -> subprocess.CompletedProcess[str]:
    """What a command printed, which has no input and runs in a session of its own, with the
    options of `subprocess.Popen`. Raises TimeoutExpired as `communicate`, and what Popen raises."""
    with session(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        **options,
    ) as process:
        output, errors = communicate(process, limit_s)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def threads_of(pid: int) -> int:
    """The number of a process's threads (/proc/PID/stat, num_threads of proc(5)); 0 without such a
    process."""
    with suppress(OSError, ValueError, IndexError):
        # What is in brackets, the program's name, may have blanks.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[17])
    return 0


def _members(group: int) -> list[int]:
    """The processes of a process group (/proc/PID/stat, pgrp of proc(5))."""
    members = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                members.append(int(folder.name))
    return members


def _schedstat(pid: int, field: int) -> float:
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[field]) / 1e9
    return 0.0


class StallClock:
    """Seconds that a worker computed or slept since it last made progress. Time in which it only
    waited for a processor does not count, so a loaded machine ends no healthy worker."""

    def __init__(
        self,
        pause_s: float,
        queued: Callable[[], float],
        now: Callable[[], float] = time.monotonic,
        computed: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """A look that comes later than `pause_s` after the last one counts as `pause_s`: this
        process was stopped, and the worker, whose pipe was full, with it."""
        self._pause_s, self._queued, self._computed, self._now = pause_s, queued, computed, now
        self._seen_s, self._seen_queued_s, self._seen_computed_s = now(), queued(), computed()
        self.stalled_s = 0.0
        #: Since the beginning: the worker's own time, what it computed of it, and what it slept.
        self.own_s = self.computed_s = self.idle_s = 0.0

    def restart(self) -> None:
        """The worker made progress."""
        self.stalled_s = 0.0

    def look(self) -> float:
        """Counts the time since the last look; returns all of it."""
        now_s, queued_s, computed_s = self._now(), self._queued(), self._computed()
        passed_s = now_s - self._seen_s - (queued_s - self._seen_queued_s)
        busy_s = computed_s - self._seen_computed_s
        self._seen_s, self._seen_queued_s, self._seen_computed_s = now_s, queued_s, computed_s
        own_s = min(passed_s, self._pause_s)
        self.stalled_s += own_s
        self.own_s += own_s
        self.computed_s += busy_s
        self.idle_s = max(self.own_s - self.computed_s, 0.0)
        return self.stalled_s
