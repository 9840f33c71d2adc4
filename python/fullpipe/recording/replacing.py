"""Recordings that make room for new ones, and come back if there are none. Must never know what
writes them.
"""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fullpipe.base.errors import UserError


@contextmanager
def replaced(folder: Path) -> Iterator[None]:
    """Moves a recording, or a folder of runs, aside while the block runs. Afterwards it is deleted
    if something new has its place, and moved back if not.

    A program that is killed leaves it aside for `restore`. Raises UserError if the folder is
    anything else, or cannot be moved."""
    if not folder.exists():
        yield
        return
    if not (_is_recording(folder) or any(map(_is_recording, folder.glob("run-*")))):
        raise UserError(f"--force: {folder} is no recording; remove it yourself, or name another")
    aside = folder.with_name(f".{folder.name}.{os.getpid()}.replaced")
    try:
        folder.rename(aside)
    except OSError as error:
        raise UserError(f"{folder}: cannot be replaced: {error.strerror}") from None
    try:
        yield
    finally:
        if folder.exists():
            shutil.rmtree(aside)
        else:
            aside.rename(folder)


def restore(folder: Path) -> None:
    """Moves a recording back that a program had moved aside before it was killed; deletes it where
    that program wrote a new one. What a running program moved aside stays."""
    name = glob.escape(folder.name)
    for aside in sorted(folder.parent.glob(f".{name}.*.replaced")):
        number = aside.name.split(".")[-2]
        if not number.isdecimal() or _is_alive(int(number)):
            continue
        if folder.exists():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            with suppress(OSError):
                aside.rename(folder)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def _is_recording(folder: Path) -> bool:
    return (folder / "metadata.json").is_file()
