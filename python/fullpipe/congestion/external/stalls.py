"""The clock of a worker's watchdog (contained.py). Must never know what the worker does."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def queued_s(pid: int) -> float:
    """Seconds that a process has been ready to run while others had the processor
    (/proc/PID/schedstat, Documentation/scheduler/sched-stats.rst); 0 where the kernel counts
    none."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    return 0.0


class StallClock:
    """Seconds that a worker computed or slept since it last made progress. Time in which it only
    waited for a processor does not count, so a loaded machine ends no healthy worker."""

    def __init__(
        self,
        pause_s: float,
        queued: Callable[[], float],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """A look that comes later than `pause_s` after the last one counts as `pause_s`: this
        process was stopped, and the worker, whose pipe was full, with it."""
        self._pause_s, self._queued, self._now = pause_s, queued, now
        self._seen_s, self._seen_queued_s = now(), queued()
        self.stalled_s = 0.0

    def restart(self) -> None:
        """The worker made progress."""
        self.stalled_s = 0.0

    def look(self) -> float:
        """Counts the time since the last look; returns all of it."""
        now_s, queued_s = self._now(), self._queued()
        passed_s = now_s - self._seen_s - (queued_s - self._seen_queued_s)
        self._seen_s, self._seen_queued_s = now_s, queued_s
        self.stalled_s += min(passed_s, self._pause_s)
        return self.stalled_s
