"""Child processes that end with this one and run at its nice value."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PATIENCE_S = 10


def die_with_parent() -> None:
    """For `preexec_fn`: the kernel kills the child when this process ends, even by SIGKILL. Only
    Linux does."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def without_main() -> Iterator[None]:
    """Keeps worker processes that start meanwhile from importing the main program, which defines
    none of their work. A user's script without `if __name__ == "__main__"` would start itself for
    ever."""
    main = vars(sys.modules["__main__"])
    hidden: dict[str, object] = {
        name: main.pop(name) for name in ("__file__", "__spec__") if name in main
    }
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


def inherit_autogroup_nice() -> None:
    """For `preexec_fn`: copies the parent's autogroup nice value. A child in its own session would
    otherwise run at nice 0 (sched(7), autogroup)."""
    with suppress(OSError):  # a kernel without autogroups, or the parent has exited
        text = Path(f"/proc/{os.getppid()}/autogroup").read_text(encoding="ascii")
        nice = autogroup_nice(text)
        if nice is not None:
            Path("/proc/self/autogroup").write_text(str(nice), encoding="ascii")


def autogroup_nice(text: str) -> int | None:
    """Parses the nice value of /proc/PID/autogroup ("/autogroup-25 nice 5", proc(5)). None if the
    process has no autogroup: the file is then empty, as for services started before any session
    (kernel/sched/autogroup.c, proc_sched_autogroup_show_task())."""
    last = text.split()[-1:]
    return int(last[0]) if last else None


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the process if it still runs: SIGTERM first, then SIGKILL."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
