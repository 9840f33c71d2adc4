"""Whether the code of files may run.

A user who names a file wants it to run. A store or a recording may be somebody else's: the files
that its scenarios name are content, and run only where the user names them too. Knows no store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.base.supplied import read_regular
from fullpipe.congestion.userfiles.source import MAX_FILE_BYTES

#: The files that may run; None: every file that is named.
_TRUSTED: ContextVar[frozenset[Path] | None] = ContextVar("trusted", default=None)


class UntrustedError(UserError):
    """A scenario from outside names code that was not trusted."""


@contextmanager
def from_outside(trusted: Iterable[Path] = ()) -> Iterator[None]:
    """While the block runs, only the code of these files may run: the scenarios that it reads come
    from a store or a recording."""
    before = _TRUSTED.set(frozenset(file.resolve() for file in trusted))
    try:
        yield
    finally:
        _TRUSTED.reset(before)


def check(name: str) -> None:
    """Raises UntrustedError if the file of this congestion control (`mine.h`, `mine.py:Mine`) must
    not run."""
    trusted = _TRUSTED.get()
    file = file_of(name)
    if trusted is None or file.resolve() in trusted:
        return
    digest = _sha256(file)
    actual = f"sha256 {digest[:12]}" if digest else "not there"
    raise UntrustedError(
        f"{name[:200]!r} ({actual}): code in a file, named by a store or recording, does not run; "
        f"name the file yourself: --trust FILE where there is such an option"
    )


def file_of(name: str) -> Path:
    """The file that the name of an external congestion control means."""
    written = name.partition("[")[0]
    path, colon, _ = written.rpartition(":")
    return Path(path if colon and path.endswith(".py") else written)


def _sha256(file: Path) -> str | None:
    """A hash of a file's content; None unless it is a plain file of a usual size."""
    import hashlib  # loads OpenSSL, which most programs do not need

    try:
        return hashlib.sha256(read_regular(file, MAX_FILE_BYTES)).hexdigest()
    except (OSError, ValueError):
        return None
