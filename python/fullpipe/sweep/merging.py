"""Merges shards: the parts of several stores in one, checked.

Copying the folders by hand does the same; this also reports what is damaged or missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import read_part


@dataclass(frozen=True)
class Merged:
    """Runs in the store afterwards, and those that its sweeps ask for and that are missing."""

    runs: int
    missing: int


def merge(target: Path, sources: Sequence[Path]) -> Merged:
    """Adds what the sources hold to the target, which is created if it is missing.

    Raises UserError before anything is copied if a source is no store, is damaged, or has another
    format."""
    stores = [Store(source) for source in sources]
    for store in stores:
        if store.folder.resolve() == target.resolve():
            raise UserError(f"sweep merge: {target} is a source and the target")
        store.sweeps()
        for part in store.parts():
            read_part(part)
    result = Store(target, create=True)
    for store in stores:
        sweeps = store.sweeps()
        for name, title in store.listing():
            rows, present = sweeps[name], result.sweeps().get(name)
            if present is None or present.num_rows < rows.num_rows:
                result.write_sweep(name, rows, store.document(name), title)
                if scenarios := store.scenarios(name):
                    result.write_scenarios(
                        name, {int(key): scenario for key, scenario in scenarios.items()}
                    )
        for part in store.parts():
            result.write(read_part(part))
        for recording in store.folder.glob("recordings/*/*"):
            folder = result.recording(recording.name)
            if not folder.exists():
                partial = result.workplace()
                shutil.copytree(recording, partial)
                folder.parent.mkdir(parents=True, exist_ok=True)
                partial.rename(folder)
    result.compact()
    result.leave()
    stored = result.keys()
    asked = {key for rows in result.sweeps().values() for key in rows.column("key").to_pylist()}
    return Merged(len(stored), len(asked - stored))
