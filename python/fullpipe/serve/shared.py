"""Answers about a store as JSON, cached until the store changes and shared by all pages.

Ten pages that watch one sweep cost as much as one. Must never know what an answer says.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from fullpipe.plots.plotly_renderer import as_json

#: The most cached answers for one state of the store.
_KEPT = 64
#: The state of a store: names, times and sizes of its files.
_Version = tuple[Hashable, ...]


class Shared:
    """The answers about a sweep (`listing.chosen`) of one store. `folder` may be no store, and
    become one."""

    def __init__(self, folder: Path, sweep: str | None = None) -> None:
        self.folder = folder
        self.sweep = sweep
        self._lock = threading.Lock()
        self._version: _Version = ()
        self._answers: dict[Hashable, Future[str]] = {}

    def answer(self, question: Hashable, work: Callable[[], Any]) -> str:
        """The result of `work` for this question as JSON. Concurrent callers wait for the same
        answer. Exceptions are not cached."""
        version = _version(self.folder)
        with self._lock:
            if version != self._version or len(self._answers) >= _KEPT:
                self._version, self._answers = version, {}
            cached = self._answers.get(question)
            if cached is None:
                pending: Future[str] = Future()
                self._answers[question] = pending
        if cached is not None:
            return cached.result()
        try:
            text = as_json(work())
        except BaseException as error:
            with self._lock:
                if self._answers.get(question) is pending:
                    del self._answers[question]
            pending.set_exception(error)
            raise
        pending.set_result(text)
        return text


def _version(folder: Path) -> _Version:
    """Parts are written under another name and then renamed, so their names identify them; files of
    sweeps are replaced."""
    files: list[Hashable] = []
    for name in ("store.json", "sweeps.json", "sweeps", "parts"):
        try:
            with os.scandir(folder / name) as entries:
                for entry in entries:
                    about = entry.stat() if name == "sweeps" else None
                    facts = (about.st_mtime_ns, about.st_size) if about else ()
                    files.append((name, entry.name, *facts))
        except NotADirectoryError:
            files.append((name, (folder / name).stat().st_mtime_ns))
        except OSError as error:
            files.append((name, error.errno))
    return tuple(sorted(files, key=repr))
