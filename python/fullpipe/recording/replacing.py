"""Recordings that make room for new ones, and come back if there are none. Must never know what
writes them.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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
    aside = folder.with_name(f".{folder.name}.{os.getpid()}.{platform.node()}.replaced")
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


def restore(folder: Path) -> list[Path]:
    """Moves a recording back that a program of this host had moved aside before it was killed.
    Where something is in its place, such as a part of what that program wrote, nothing is touched:
    the list has the folders that are still aside."""
    name, host = re.escape(folder.name), re.escape(platform.node())
    pattern = re.compile(rf"\.{name}\.(\d+)\.{host}\.replaced")
    left = []
    for aside in sorted(folder.parent.glob(".*.replaced")):
        match = pattern.fullmatch(aside.name)
        if match is None or _is_alive(int(match[1])):
            continue
        try:
            if folder.exists():
                left.append(aside)
            else:
                aside.rename(folder)
        except OSError:
            left.append(aside)
    return left


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
