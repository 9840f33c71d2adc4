"""Where results of sweeps are kept: a folder of Parquet tables that any tool reads.

```
store.json               format and program
sweeps/ID.parquet        one row a run that a sweep asks for: its cell, axes, seed, key
sweeps/ID.toml           the sweep's file
sweeps/ID.json           of experiments, which have none: their cells' scenarios, by number
parts/ID/*.parquet       rows of runs (`runs`, `flows`, `path`), written by one worker at once;
                         what experiments measure besides (`values`, `distributions`)
predictions/KEY.json     what models predicted for a plan of an experiment
recordings/KK/KEY/       recordings, if they are kept
work/                    what is being written
```

A part is written aside and renamed, so a run is stored completely or not at all, even if the
program is killed; several programs may write at once. `compact` makes one part of many, in the
order of keys: the same runs then give the same bytes. Never knows what a sweep is for.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import fullpipe
from fullpipe.base.cache import user_cache
from fullpipe.base.columns import empty
from fullpipe.base.errors import UserError
from fullpipe.sweep.tables import EXTRA, SCHEMAS, read, unique_rows, write

#: 2: other metrics of runs whose flows come late or end and of links whose rate changes.
FORMAT = 2
#: The columns that identify a row.
_IDENTITY = {
    "runs": ["key"], "flows": ["key", "flow_id"], "path": ["key"],
    "values": ["key", "name", "version"], "distributions": ["key", "name", "version"],
}  # fmt: skip
_REPLACES = "replaces.json"


def cached_store(name: str) -> Path:
    """The folder of a store in the user's cache."""
    return user_cache() / f"{name}-{FORMAT}"


