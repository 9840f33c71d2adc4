"""The store in which scorecards, conformance and `ci` keep their runs."""

from __future__ import annotations

from pathlib import Path

from fullpipe.cli.output import message
from fullpipe.sweep.store import Store, cached_store


def kept_runs(folder: Path | None) -> Store:
    """The store in `folder`; without one that of the user's cache. Says which of its files are
    damaged, or of a program with other columns, and sets them aside: what they held runs again."""
    runs = Store(folder or cached_store("scorecards"), create=True)
    for sentence in runs.mend():
        message(sentence)
    return runs
