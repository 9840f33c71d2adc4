"""Watches a virtual machine from its start to its end: what it has written, whether it still makes
progress, its last words. It knows nothing of what kind of machine it is.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fullpipe import _native
from fullpipe.engines.child import die_with_parent, inherit_autogroup_nice
from fullpipe.engines.vm.core import confine

#: CPU seconds without progress after which a guest counts as hung: before its first frame, when it
#: boots and loads, and after it. A second of the guest is at most 10^9 instructions, some 10 s
#: of a slow core, and in a run it reports progress every tenth of one.
_SILENCE_CPU_S = (120.0, 60.0)
#: Wall-clock seconds without a frame after which a guest that is not runnable counts as hung. One
#: that waits for a core on a busy host does not.
_SILENCE_S = 180.0
_POLL_S = 0.1
_LAST_WORDS = 12
#: An oops with its registers and calls; of more the end says how it died.
_MOST_WORDS, _MOST_LAST = 100, 4
#: What a kernel dies of, and what it only complains of.
_DEADLY = ("Kernel panic", "BUG: ", "kernel BUG at", "Oops: ", "general protection", "divide error")
_VERDICTS = (_DEADLY, ("WARNING: ",))


@dataclass(frozen=True)
class Ended:
    """The result of a machine: the agent's stream, and the last lines of its console."""

    #: QEMU's version; None if it was not started or the machine is another.
    version: str | None
    stream: bytes
    console: list[str]
    #: Stopped on request.
    interrupted: bool
    #: Hung and was stopped.
    silent: bool


def prepare(core: int | None) -> None:
    """For `preexec_fn`: a machine ends with this process, and has this core."""
    die_with_parent()
    inherit_autogroup_nice()
    confine(core)


def last_words(console: list[str]) -> list[str]:
    """The console from the first line on that says what is wrong: what an oops says of its place,
    registers and calls comes after it, and a panic that it causes last. A warning counts where
    the console has nothing worse."""
    for words in _VERDICTS:
        for number, line in enumerate(console):
            if any(word in line for word in words):
                return _bounded(console[number:])
    return console[-_LAST_WORDS:]


def _bounded(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_WORDS - _MOST_LAST
    if more <= 0:
        return lines
    return [*lines[:_MOST_WORDS], f"({more} lines more)", *lines[-_MOST_LAST:]]


def wait(
    process: subprocess.Popen[bytes],
    view: mmap.mmap,
    start: int,
    progress: Callable[[int], bool],
) -> tuple[bool, bool]:
    """Waits for the end of a machine whose frames begin at `start`. Returns whether it has to be
    stopped on request, and whether because it hung."""
    offset = start
    heard, spent_s = time.monotonic(), 0.0
    runs = False
    while True:
        try:
            process.wait(_POLL_S)
            return False, False
        except subprocess.TimeoutExpired:
            pass
        done_ns, offset = follow(view, offset)
        now_s, wants_more = _effort(process.pid)
        runs |= offset > start
        if done_ns is not None:
            heard, spent_s = time.monotonic(), now_s
        if not progress(done_ns or 0):
            return True, False
        idles = time.monotonic() - heard > _SILENCE_S and not wants_more
        if idles or now_s - spent_s > _SILENCE_CPU_S[runs]:
            return False, True


def _effort(pid: int) -> tuple[float, bool]:
    """CPU seconds of a process so far, and whether any of its threads is runnable
    (proc(5), /proc/PID/task/TID/stat)."""
    ticks, wants_more = 0, False
    for task in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            fields = task.read_text().rpartition(")")[2].split()
        except OSError:  # the thread ended meanwhile
            continue
        wants_more |= fields[0] == "R"
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), wants_more


def follow(view: mmap.mmap, offset: int) -> tuple[int | None, int]:
    """The newest progress and the next offset to read. Frames are read in windows, so that a long
    stream is not copied at every poll."""
    newest = None
    while True:
        window = view[offset : offset + 2**21]
        done_ns, used = _native.stream.follow(window, 0)
        newest = done_ns if done_ns is not None else newest
        offset += used
        if used == 0:
            return newest, offset
