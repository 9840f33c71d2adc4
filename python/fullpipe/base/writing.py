"""Files written atomically, and folders that one process claims."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fullpipe.base.errors import UserError


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yields a temporary file that replaces `path` when the block ends without an exception; until
    then the old file stays whole, also on a full disk. Makes the folder.

    Raises UserError where it cannot be written."""
    partial = path.with_name(f".{path.stem}.{os.getpid()}.{os.urandom(4).hex()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            partial.unlink()


def write_text(path: Path, text: str) -> None:
    """Writes a file atomically. Raises UserError where it cannot be written."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def check_folder(option: str, folder: Path | None) -> None:
    """Raises UserError where files cannot be written into a folder that an option names. Call it
    before a long run."""
    if folder is None:
        return
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise UserError(f"{option} {folder}: {there} is a file; name a folder")
    if not os.access(there, os.W_OK):
        raise UserError(f"{option} {folder}: {there} cannot be written into")


@contextmanager
def claimed(folders: Iterable[Path]) -> Iterator[None]:
    """Claims folders for this process while the block runs.

    Raises UserError where another process has claimed one. The claim is a lock on a file, so a
    process that dies gives it up."""
    with ExitStack() as held:
        for folder in folders:
            held.enter_context(_claim(folder))
        yield


@contextmanager
def _claim(folder: Path) -> Iterator[None]:
    file = folder.with_name(f".{folder.name}.claim")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise UserError(
            f"{folder}: another run is writing it; name another folder with --out"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()
        os.close(lock)
