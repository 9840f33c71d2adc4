"""Processes that do runs beside one another.

They are forks of this process, which has loaded what they need. A fork of a process with several
threads, such as a notebook, may hang: there they load it again, in processes of their own or of a
fork server, which lives as long as this process.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import BaseContext
from pathlib import Path


def worker_processes(width: int, preload: str, served: bool) -> ProcessPoolExecutor:
    """A pool of `width` processes that have loaded the module `preload`. They leave Ctrl-C to this
    process, end at SIGTERM, and end when this process does. `served`: where they cannot be forks,
    they come from a fork server."""
    return ProcessPoolExecutor(
        width,
        mp_context=_context(preload, served),
        initializer=_begin,
        initargs=(dict(os.environ),),
    )


def _context(preload: str, served: bool) -> BaseContext:
    threads = Path("/proc/self/task")  # those of libraries included
    if threads.is_dir() and len(list(threads.iterdir())) == 1:
        importlib.import_module(preload)
        return multiprocessing.get_context("fork")
    if not served:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preload])
    return context


def _begin(environment: dict[str, str]) -> None:
    """Prepares a worker. It takes the parent's current environment, which says where caches are:
    a fork server has an older one. The sentinel that ends it is a pipe that only the parent
    holds open."""
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
