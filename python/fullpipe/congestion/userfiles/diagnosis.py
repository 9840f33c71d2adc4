"""Says what ended a worker: in which file, and where it is known, in which line."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from fullpipe.congestion.userfiles import toolchain
from fullpipe.congestion.userfiles.limits import MEMORY_MIB
from fullpipe.congestion.userfiles.source import Source

_FAULT = re.compile(r"^fault (\d+) ([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)$", re.M)
_FRAME = re.compile(r'^  File "([^"\n]+)", line (\d+) in (\S+)$', re.M)
_NO_MEMORY = re.compile(r"memory allocation of \d+ bytes failed|MemoryError")
#: Distance of an address from the stack's end within which it is the stack that was used up.
_STACK_MARGIN = 1 << 20
#: Where a kernel's file writes in BUG_ON() (cc/linux_base.h).
_BUG_ADDRESS = 0xB06


def names(sources: Sequence[Source]) -> str:
    """The files, one of which it was."""
    return " or ".join(str(source.path) for source in sources)


def location(
    report: str,
    sources: Sequence[Source],
    objects: Mapping[str, Path | None],
    bases: Mapping[str, int],
) -> str:
    """`file:line` of what broke, as far as the fault handlers' report says; or the file. `objects`:
    the shared objects of the sources, by their ids; `bases`: where these were loaded."""
    for path, line, _ in _FRAME.findall(report):
        for source in sources:
            if source.is_class and Path(path).name in source.files:
                return f"{source.folder / Path(path).name}:{line}"
    for _, code, _, _ in _FAULT.findall(report)[:1]:
        below = [(base, identity) for identity, base in bases.items() if base <= int(code, 16)]
        if below:
            base, identity = max(below)
            source = next(source for source in sources if source.id == identity)
            where = _line(source, objects[identity], int(code, 16) - base)
            if where:
                return where
    return names(sources)


def cause(status: int | None, report: str, words: str, memory_bytes: int) -> str:
    """Why a worker gives no more answers: from its exit status (None: it still runs), from the
    handlers' report, and from what it printed."""
    if status is None:
        return "it closed the pipe of its answers, and was stopped"
    if status == -signal.SIGABRT and _NO_MEMORY.search(words):
        return f"it took more than {memory_bytes >> 20} MiB of memory ({MEMORY_MIB})"
    if status >= 0:
        return f"it ended its process (exit status {status})"
    fault = _FAULT.search(report)
    if -status in (signal.SIGSEGV, signal.SIGBUS) and fault:
        stack, touched = int(fault[3], 16), int(fault[4], 16)
        if touched == _BUG_ADDRESS:
            return "BUG() or BUG_ON(): a kernel would die here"
        if abs(stack - touched) < _STACK_MARGIN:
            return "it used up its stack: unbounded recursion"
    reasons = {
        signal.SIGSEGV: "it touched memory that is not its own",
        signal.SIGBUS: "it touched memory that is not its own",
        signal.SIGFPE: "division by zero",
        signal.SIGILL: "an index outside its array, or a division by zero",
        signal.SIGTRAP: "an index outside its array, or a division by zero",
        signal.SIGSYS: "it made a system call of another architecture",
        signal.SIGKILL: "it was killed; where memory was short, by the kernel",
    }
    if -status not in set(signal.Signals):
        return f"it ended its process ({-status})"
    number = signal.Signals(-status)
    return reasons.get(number, f"it ended its process ({number.name})")


def _line(source: Source, shared_object: Path | None, offset: int) -> str | None:
    """`file:line` of code at an offset of a shared object, if binutils know it."""
    if shared_object is None or shutil.which("addr2line") is None:
        return None
    with toolchain.workplace() as folder:
        command = ["addr2line", "-i", "-e", str(shared_object), hex(offset)]
        answer = toolchain.run(command, [shared_object.parent], folder, source.path)
    # The innermost function first, then those that it is part of.
    for words in answer.stdout.splitlines() if answer.returncode == 0 else []:
        line = source.with_user_paths(words.split(" (")[0])
        if Path(line.rpartition(":")[0]).name in source.files:
            return line
    return None
