"""The executor of one machine: processes that end with their work or with their parent.

Never imports Ray.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from fullpipe.base.machine import cores
from fullpipe.engines.child import without_main
from fullpipe.engines.workers import worker_processes
from fullpipe.sweep.schedule import GROUP_S, Failure, Group, LostError, Work

#: Groups queued for each worker, so that it never waits for the parent.
_AHEAD = 2
_TICK_S = 0.5


class Pool:
    """A pool of `width` processes."""

    group_s = GROUP_S

    def __init__(self, width: int | None = None, preload: str = "fullpipe.sweep.worker") -> None:
        self.width = width or cores()
        self._preload = preload
        self._pool: ProcessPoolExecutor | None = None
        self._ended = False

    def run(
        self, work: Work, groups: Iterator[Group]
    ) -> Iterator[tuple[Group, list[Failure] | LostError | None]]:
        """See `schedule.Executor`. A broken pool is replaced at the next call."""
        pool = self._pool = self._pool or worker_processes(self.width, self._preload, served=True)
        pending: dict[Future[list[Failure]], Group] = {}
        lost: LostError | None = None
        while True:
            while lost is None and len(pending) < _AHEAD * self.width:
                group = next(groups, None)
                if group is None:
                    break
                try:
                    with without_main():
                        future = pool.submit(work, [item.payload for item in group.items])
                    pending[future] = group
                except BrokenProcessPool:
                    lost = LostError("its process ended")
                    yield group, lost
            if not pending:
                break
            ended, _ = wait(pending, timeout=_TICK_S, return_when=FIRST_COMPLETED)
            for future in ended:
                group = pending.pop(future)
                try:
                    yield group, future.result()
                except BrokenProcessPool:
                    lost = LostError("its process ended")
                    yield group, lost
            if not ended:
                yield next(iter(pending.values())), None
        if lost is not None:
            pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        else:
            self._ended = True

    def close(self) -> None:
        """Stops the workers; terminates those that are still busy after an interruption."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if not self._ended:
            for process in list((pool._processes or {}).values()):
                process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


class Here:
    """Runs everything in this process: for a single item and for tests."""

    width = 1
    group_s = GROUP_S

    def run(
        self, work: Work, groups: Iterator[Group]
    ) -> Iterator[tuple[Group, list[Failure] | LostError | None]]:
        """See `schedule.Executor`."""
        for group in groups:
            yield group, work([item.payload for item in group.items])

    def close(self) -> None:
        """Does nothing."""
