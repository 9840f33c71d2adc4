"""The keys of the runs in a store, read from each part once in a process: parts never change, so a
look costs a list of their names. Must never know what a run is.
"""

from __future__ import annotations

import os
from collections.abc import Set
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.sweep.tables import read

_READ: dict[Path, StoredKeys] = {}


class StoredKeys:
    """The keys in a folder of parts, as far as it has been read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parts: dict[str, list[str]] = {}
        self._keys: set[str] = set()

    def now(self) -> Set[str]:
        """All keys; those of parts that a compacted one replaces are that one's too. Raises
        UserError for a damaged part, OSError where there is no folder."""
        while True:
            with os.scandir(self._folder) as entries:
                names = {entry.name for entry in entries if entry.is_dir()}
            try:
                new = {name: _keys_of(self._folder / name) for name in names - self._parts.keys()}
                break
            except UserError:
                if all((self._folder / name).is_dir() for name in names):
                    raise  # else another program has compacted the store meanwhile
        gone = self._parts.keys() - names
        for name in gone:
            del self._parts[name]
        self._parts |= new
        if gone:
            self._keys = set()
        self._keys.update(*(self._parts if gone else new).values())
        return self._keys


def stored_keys(parts: Path) -> StoredKeys:
    """What this process has read of a store's folder of parts."""
    folder = parts.absolute()
    if folder not in _READ:
        _READ[folder] = StoredKeys(folder)
    return _READ[folder]


def forget(parts: Path) -> None:
    """Has all parts read again: somebody may have damaged one since."""
    _READ.pop(parts.absolute(), None)


def _keys_of(part: Path) -> list[str]:
    keys: list[str] = read(part / "runs.parquet", "runs", ["key"])["key"].to_pylist()
    return keys
