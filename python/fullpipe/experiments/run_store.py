"""The store of experiments: a store of sweeps with the values that entries measure in each run.

Runs have the keys of sweeps, so an experiment and a sweep share equal runs, and a new build repeats
only the runs that its changes affect. This module must not know entries.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fullpipe import _native, metrics
from fullpipe.base.errors import UserError
from fullpipe.engines.assets import objects_folder
from fullpipe.engines.base import engine
from fullpipe.experiments import measure, metric_functions, series
from fullpipe.recording import checksums
from fullpipe.recording.recording import Recording
from fullpipe.sweep.cells import Cell, asked
from fullpipe.sweep.measures import Rows, recorded
from fullpipe.sweep.runs import Run
from fullpipe.sweep.store import Store as Tables
from fullpipe.sweep.store import cached_store
from fullpipe.sweep.tables import EXTRA, damaged


@dataclass(frozen=True)
class StoredRun:
    """A run in the store. `metrics`: expression -> value; `unsettled`: as the store's column."""

    seed: int
    metrics: dict[str, float]
    distributions: dict[str, list[float]]
    problems: list[str] = field(default_factory=list)
    unsettled: str = ""


@dataclass(frozen=True)
class Measured:
    """A run that has ended. `expressions`: those to measure; `keep`: whether its recording
    stays."""

    key: str
    recording: Recording
    expressions: Mapping[str, str]
    keep: bool


