"""Folders for what is being written in a store: one a process, removed when the process has died.

Knows no store.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from pathlib import Path
from typing import IO

from fullpipe.base.supplied import open_regular

_LOCK = "owner.lock"
#: Folders without a lock: of earlier programs, or of one that died while it made it.
_OLD_S = 24 * 3600
#: (process, folder) -> this process's folder, and the lock that says that it lives.
_FOLDERS: dict[tuple[int, Path], tuple[Path, IO[bytes]]] = {}


def of_this_process(work: Path) -> Path:
    """This process's folder below `work`. Raises OSError if it cannot be made."""
    key = (os.getpid(), work.absolute())
    if key not in _FOLDERS or not _FOLDERS[key][0].is_dir():
        folder = work / f"{os.getpid()}-{os.urandom(6).hex()}"
        with contextlib.suppress(FileNotFoundError):  # another program removed an empty `work`
            folder.mkdir(parents=True)
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{_LOCK}.making").open("wb")
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path(lock.name).rename(folder / _LOCK)
        _FOLDERS[key] = folder, lock
    return _FOLDERS[key][0]


def leave(work: Path) -> None:
    """Removes this process's folder, and `work` if it is empty."""
    owned = _FOLDERS.pop((os.getpid(), work.absolute()), None)
    if owned is not None:
        shutil.rmtree(owned[0], ignore_errors=True)
        owned[1].close()
    with contextlib.suppress(OSError):
        work.rmdir()


def remove_left(work: Path) -> None:
    """Removes the folders of processes that have died, and `work` if it is empty."""
    for folder in work.glob("*-*"):
        try:
            with open_regular(folder / _LOCK) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except FileNotFoundError:
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > _OLD_S:
                    shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its owner lives
            continue
    with contextlib.suppress(OSError):
        work.rmdir()
