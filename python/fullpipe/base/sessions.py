"""Processes that end with all that they started where their user is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def session(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process in a session of its own, started with the options of `subprocess.Popen`. If an
    exception leaves the block, such as Ctrl-C, the session is killed and has ended, its pipes
    closed, before the exception goes on.

    Raises what Popen raises."""
    process = None
    try:
        with _interrupts_deferred():
            process = subprocess.Popen(command, start_new_session=True, **options)
        yield process
    except BaseException:
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        raise


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """SIGINT and SIGTERM that would raise in the block raise at its end: an exception within Popen
    would lose a process that runs already. Blocked signals would be the child's, too."""
    noted: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    raising = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if is_main and signal.getsignal(number) is signal.default_int_handler
    ]
    for number in raising:
        signal.signal(number, lambda caught, _frame: noted.append(caught))
    try:
        yield
    finally:
        for number in raising:
            signal.signal(number, signal.default_int_handler)
        if noted:
            signal.raise_signal(noted[0])
