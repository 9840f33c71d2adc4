"""The executor of one machine: processes that outlive neither work nor parent.

Workers are forks of this process, which has loaded what they need. Forks of one with several
threads, as a notebook is, may hang: there they come from a fork server, which loads it again. Never
imports Ray.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import BaseContext
from pathlib import Path

from fullpipe.sweep.schedule import GROUP_S, Failure, Group, LostError, Work

#: Groups that wait in a worker's queue, so that it never waits for the parent.
_AHEAD = 2
_TICK_S = 0.5


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


class Pool:
    """So many processes; `width` of them work at once."""

    group_s = GROUP_S

    def __init__(self, width: int | None = None, preload: str = "fullpipe.sweep.worker") -> None:
        self.width = width or cores()
        self._preload = preload
        self._pool: ProcessPoolExecutor | None = None
        self._ended = False

    def run(
        self, work: Work, groups: Iterator[Group]
    ) -> Iterator[tuple[Group, list[Failure] | LostError | None]]:
        """See `schedule.Executor`. A pool that broke is made anew with the next call."""
        pool = self._pool = self._pool or self._made()
        pending: dict[Future[list[Failure]], Group] = {}
        lost: LostError | None = None
        while True:
            while lost is None and len(pending) < _AHEAD * self.width:
                group = next(groups, None)
                if group is None:
                    break
                try:
                    with _without_main():
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
        """Lets workers end; those that still work, after an interruption, are ended."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if not self._ended:
            for process in list((pool._processes or {}).values()):
                process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)

    def _made(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self.width, mp_context=_context(self._preload), initializer=_begin,
            initargs=(dict(os.environ),),
        )  # fmt: skip


class Here:
    """The executor of this process, for one item and for tests."""

    width = 1
    group_s = GROUP_S

    def run(
        self, work: Work, groups: Iterator[Group]
    ) -> Iterator[tuple[Group, list[Failure] | LostError | None]]:
        """See `schedule.Executor`."""
        for group in groups:
            yield group, work([item.payload for item in group.items])

    def close(self) -> None:
        """Nothing is left to end."""


def _context(preload: str) -> BaseContext:
    if len(list(Path("/proc/self/task").iterdir())) == 1:  # threads of libraries included
        importlib.import_module(preload)
        return multiprocessing.get_context("fork")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preload])
    return context


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """No worker that starts meanwhile runs the main program again, as it would to find what is
    defined there: all work is the package's own. It would cost each a command line's start, and a
    user's script without `if __name__ == "__main__"` would run in a circle."""
    main = vars(sys.modules["__main__"])
    hidden: dict[str, object] = {
        name: main.pop(name) for name in ("__file__", "__spec__") if name in main
    }
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


def _begin(environment: dict[str, str]) -> None:
    """In a worker: the environment is the parent's of now, which says where caches are; the fork
    server has that of its first use. Ctrl-C is the parent's to answer, SIGTERM ends a worker
    whatever it means to the parent, and nobody runs on for a parent that died.

    The fork server would live as long as its workers do, so its end says nothing of the parent's;
    the sentinel is a pipe that only the parent holds open."""
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)