class Store:
    """A store in a folder, made where there is none and `create` says so."""

    def __init__(self, folder: Path, create: bool = False) -> None:
        """Raises UserError where the folder is no store, is a later program's, or cannot be
        written although `create` asks for it."""
        self.folder = folder
        about = folder / "store.json"
        if create and not about.exists():
            if folder.exists() and any(folder.iterdir()):
                raise UserError(f"{folder}: is not empty and no store; name another with --out")
            with self._writing():
                (folder / "parts").mkdir(parents=True, exist_ok=True)
                (folder / "sweeps").mkdir(exist_ok=True)
                document = {"format": FORMAT, "fullpipe_version": fullpipe.__version__}
                self.write_text(about, json.dumps(document) + "\n")
        try:
            document = json.loads(about.read_text(encoding="utf-8"))
            version = document["format"]
        except FileNotFoundError:
            raise UserError(f"{folder}: no store of sweeps, it has no store.json") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{about}: cannot be read: {error}") from None
        if version != FORMAT:
            raise UserError(
                f"{about}: format is {version!r}, this program reads {FORMAT}; an older fullpipe "
                "(run its sweeps into another folder) or a newer one wrote it"
            )
        if create:
            self._check_writable()

    def known(self) -> set[str]:
        """Keys of the runs that are there."""
        keys: set[str] = set()
        for part in self.parts():
            keys.update(read(part / "runs.parquet", "runs", ["key"])["key"].to_pylist())
        return keys

    def parts(self) -> list[Path]:
        """Folders of rows, without those that a compacted one replaces."""
        found = sorted(path for path in (self.folder / "parts").iterdir() if path.is_dir())
        replaced: set[str] = set()
        for part in found:
            with contextlib.suppress(FileNotFoundError):
                replaced.update(json.loads((part / _REPLACES).read_text(encoding="utf-8")))
        return [part for part in found if part.name not in replaced]

    def table(self, name: str) -> pa.Table:
        """All rows of a table of SCHEMAS or EXTRA. Raises UserError for a damaged file."""
        return _rows(name, self.parts())

    def write(
        self, tables: Mapping[str, pa.Table], recordings: Mapping[str, Path] | None = None
    ) -> None:
        """Adds rows of SCHEMAS for complete runs, and of EXTRA for these or for stored runs.

        Moves recordings (key -> folder in `workplace()`) first, so that every row of a run that is
        kept has its recording."""
        with self._writing():
            self._keep(recordings or {})
            self._add_part(tables)

    def recording(self, key: str) -> Path:
        """The folder of a run's recording, if it was kept."""
        return self.folder / "recordings" / key[:2] / key

    def workplace(self) -> Path:
        """A folder that does not exist yet, for what is being written."""
        (self.folder / "work").mkdir(exist_ok=True)
        return self.folder / "work" / f"{os.getpid()}-{os.urandom(6).hex()}"

    def write_sweep(self, name: str, rows: pa.Table, document: str | None) -> None:
        """Stores what a sweep asks for, and its file if it has one; replaces an earlier answer of
        the same sweep."""
        with self._writing():
            if document is not None:
                self.write_text(self.folder / "sweeps" / f"{name}.toml", document)
            with _whole(self.folder / "sweeps" / f"{name}.parquet") as partial:
                write(rows, partial)

    def sweeps(self) -> dict[str, pa.Table]:
        """What each sweep asks for. Raises UserError for a damaged file."""
        return {name: read(file) for name, file in self.sweep_files().items()}

    def sweep_files(self) -> dict[str, Path]:
        """The files of `sweeps`."""
        found = sorted((self.folder / "sweeps").glob("[!.]*.parquet"))
        return {file.stem: file for file in found}

    def document(self, name: str) -> str | None:
        """The file of a sweep as TOML; None if it is missing."""
        try:
            return (self.folder / "sweeps" / f"{name}.toml").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write_scenarios(self, name: str, scenarios: Mapping[int, Mapping[str, Any]]) -> None:
        """Adds the scenarios of cells (number -> document) of a sweep without a file."""
        with self._writing():
            every = {**self.scenarios(name), **{str(cell): one for cell, one in scenarios.items()}}
            self.write_text(self.folder / "sweeps" / f"{name}.json", json.dumps(every) + "\n")

    def scenarios(self, name: str) -> dict[str, Any]:
        """The scenarios that `write_scenarios` stored, by their cells' numbers as text."""
        try:
            text = (self.folder / "sweeps" / f"{name}.json").read_text(encoding="utf-8")
            found = json.loads(text)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def compact(self) -> None:
        """Makes one part of all, in the order of keys, each run once. Does nothing while another
        program compacts the store."""
        with self._writing(), self._alone() as mine:
            parts = self.parts() if mine else []
            self._remove_replaced()
            if not parts or (len(parts) == 1 and (parts[0] / _REPLACES).exists()):
                return
            rows = {name: unique_rows(_rows(name, parts), _IDENTITY[name]) for name in _IDENTITY}
            self._add_part(rows, replaces=[part.name for part in parts])
            self._remove_replaced()

    def write_text(self, path: Path, text: str) -> None:
        """Writes a small file, completely or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with _whole(path) as partial:
            partial.write_text(text, encoding="utf-8")

    def _keep(self, recordings: Mapping[str, Path]) -> None:
        for key, recording in recordings.items():
            place = self.recording(key)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(place, ignore_errors=True)
            recording.rename(place)

    def _add_part(self, tables: Mapping[str, pa.Table], replaces: Sequence[str] = ()) -> None:
        """Adds a part, completely or not at all. It has every table of SCHEMAS, and those of EXTRA
        that have rows."""
        partial = self.workplace()
        try:
            partial.mkdir()
            for name, schema in {**SCHEMAS, **EXTRA}.items():
                rows = tables.get(name, empty(schema))
                if name in SCHEMAS or rows.num_rows:
                    write(rows, partial / f"{name}.parquet")
            if replaces:
                (partial / _REPLACES).write_text(json.dumps(replaces), encoding="utf-8")
            partial.rename(self.folder / "parts" / partial.name)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _remove_replaced(self) -> None:
        kept = {part.name for part in self.parts()}
        for part in list((self.folder / "parts").iterdir()):
            if part.name not in kept:
                shutil.rmtree(part, ignore_errors=True)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether no other program compacts this store now."""
        with (self.folder / ".compacting").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise UserError(
                f"{self.folder}: cannot be written: {reason}; what is stored is complete, and the "
                "same command continues"
            ) from None

    def _check_writable(self) -> None:
        with self._writing():
            place = self.workplace()
            place.mkdir()
            place.rmdir()


def _rows(name: str, parts: Sequence[Path]) -> pa.Table:
    """The rows of a table of SCHEMAS or EXTRA in these parts."""
    files = [part / f"{name}.parquet" for part in parts]
    found = [read(file, name) for file in files if name in SCHEMAS or file.exists()]
    return pa.concat_tables([empty({**SCHEMAS, **EXTRA}[name]), *found])


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file to write, which replaces another when it is complete."""
    partial = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
