"""Leases of runs: of the programs that fill a store at once, one does a run and the others wait.

A lease is a lock on one byte of a file, at a place that the run's key says. The kernel gives it up
with its process, so a program that is killed blocks nobody. Knows no store.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.base.supplied import open_lock

FILE = ".leases"
#: What follows an error's reason where runs may be stored.
CONTINUES = "; what is stored is complete, and the same command continues"
#: Hexadecimal digits of a key that say where its byte is: an offset has 63 bits.
_DIGITS = 15


@contextmanager
def some_of(folder: Path, keys: Sequence[str]) -> Iterator[set[str]]:
    """Takes the leases of these runs that no other program holds, and gives them back when the
    block ends. Where others hold them all, it waits for the first.

    Raises UserError where the folder cannot be written."""
    try:
        file = open_lock(folder / FILE)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}{CONTINUES}") from None
    with file:  # closing it gives all leases back
        held: set[str] = set()
        for key in keys:
            with suppress(BlockingIOError, PermissionError):
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte_of(key))
                held.add(key)
        if not held and keys:
            fcntl.lockf(file, fcntl.LOCK_EX, 1, _byte_of(keys[0]))
            held.add(keys[0])
        yield held


def _byte_of(key: str) -> int:
    return int(key[:_DIGITS], 16)