class Store:
    """Runs in a folder, which is created by the first write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index: _Index | None = None

    def key(self, run: Run) -> str:
        """The key under which a run is stored."""
        return run.facts.key

    def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
        """The run with the values of these expressions; None if the store lacks it. Values that are
        missing are measured from its recording, if that was kept.

        Raises UserError if a file of the store is damaged."""
        index = self._loaded_index()
        run = index.runs.get(key)
        values = index.values.get(key, {})
        lacking = [text for text in expressions.values() if text not in values]
        if run is None:
            return None
        if not values or lacking:
            if not self._measure_again(key, [*values, *lacking]):
                return None
            values = index.values[key]
        seed, problems, unsettled = run
        spread = index.distributions_of(key)
        return StoredRun(seed, values, spread, [problems] if problems else [], unsettled)

    def write(self, runs: Sequence[Measured]) -> None:
        """Measures these runs and adds them in one write."""
        rows = Rows()
        for run in runs:
            rows.add(*recorded(run.key, run.recording))
        extra = _extra({run.key: (run.recording, [*run.expressions.values()]) for run in runs})
        recordings = {run.key: run.recording.path for run in runs if run.keep}
        self._tables.write({**rows.take(), **extra}, recordings)

    def write_cells(
        self, name: str, cells: Sequence[Cell], scenarios: Sequence[Mapping[str, Any]], add: bool
    ) -> None:
        """Stores the axes, run keys and scenario of each cell of an experiment (`name`), for
        `query`, `plot` and `serve`. `add`: keep its other cells."""
        if not cells:
            return  # A table without rows has no types that later ones could agree with.
        tables, rows = self._tables, asked(cells)
        before = tables.sweeps().get(name) if add else None
        if before is not None:
            new_keys = pa.array(rows.column("key").to_pylist(), pa.string())
            others = before.filter(pc.invert(pc.is_in(before.column("key"), new_keys)))
            rows = pa.concat_tables([rows, others], promote_options="permissive")
        tables.write_sweep(name, rows, None)
        numbers = (cell.index for cell in cells)
        tables.write_scenarios(name, dict(zip(numbers, scenarios, strict=True)))

    def refresh(self) -> None:
        """Compacts the store and rereads what other processes wrote."""
        self._tables.compact()
        self._tables.leave()
        self._index = None

    def prepare(self) -> list[str]:
        """Creates the folder if it is missing, and sets damaged files aside; gives a sentence for
        each. Raises UserError if it cannot be written."""
        try:
            return self._tables.mend()
        except UserError as error:
            raise UserError(f"--store {error}") from None

    def workplace(self) -> Path:
        """The path of a new folder for recordings in progress."""
        return self._tables.workplace()

    def read_fact(self, kind: str, key: str) -> Any:
        """A stored document, such as a model's prediction; None if it is missing. Raises UserError
        if it is damaged."""
        file = self.folder / kind / f"{key}.json"
        try:
            document = checksums.unsealed(file, checksums.read_text(file))
        except OSError:
            return None
        except ValueError as error:
            raise damaged(file, str(error)) from None
        return document.get("fact", document)

    def write_fact(self, kind: str, key: str, document: Any) -> None:
        """Stores a document."""
        self._tables.write_fact(kind, key, document)

    @functools.cached_property
    def _tables(self) -> Tables:
        return Tables(self.folder, create=True)

    def _loaded_index(self) -> _Index:
        if self._index is None:
            exists = (self.folder / "store.json").exists()
            self._index = _Index(Tables(self.folder) if exists else None)
        return self._index

    def _measure_again(self, key: str, expressions: Sequence[str]) -> bool:
        """Measures these expressions from the kept recording; False if there is none."""
        tables = self._tables
        path = tables.recording(key)
        if not path.is_dir():
            return False
        extra = _extra({key: (Recording.open(path), expressions)})
        tables.write(extra)
        self._loaded_index().add(extra)
        return True


class _Index:
    """The runs and values of a store, by key."""

    def __init__(self, tables: Tables | None) -> None:
        #: Key -> seed, problems, what had not settled.
        self.runs: dict[str, tuple[int, str, str]] = {}
        #: Key -> expression -> value, of the current version of the metrics.
        self.values: dict[str, dict[str, float]] = {}
        self._spread: dict[str, dict[str, pa.ListScalar]] = {}
        if tables is not None:
            runs = tables.table("runs")
            names = ("key", "seed", "problems", "unsettled")
            columns = (runs.column(name).to_pylist() for name in names)
            self.runs = {
                key: (seed, problems, unsettled or "")
                for key, seed, problems, unsettled in zip(*columns, strict=True)
            }
            self.add({name: tables.table(name) for name in EXTRA})

    def add(self, extra: Mapping[str, pa.Table]) -> None:
        """Adds rows of EXTRA."""
        today = metrics_version()
        columns = [extra["values"].column(name).to_pylist() for name in EXTRA["values"].names]
        for key, name, version, value in zip(*columns, strict=True):
            if version == today:
                self.values.setdefault(key, {})[name] = math.nan if value is None else value
        spread = extra["distributions"]
        names = [spread.column(name).to_pylist() for name in ("key", "name", "version")]
        for key, name, version, values in zip(*names, spread.column("values"), strict=True):
            if version == today:
                self._spread.setdefault(key, {})[name] = values

    def distributions_of(self, key: str) -> dict[str, list[float]]:
        """Name -> values."""
        return {name: values.as_py() for name, values in self._spread.get(key, {}).items()}


def _extra(runs: Mapping[str, tuple[Recording, Sequence[str]]]) -> dict[str, pa.Table]:
    """The rows of EXTRA for runs: key -> recording and expressions."""
    version = metrics_version()
    values: list[tuple[Any, ...]] = []
    spread: list[tuple[Any, ...]] = []
    for key, (recording, expressions) in runs.items():
        measured = measure.measure({text: text for text in expressions}, recording)
        values += [(key, text, version, value) for text, value in measured.items()]
        named = measure.distributions(recording)
        spread += [(key, name, version, numbers) for name, numbers in named.items()]
    return {
        "values": _table("values", values),
        "distributions": _table("distributions", spread),
    }


def _table(name: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    schema = EXTRA[name]
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema=schema)


def default_store() -> Path:
    """The store of the catalogue's runs in the user's cache."""
    return cached_store("catalogue")


@functools.cache
def code_version(engine_name: str) -> str:
    """A hash of the code that decides an engine's results: of the compiled module for the
    simulator, of the agent and the eBPF objects for the kernel engines, and of the engine's own
    `code_version()` if it has one."""
    files = [Path(_native.__file__)] if engine_name == "sim" else sorted(objects_folder().glob("*"))
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()]
    engine_version = getattr(engine(engine_name), "code_version", None)
    digests.append(engine_version() if engine_version else "")
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


@functools.cache
def metrics_version() -> str:
    """A hash of the sources that turn a recording into numbers."""
    folder = Path(metrics.__file__).parent
    modules = [measure.__file__, metric_functions.__file__, series.__file__]
    files = [*sorted(folder.glob("*.py")), *map(Path, modules)]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
