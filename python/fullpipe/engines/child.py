"""Child processes that never outlive this one, nor take more of the host than it would."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PATIENCE_S = 10


def die_with_parent() -> None:
    """For `preexec_fn`: the kernel ends the child when this process ends, even by SIGKILL."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def be_as_nice_as_the_parent() -> None:
    """For `preexec_fn`: a session of its own would compete as one that nobody made nice (sched(7),
    autogroup)."""
    with suppress(OSError):  # a kernel without autogroups, or a parent that is gone
        told = Path(f"/proc/{os.getppid()}/autogroup").read_text(encoding="ascii")
        nice = autogroup_nice(told)
        if nice is not None:
            Path("/proc/self/autogroup").write_text(str(nice), encoding="ascii")


def autogroup_nice(told: str) -> int | None:
    """The nice value in what /proc/PID/autogroup tells ("/autogroup-25 nice 5", proc(5)). None for
    a process of no autogroup: the file is empty there, as for services started before any session
    (kernel/sched/autogroup.c, proc_sched_autogroup_show_task())."""
    last = told.split()[-1:]
    return int(last[0]) if last else None


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the process if it still runs: first asked, then made to."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
