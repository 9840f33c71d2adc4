"""Processes that end with all that they started where their user is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from fullpipe.base.interrupts import interrupts_taken


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
    """Signals that would raise in the block raise at its end: an exception within Popen would lose
    a process that runs already. Blocked signals would be the child's, too."""
    taken: list[int] = []
    with interrupts_taken(taken.append):
        yield
    if taken:
        signal.raise_signal(taken[0])
