"""Temporary folders of runs. The next run removes those that a killed program left."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fullpipe.base.supplied import open_regular

_LOCK = "owner.lock"


@contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """A new temporary folder, removed at the end. Folders of this prefix whose owner has died are
    removed first."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        _remove_if_left(folder)
    with tempfile.TemporaryDirectory(prefix=prefix) as text:
        folder = Path(text)
        making = folder / f"{_LOCK}.making"
        # Python's files are closed at exec: no child holds the lock.
        with making.open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            making.rename(folder / _LOCK)
            yield folder


def _remove_if_left(folder: Path) -> None:
    try:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return
        with open_regular(folder / _LOCK) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # locked by a running process, or already removed
        return
