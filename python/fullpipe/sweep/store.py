"""Where results of sweeps are kept: a folder of Parquet tables that any tool reads.

```
store.json               format and program
sweeps.json              names of the sweeps, the newest at the end
sweeps/ID.parquet        one row a run that a sweep asks for: its cell, axes, seed, key
sweeps/ID.toml           the sweep's file
sweeps/ID.json           of experiments, which have none: their cells' scenarios, by number
parts/ID/*.parquet       rows of runs (`runs`, `flows`, `path`), written by one worker at once;
                         those of pages, streams, probes and groups (`applications`); what
                         experiments measure besides (`values`, `distributions`)
predictions/KEY.json     what models predicted for a plan of an experiment
recordings/KK/KEY/       recordings, if they are kept
work/                    what is being written
damaged/                 files that `mend` set aside
checksums.json           of each part; sweeps/ID.checksums.json of each sweep
```

A part is written aside and renamed, so a run is stored completely or not at all, even if the
program is killed. Several programs may write at once; a run that is there already is dropped, so a
key is in a store once. `compact` makes one part of many, in the
order of keys: the same runs then give the same bytes. Never knows what a sweep is for.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

import fullpipe
from fullpipe.base.cache import user_cache
from fullpipe.base.columns import empty
from fullpipe.base.errors import UserError
from fullpipe.base.supplied import open_lock
from fullpipe.recording import checksums
from fullpipe.recording.parquet import write_parquet
from fullpipe.recording.recording import RecordingError, verify_recording
from fullpipe.sweep import leases, listing, workplaces
from fullpipe.sweep.stored_keys import forget, stored_keys
from fullpipe.sweep.tables import EXTRA, SCHEMAS, damaged, read, read_part, unique_rows, verify

T = TypeVar("T")

#: 2: other metrics of runs whose flows come late or end and of links whose rate changes.
FORMAT = 2
#: The columns that identify a row.
IDENTITY = {
    "runs": ["key"],
    "flows": ["key", "flow_id"],
    "path": ["key"],
    "applications": ["key", "kind", "name", "figure"],
    "values": ["key", "name", "version"],
    "distributions": ["key", "name", "version"],
}
_REPLACES = "replaces.json"
#: Files that are locked while something is written.
_LOCKS = (".compacting", ".adding", ".listing", leases.FILE)
_ABOUT = frozenset({"format", "fullpipe_version"})


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
        self._is_new = create and not about.exists()
        self._is_new_folder = not folder.exists()
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder}: is a file; name a folder")
        if self._is_new:
            with self._writing():
                if folder.exists() and not _is_begun(folder):
                    raise UserError(f"{folder}: is not empty and no store; name another with --out")
                (folder / "parts").mkdir(parents=True, exist_ok=True)
                (folder / "sweeps").mkdir(exist_ok=True)
                self._write_about()
        try:
            document = checksums.unsealed(about, checksums.read_text(about))
            if not document.keys() <= _ABOUT:
                raise checksums.DamagedError(about)
            version = document["format"]
        except FileNotFoundError:
            raise UserError(f"{folder}: no store of sweeps, it has no store.json") from None
        except OSError as error:
            raise UserError(f"{about}: cannot be read: {error.strerror}") from None
        except (ValueError, KeyError) as error:
            raise UserError(
                f"{about}: damaged ({error}). To repair it, write exactly this line into it: "
                f"{checksums.sealed(self._about())}"
            ) from None
        if version != FORMAT:
            raise UserError(
                f"{about}: format is {version!r}, this program reads {FORMAT}; an older fullpipe "
                "(run its sweeps into another folder) or a newer one wrote it"
            )
        if create:
            with self._writing():
                workplaces.remove_left(folder / "work")
            self._check_writable()

    def keys(self) -> Set[str]:
        """Keys of the runs that are there, read again. Raises UserError for a damaged file."""
        forget(self.folder / "parts")
        return self.keys_now()

    def keys_now(self) -> Set[str]:
        """The same, of which only parts that this process has not read yet are read."""
        try:
            return stored_keys(self.folder / "parts").now()
        except OSError as error:
            raise UserError(f"{self.folder}/parts: cannot be read: {error.strerror}") from None

    def parts(self) -> list[Path]:
        """Folders of rows, without those that a compacted one replaces."""
        return self.settled(list)

    def table(self, name: str) -> pa.Table:
        """All rows of a table of SCHEMAS or EXTRA. Raises UserError for a damaged file."""
        return self.settled(lambda parts: _rows(name, parts))

    def settled(self, read_parts: Callable[[list[Path]], T]) -> T:
        """What a function makes of the parts; once more where another program compacted the store
        meanwhile. Raises UserError for a damaged file."""
        while True:
            folders = self._folders()
            try:
                replaced: set[str] = set()
                for part in folders:
                    replaced.update(_replaced_by(part))
                return read_parts([part for part in folders if part.name not in replaced])
            except UserError:
                if all(part.is_dir() for part in folders):
                    raise

    def write(
        self, tables: Mapping[str, pa.Table], recordings: Mapping[str, Path] | None = None
    ) -> None:
        """Adds rows of SCHEMAS for complete runs, and of EXTRA for these or for stored runs. Those
        of runs that another program has stored meanwhile are dropped.

        Moves recordings (key -> folder in `workplace()`) first, so that every row of a run that is
        kept has its recording."""
        with self._writing():
            every = self._complete(tables)
            with self._written(every) as partial, self._locked(".adding"):
                new = self._without_stored(every)
                self._keep(recordings or {})
                if new["runs"].num_rows == every["runs"].num_rows:
                    self._add(partial, every)
                else:
                    with self._written(new) as again:
                        self._add(again, new)

    def recording(self, key: str) -> Path:
        """The folder of a run's recording, if it was kept."""
        return self.folder / "recordings" / key[:2] / key

    def workplace(self) -> Path:
        """A folder that does not exist yet, for what is being written."""
        return workplaces.of_this_process(self.folder / "work") / os.urandom(6).hex()

    def write_sweep(
        self, name: str, rows: pa.Table, document: str | None, title: str | None = None
    ) -> None:
        """Stores what a sweep asks for, and its file if it has one; replaces an earlier answer of
        the same sweep. It becomes the newest. `title`: what its user calls it, if not `name`."""
        with self._writing():
            if document is not None:
                with self._listed(f"{name}.toml") as partial:
                    partial.write_text(document, encoding="utf-8")
            with self._listed(f"{name}.parquet") as partial:
                write_parquet(rows, partial)
            with self._locked(".listing"):
                older = [sweep for sweep in self.listing() if sweep.id != name]
                newest = listing.Listed(name, title or name)
                self.write_text(self.folder / listing.FILE, listing.text_of([*older, newest]))

    def listing(self) -> list[listing.Listed]:
        """The sweeps in the order in which they were last asked for. Raises UserError where their
        list is damaged."""
        try:
            return listing.read_list(self.folder, self.sweep_files().values())
        except checksums.DamagedError as error:
            raise damaged(error.file, str(error)) from None
        except OSError as error:
            file = self.folder / listing.FILE
            raise UserError(f"{file}: cannot be read: {error.strerror}") from None

    def sweeps(self) -> dict[str, pa.Table]:
        """What each sweep asks for. Raises UserError for a damaged file."""
        return {name: read(file) for name, file in self.sweep_files().items()}

    def sweep_files(self) -> dict[str, Path]:
        """The files of `sweeps`."""
        files = sorted((self.folder / "sweeps").glob("[!.]*.parquet"))
        return {file.stem: file for file in files}

    def document(self, name: str) -> str | None:
        """The file of a sweep as TOML; None if it is missing. Raises UserError for a damaged
        one."""
        return _text_of(self.folder / "sweeps" / f"{name}.toml")

    def write_scenarios(self, name: str, scenarios: Mapping[int, Mapping[str, Any]]) -> None:
        """Adds the scenarios of cells (number -> document) of a sweep without a file."""
        with self._writing():
            every = {
                **self.scenarios(name),
                **{str(cell): scenario for cell, scenario in scenarios.items()},
            }
            with self._listed(f"{name}.json") as partial:
                partial.write_text(json.dumps(every) + "\n", encoding="utf-8")

    def scenarios(self, name: str) -> dict[str, Any]:
        """The scenarios that `write_scenarios` stored, by their cells' numbers as text. Raises
        UserError for a damaged file."""
        file = self.folder / "sweeps" / f"{name}.json"
        text = _text_of(file)
        try:
            document = json.loads(text or "{}")
        except (ValueError, RecursionError) as error:
            raise damaged(file, str(error)) from None
        return document if isinstance(document, dict) else {}

    def write_fact(self, kind: str, key: str, document: Any) -> None:
        """Stores a small document, such as a model's prediction."""
        with self._writing():
            self.write_text(
                self.folder / kind / f"{key}.json", checksums.sealed({"fact": document})
            )

    def mend(self) -> list[str]:
        """Sets damaged files aside, into `damaged/`; gives a sentence for each. What they held is
        then missing, and runs again."""
        repairs: list[str] = []
        with self._writing():
            for part in self._folders():
                try:
                    repairs += self._mended(part)
                except FileNotFoundError:
                    if part.exists():
                        raise
            for file in sorted((self.folder / "sweeps").glob("[!.]*")):
                damage = _damage(file) if file.exists() else None
                if damage is not None:
                    repairs.append(self._set_aside(file, damage))
                    if damage.file != file:  # the list of its checksums
                        self._set_aside(damage.file, damage)
            try:
                self.listing()
            except UserError:
                names = self.folder / listing.FILE
                repairs.append(self._set_aside(names, checksums.DamagedError(names)))
            for file in sorted(self.folder.glob("predictions/[!.]*.json")):
                if (damage := _damaged_fact(file)) is not None:
                    repairs.append(self._set_aside(file, damage))
            for recording in sorted(self.folder.glob("recordings/*/*")):
                try:
                    verify_recording(recording)
                except RecordingError as error:
                    repairs.append(self._set_aside(recording, error))
        return repairs

    def withdraw(self) -> None:
        """Removes the store if this object made it and nothing was stored."""
        if self._is_new and not self._holds():
            workplaces.leave(self.folder / "work")
            for name in ("store.json", *_LOCKS):
                (self.folder / name).unlink(missing_ok=True)
            for name in ("parts", "sweeps", "work", *(["."] if self._is_new_folder else [])):
                with contextlib.suppress(OSError):
                    (self.folder / name).rmdir()

    def leave(self) -> None:
        """Removes this process's folder for what is being written, and those of killed ones."""
        with self._writing():
            workplaces.leave(self.folder / "work")
            workplaces.remove_left(self.folder / "work")

    def compact(self) -> None:
        """Makes one part of all, in the order of keys, each run once."""
        with self._writing(), self._locked(".compacting"):
            parts = self.parts()
            self._remove_replaced()
            if not parts or (len(parts) == 1 and (parts[0] / _REPLACES).exists()):
                return
            rows = {name: unique_rows(_rows(name, parts), IDENTITY[name]) for name in IDENTITY}
            with self._written(rows, [part.name for part in parts]) as partial:
                self._add(partial, rows)
            self._remove_replaced()

    def write_text(self, path: Path, text: str) -> None:
        """Writes a small file, completely or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._whole(path) as partial:
            partial.write_text(text, encoding="utf-8")

    def _keep(self, recordings: Mapping[str, Path]) -> None:
        for key, recording in recordings.items():
            folder = self.recording(key)
            folder.parent.mkdir(parents=True, exist_ok=True)
            self._remove(folder)
            recording.rename(folder)

    def _complete(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Every table of SCHEMAS and EXTRA, empty where there are no rows."""
        schemas = {**SCHEMAS, **EXTRA}
        return {name: tables.get(name, empty(schema)) for name, schema in schemas.items()}

    def _without_stored(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables of SCHEMAS without runs that are stored, and those of EXTRA."""
        stored = self.keys_now()
        made = dict(tables)
        for name in SCHEMAS:
            is_new = [key not in stored for key in tables[name]["key"].to_pylist()]
            if not all(is_new):
                made[name] = tables[name].filter(pa.array(is_new, pa.bool_()))
        return made

    @contextlib.contextmanager
    def _written(
        self, tables: Mapping[str, pa.Table], replaces: Sequence[str] = ()
    ) -> Iterator[Path]:
        """A part beside the others, until the block ends. It has every table of SCHEMAS, and those
        of EXTRA that have rows."""
        partial = self.workplace()
        try:
            partial.mkdir()
            for name, rows in tables.items():
                if name in SCHEMAS or rows.num_rows:
                    write_parquet(rows, partial / f"{name}.parquet")
            if replaces:
                (partial / _REPLACES).write_text(json.dumps(replaces), encoding="utf-8")
            checksums.seal(partial, [file.name for file in partial.iterdir()])
            yield partial
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _add(self, partial: Path, tables: Mapping[str, pa.Table]) -> None:
        """Moves a part with these tables to the others, if one has rows: completely or not at
        all."""
        if any(rows.num_rows for rows in tables.values()):
            partial.rename(self.folder / "parts" / partial.name)

    def _remove_replaced(self) -> None:
        current = {part.name for part in self.parts()}
        for part in self._folders():
            if part.name not in current:
                self._remove(part)

    def _remove(self, folder: Path) -> None:
        """Removes a folder, if it is there: a kill leaves it whole or gone."""
        aside = self.workplace()
        with contextlib.suppress(OSError):
            folder.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)

    def _folders(self) -> list[Path]:
        """All folders in `parts`."""
        try:
            return sorted(path for path in (self.folder / "parts").iterdir() if path.is_dir())
        except OSError as error:
            raise UserError(f"{self.folder}/parts: cannot be read: {error.strerror}") from None

    def _mended(self, part: Path) -> list[str]:
        """Sets a damaged part aside; only its list of replaced parts, where that is damaged: while
        they are there, runs are in the store twice, and `compact` keeps one."""
        files = sorted(part.iterdir())
        damage = next(filter(None, map(_damage, files)), None)
        if damage is None:
            gone = checksums.listed_names(part / checksums.FILE) - {file.name for file in files}
            damage = next(
                (checksums.DamagedError(part / name, "is missing") for name in gone), None
            )
        if damage is None:
            try:
                read_part(part)  # an earlier program's has no list of checksums
            except UserError as error:
                return [self._set_aside(part, error)] if part.exists() else []
            return []
        if damage.file.name == _REPLACES and not any(
            _damage(file) for file in part.iterdir() if file.name != _REPLACES
        ):
            sentence = self._set_aside(damage.file, damage)
            names = [file.name for file in part.iterdir() if file.name != checksums.FILE]
            checksums.seal(part, names)
            return [sentence]
        return [self._set_aside(part, damage)] if part.exists() else []

    def _set_aside(self, damaged: Path, error: Exception) -> str:
        target = (
            self.folder / "damaged" / f"{damaged.parent.name}-{damaged.name}-{os.urandom(3).hex()}"
        )
        target.parent.mkdir(exist_ok=True)
        damaged.rename(target)
        file = getattr(error, "file", damaged)
        return f"{file}: damaged: {error}; {target} has it now, and what it held runs again"

    def _about(self) -> dict[str, Any]:
        return {"format": FORMAT, "fullpipe_version": fullpipe.__version__}

    def _write_about(self) -> None:
        self.write_text(self.folder / "store.json", checksums.sealed(self._about()) + "\n")

    @contextlib.contextmanager
    def _listed(self, name: str) -> Iterator[Path]:
        """A file of `sweeps` to write, which replaces another when it is complete; its checksum is
        listed just before. One program at a time does this."""
        file = self.folder / "sweeps" / name
        with self._locked(".listing"), self._whole(file) as partial:
            yield partial
            self.write_text(checksums.manifest_of(file), checksums.announced(file, partial))
            partial.replace(file)

    @contextlib.contextmanager
    def _whole(self, path: Path) -> Iterator[Path]:
        """A file to write, which replaces another when it is complete."""
        partial = self.workplace()
        try:
            yield partial
            if partial.exists():
                partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Does the block while no other program does one of this name. A program that is killed
        gives its lock up."""
        with open_lock(self.folder / name) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            continues = "" if self._is_new and not self._holds() else leases.CONTINUES
            raise UserError(
                f"{self.folder}: cannot be written: {error.strerror or error}{continues}"
            ) from None

    def _holds(self) -> bool:
        """Whether anything is stored."""
        parts = self.folder / "parts"
        return bool(self.sweep_files()) or (parts.is_dir() and bool(self._folders()))

    def _check_writable(self) -> None:
        with self._writing():
            folder = self.workplace()
            folder.mkdir()
            folder.rmdir()


def _rows(name: str, parts: Sequence[Path]) -> pa.Table:
    """The rows of a table of SCHEMAS or EXTRA in these parts."""
    files = [part / f"{name}.parquet" for part in parts]
    tables = [read(file, name) for file in files if name in SCHEMAS or file.exists()]
    return pa.concat_tables([empty({**SCHEMAS, **EXTRA}[name]), *tables])


def _is_begun(folder: Path) -> bool:
    """Whether a folder holds nothing, or what a program that ended while it made a store left."""
    empty = [folder / "parts", folder / "sweeps"]
    return all(
        path == folder / "work" or (path in empty and path.is_dir() and not any(path.iterdir()))
        for path in folder.iterdir()
    )


def _replaced_by(part: Path) -> list[str]:
    """The parts that a compacted one replaces. Raises UserError where their list is damaged."""
    file = part / _REPLACES
    text = _text_of(file)
    try:
        return [str(name) for name in json.loads(text or "[]")]
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(file, str(error)) from None


def _text_of(file: Path) -> str | None:
    """A small file of a store; None if it is missing. Raises UserError for a damaged one."""
    if not file.exists():
        return None
    verify(file)
    try:
        return checksums.read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise damaged(file, str(error)) from None


def _damage(file: Path) -> checksums.DamagedError | None:
    """What is wrong with a file, by its checksum."""
    try:
        checksums.verify(file)
        if file.name.endswith(checksums.FILE):
            checksums.listed_names(file)
    except checksums.DamagedError as error:
        return error
    except FileNotFoundError:  # another program compacts the store
        return None
    return None


def _damaged_fact(file: Path) -> checksums.DamagedError | None:
    try:
        checksums.unsealed(file, checksums.read_text(file))
    except UnicodeDecodeError:
        return checksums.DamagedError(file)
    except checksums.DamagedError as error:
        return error
    return None
