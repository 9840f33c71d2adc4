"""Groups of cells for machines that do not see the store: out as plans, back as a small store.

The far side runs the group as any worker does, into a store of its own, and sends that. Knows no
cluster.
"""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass

from fullpipe.engines.scratch import scratch
from fullpipe.errors import RunError
from fullpipe.sweep.schedule import Failure
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import read_part
from fullpipe.sweep.worker import Cells, Run


@dataclass(frozen=True)
class Shipment:
    """A group on its way: the runs, and what lies in the spool of each."""

    runs: tuple[Run, ...]
    spool: bytes
    engine: str
    options: dict[str, str]
    keep_recordings: bool


@dataclass(frozen=True)
class Delivery:
    """What came of it: the parts and recordings of a store as a zip archive."""

    archive: bytes
    failures: list[Failure]


def pack(cells: Cells, runs: Sequence[Run]) -> Shipment:
    """The group with all that it needs."""
    moved, pieces, offset = [], [], 0
    with cells.spool.open("rb") as spool:
        for run in runs:
            length = run.plan_bytes + run.document_bytes
            spool.seek(run.offset)
            pieces.append(spool.read(length))
            moved.append(run._replace(offset=offset))
            offset += length
    spooled = b"".join(pieces)
    return Shipment(tuple(moved), spooled, cells.engine, cells.options, cells.keep_recordings)


def execute(shipment: Shipment) -> Delivery:
    """Runs a group where no store is."""
    with scratch("fullpipe-shipment-") as folder:
        spool = folder / "plans"
        spool.write_bytes(shipment.spool)
        store = Store(folder / "store", create=True)
        cells = Cells(
            store.folder, spool, shipment.engine, shipment.options, shipment.keep_recordings
        )
        failures = cells(shipment.runs)
        archive = io.BytesIO()
        # Stored, not squeezed: what a store holds is compressed already.
        with zipfile.ZipFile(archive, "w") as bundle:
            for name in ("parts", "recordings"):
                for path in sorted((store.folder / name).rglob("*")):
                    bundle.write(path, path.relative_to(store.folder))
    return Delivery(archive.getvalue(), failures)


def accept(cells: Cells, delivery: Delivery) -> list[Failure]:
    """Adds what came back to the store; gives the failures.

    Raises RunError where the archive holds what no store does."""
    store = Store(cells.store)
    place = store.workplace()
    # Zip, because its extraction stays inside `place` in every Python: Debian 12's tarfile (3.11.2)
    # lacks the filters that would see to it.
    with zipfile.ZipFile(io.BytesIO(delivery.archive)) as bundle:
        bundle.extractall(place)
    recordings = {one.name: one for one in place.glob("recordings/*/*")}
    for part in place.glob("parts/*"):
        asked = set(read_part(part)["runs"].column("key").to_pylist())
        if not asked >= set(recordings):
            raise RunError("a worker sent recordings of runs that it did not do")
        store.adopt(part, recordings)
    shutil.rmtree(place, ignore_errors=True)
    return delivery.failures
