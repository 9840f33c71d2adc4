"""Plans that wait on disk: pieces of JSON, of which plans are put together. A million plans that
share theirs take the place of a few.

Knows texts and where they lie, and no plan.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path

#: Where a piece begins, and how long it is.
Span = tuple[int, int]
#: All pieces of a spool in a row.
Pieces = bytes | mmap.mmap
_BUFFER_BYTES = 1 << 20


class Spool:
    """A file that pieces are added to; other pieces may lie there already."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", _BUFFER_BYTES)
        self._end = self._file.tell()

    def put(self, piece: bytes) -> Span:
        """Adds a piece; whoever reads the file finds it after `flush`."""
        self._file.write(piece)
        span = self._end, len(piece)
        self._end += len(piece)
        return span

    def flush(self) -> None:
        """Leaves nothing that was added to memory alone."""
        self._file.flush()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Pieces]:
    """What lies in a spool. A call for each piece would take longer than its bytes."""
    if path.stat().st_size == 0:
        yield b""
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pieces:
        yield pieces


def joined(pieces: Pieces, spans: Sequence[Span]) -> bytes:
    """The text that these pieces make in a row."""
    return b"".join([pieces[begin : begin + length] for begin, length in spans])
