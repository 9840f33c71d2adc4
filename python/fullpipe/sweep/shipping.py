"""Groups of cells for machines that do not see the store: plans out, a small store back.

The far side runs the group as any worker does, into a store of its own, and sends that. Knows no
cluster.
"""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fullpipe.base.errors import RunError
from fullpipe.base.scratch import scratch
from fullpipe.sweep.runs import Run
from fullpipe.sweep.schedule import Failure
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import read_part
from fullpipe.sweep.worker import Cells


@dataclass(frozen=True)
class Delivery:
    """What a group gave: the parts and recordings of a store as a zip archive, and its failures."""

    archive: bytes
    failures: list[Failure]


def execute(cells: Cells, runs: Sequence[Run]) -> Delivery:
    """Runs a group on a machine without the store."""
    with scratch("fullpipe-shipment-") as folder:
        store = Store(folder / "store", create=True)
        failures = replace(cells, store=store.folder)(runs)
        archive = io.BytesIO()
        # Not compressed: the tables in a store are.
        with zipfile.ZipFile(archive, "w") as bundle:
            for name in ("parts", "recordings"):
                for path in sorted((store.folder / name).rglob("*")):
                    bundle.write(path, path.relative_to(store.folder))
    return Delivery(archive.getvalue(), failures)


def accept(cells: Cells, delivery: Delivery) -> list[Failure]:
    """Adds a delivery to the store; returns its failures.

    Raises RunError where the archive holds what no store does."""
    store = Store(cells.store)
    folder = store.workplace()
    # Zip, because it extracts nothing outside `place` in any Python: Debian 12's tarfile (3.11.2)
    # lacks the filters for that.
    with zipfile.ZipFile(io.BytesIO(delivery.archive)) as bundle:
        bundle.extractall(folder)
    recordings = {recording.name: recording for recording in folder.glob("recordings/*/*")}
    for part in folder.glob("parts/*"):
        tables = read_part(part)
        if not set(tables["runs"]["key"].to_pylist()) >= set(recordings):
            raise RunError("a worker sent recordings of runs that it did not do")
        store.write(tables, recordings)
    shutil.rmtree(folder, ignore_errors=True)
    return delivery.failures
