"""Recordings that make room for new ones, and come back if there are none. Must never know what
writes them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fullpipe.base.errors import UserError


@contextmanager
def replaced(folder: Path) -> Iterator[None]:
    """Moves a recording, or a folder of runs, aside while the block runs. Afterwards it is deleted
    if something new has its place, and moved back if not.

    Raises UserError if the folder is anything else, or cannot be moved."""
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


def _is_recording(folder: Path) -> bool:
    return (folder / "metadata.json").is_file()
