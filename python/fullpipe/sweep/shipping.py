"""Groups of cells for machines that do not see the store: out as plans, back as a small store.

The far side runs the group as any worker does, into a store of its own, and sends that. Knows no
cluster.
"""

from __future__ import annotations

import io
import itertools
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass

from fullpipe.base.errors import RunError
from fullpipe.engines.scratch import scratch
from fullpipe.sweep.schedule import Failure
from fullpipe.sweep.spool import joined, opened
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
    with opened(cells.spool) as pieces:
        spans = dict.fromkeys(span for run in runs for span in (*run.plan, *run.document))
        ends = itertools.accumulate(length for _, length in spans)
        places = {span: (end - span[1], span[1]) for span, end in zip(spans, ends, strict=True)}
        spooled = joined(pieces, list(spans))
    moved = [
        run._replace(
            plan=tuple(places[span] for span in run.plan),
            document=tuple(places[span] for span in run.document),
        )
        for run in runs
    ]
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
