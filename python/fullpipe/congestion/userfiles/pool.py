"""Runs the code of algorithms from files in worker processes without rights.

A worker serves one set of algorithms, and is used again for it. With a class of Python each job has
a worker of its own: what its code leaves in the interpreter must not reach the next run, or results
would depend on which runs share a process.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fullpipe.base.cache import user_cache
from fullpipe.congestion.userfiles import limits, stem
from fullpipe.congestion.userfiles.process import Rights
from fullpipe.congestion.userfiles.protocol import Algorithm, Answer, Bounds, Listener, Worker
from fullpipe.congestion.userfiles.source import folder_of

#: Most idle workers that wait for another job.
_MOST_IDLE = 4


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
        tuple(sorted((each.source.id, str(each.shared_object or "")) for each in algorithms)),
        tuple(read),
        limits.memory_bytes(),
        str(user_cache()),
        threading.get_native_id(),
    )
    is_used_again = not files and not any(each.source.is_class for each in algorithms)
    worker = _take(key) if is_used_again else None
    if worker is None:
        folders = [str(folder_of(each.source.id)) for each in algorithms]
        worker = Worker(
            algorithms,
            Rights([*folders, *read], files or {}, key.memory_bytes, limits.output_bytes()),
        )
        _all.add(worker)
    try:
        return worker.do(job, arguments, blobs, listener or Listener(), bounds or Bounds())
    finally:
        if worker.is_ready and is_used_again:
            _give_back(key, worker)
        else:
            _end(worker)


class _Key(NamedTuple):
    algorithms: tuple[tuple[str, str], ...]
    read: tuple[str, ...]
    memory_bytes: int
    cache: str
    #: A worker ends with the thread that started it (PR_SET_PDEATHSIG of prctl(2)).
    thread: int


_all: set[Worker] = set()
_idle: list[tuple[_Key, Worker]] = []
_lock = threading.Lock()


def _take(key: _Key) -> Worker | None:
    with _lock:
        for index, (wanted, worker) in enumerate(_idle):
            if wanted == key and worker.is_alive:
                del _idle[index]
                return worker
    return None


def _give_back(key: _Key, worker: Worker) -> None:
    with _lock:
        _idle.append((key, worker))
        surplus = _idle.pop(0)[1] if len(_idle) > _MOST_IDLE else None
    if surplus:
        _end(surplus)


def _end(worker: Worker) -> None:
    worker.end()
    _all.discard(worker)


@atexit.register
def end_all() -> None:
    """Ends all workers, as this process does when it ends."""
    with _lock:
        _idle.clear()
    for worker in [*_all]:
        _end(worker)
    stem.end_all()


def _forget() -> None:
    """A fork has descriptors of its parent's workers, which would outlive the parent by them."""
    global _lock
    _lock = threading.Lock()
    for worker in _all:
        worker.abandon()
    _all.clear()
    _idle.clear()


os.register_at_fork(after_in_child=_forget)
