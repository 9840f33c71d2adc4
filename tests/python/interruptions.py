"""What a program leaves where it is interrupted: each change that it makes in a folder fails once,
or is the last before a kill."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from fullpipe.base.errors import RunError, UserError

#: Audit events (docs.python.org/3/library/audit_events.html) of what changes a folder.
_CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink")
#: Statuses of a process: the action ended, said why it could not, or raised anything else.
DONE, SAID, RAISED, KILLED = 0, 2, 3, 137


def steps(
    action: Callable[[Path], object], folders: Iterator[Path], number: int | None
) -> Iterator[tuple[Path, int, str]]:
    """Does the action in a process of its own, in a new folder each time, and interrupts it at its
    first change of that folder, then at its second, up to the last. `number`: the error (errno)
    with which the change fails; None: a kill before it.

    Yields the folder, the status, and what was said."""
    for count, folder in enumerate(folders):
        status, said = _interrupted(lambda: action(folder), folder, count, number)  # noqa: B023
        yield folder, status, said
        if status == DONE:
            return


def _interrupted(
    action: Callable[[], object], folder: Path, at: int, number: int | None
) -> tuple[int, str]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        status, said = RAISED, ""
        try:
            _interrupt(folder, at, number)
            status, said = _outcome(action)
        finally:
            os.write(write, said.encode(errors="replace")[:4000])
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def _outcome(action: Callable[[], object]) -> tuple[int, str]:
    try:
        action()
    except (UserError, RunError) as error:
        return SAID, str(error)
    except BaseException:
        return RAISED, traceback.format_exc()
    return DONE, ""


def _interrupt(folder: Path, at: int, number: int | None) -> None:
    begin, count = str(folder), 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if event == "open":
            name, _, flags = arguments
            if not (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
                return
        elif event in _CHANGES:
            name = arguments[0]
        else:
            return
        if isinstance(name, str | os.PathLike) and os.fspath(name).startswith(begin):
            count += 1
            if count == at + 1 or (number is not None and count > at):
                if number is None:
                    os._exit(KILLED)
                raise OSError(number, os.strerror(number))

    sys.addaudithook(hook)
