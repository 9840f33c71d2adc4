"""The keys of the runs in a store, read from each part once in a process: parts never change.

Must never know what a run is.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from pathlib import Path

from fullpipe.sweep.tables import read

_KNOWN: dict[Path, KnownKeys] = {}


class KnownKeys:
    """The keys of the parts that were there at the last look."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, list[str]] = {}
        self._keys: set[str] = set()

    def refreshed(self, parts: Sequence[Path]) -> Set[str]:
        """The keys of exactly these parts. Raises UserError for a damaged one."""
        named = {_version(part / "runs.parquet"): part / "runs.parquet" for part in parts}
        new = {
            version: read(file, "runs", ["key"])["key"].to_pylist()
            for version, file in named.items() if version not in self._parts
        }  # fmt: skip
        gone = self._parts.keys() - named.keys()
        self._parts |= new
        if gone:
            self._parts = {version: self._parts[version] for version in named}
            self._keys = set().union(*self._parts.values())
        else:
            self._keys.update(*new.values())
        return self._keys


def _version(file: Path) -> Hashable:
    try:
        about = file.stat()
    except OSError:
        return file, None  # reading it says what is wrong
    return file, about.st_mtime_ns, about.st_size


def known_keys(folder: Path) -> KnownKeys:
    """What this process knows of the store in a folder."""
    return _KNOWN.setdefault(folder.absolute(), KnownKeys())
