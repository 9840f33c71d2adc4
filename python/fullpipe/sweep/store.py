"""Where results of sweeps are kept: a folder of Parquet tables that any tool reads.

```
store.json               format and program
sweeps/ID.parquet        one row a run that a sweep asks for: its cell, axes, seed, key
sweeps/ID.toml           the sweep's file
sweeps/ID.json           of experiments, which have none: their cells' scenarios, by number
parts/ID/*.parquet       rows of runs (`runs`, `flows`, `path`), written by one worker at once;
                         what experiments measure besides (`values`, `distributions`)
predictions/KEY.json     what models said of a plan that experiments asked them about
recordings/KK/KEY/       where they are kept
work/                    what is being written
```

A part is written aside and renamed, so a run is there whole or not at all, whatever ends the
program; several programs may write at once. `settle` makes one part of many, in the order of keys:
the same runs then lie in the same bytes. Never knows what a sweep is for.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fullpipe
from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.sweep.measures import Columns, Rows

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
#: The tables of parts, each with the columns of which no two of its rows are the same.
_UNIQUE = {"runs": ["key"], "flows": ["key", "flow_id"], "path": ["key"]}
#: Those that a part has where there is something in them: of experiments.
_OF_VALUES = ["key", "name", "version"]
_UNIQUE_EXTRA = {"values": _OF_VALUES, "distributions": _OF_VALUES}
_REPLACES = "replaces.json"


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
                f"{about}: format is {version!r}, this program reads {FORMAT}; "
                "a newer fullpipe may have written it"
            )
        if create:
            self._check_writable()

    def known(self) -> set[str]:
        """Keys of the runs that are there."""
        keys: set[str] = set()
        for part in self.parts():
            with _reading():
                keys.update(_native.store.texts(part / "runs.parquet", "key"))
        return keys

    def parts(self) -> list[Path]:
        """Folders of rows, those left out that a settled one replaces."""
        found = sorted(path for path in (self.folder / "parts").iterdir() if path.is_dir())
        replaced: set[str] = set()
        for part in found:
            with contextlib.suppress(FileNotFoundError):
                replaced.update(json.loads((part / _REPLACES).read_text(encoding="utf-8")))
        return [part for part in found if part.name not in replaced]

    def table(self, name: str) -> pa.Table:
        """All rows of a table of SCHEMAS or EXTRA. Raises UserError for a damaged file."""
        import pyarrow as pa  # no sweep without a rule to stop asks for Arrow

        from fullpipe.base.columns import empty
        from fullpipe.sweep.tables import EXTRA, SCHEMAS, read

        files = [part / f"{name}.parquet" for part in self.parts()]
        found = [read(file) for file in files if name in SCHEMAS or file.exists()]
        return pa.concat_tables([empty({**SCHEMAS, **EXTRA}[name]), *found])

    def write(
        self, rows: Rows, recordings: Mapping[str, Path], extra: Mapping[str, Columns] | None = None
    ) -> None:
        """Adds the rows of whole runs; rows of EXTRA, for these or for runs that are there.

        Moves recordings (key -> folder in `workplace()`) first, so that no row stands without what
        it promises."""

        def fill(part: Path) -> None:
            rows.write(part)
            for name, columns in (extra or {}).items():
                _native.store.write(part / f"{name}.parquet", list(columns.items()), False)

        with self._writing():
            self._keep(recordings)
            self._add_part(fill)

    def recording(self, key: str) -> Path:
        """Where the recording of a run lies, if it was kept."""
        return self.folder / "recordings" / key[:2] / key

    def workplace(self) -> Path:
        """A folder that does not exist yet, for what is being written."""
        (self.folder / "work").mkdir(exist_ok=True)
        return self.folder / "work" / f"{os.getpid()}-{os.urandom(6).hex()}"

    def write_sweep(self, name: str, columns: Columns, document: str | None) -> None:
        """What a sweep asks for, and its file where it has one; replaces an earlier answer of the
        same sweep."""
        with self._writing():
            if document is not None:
                self.write_text(self.folder / "sweeps" / f"{name}.toml", document)
            with _whole(self.folder / "sweeps" / f"{name}.parquet") as partial:
                _native.store.write(partial, list(columns.items()), True)

    def sweeps(self) -> dict[str, pa.Table]:
        """What each sweep asks for. Raises UserError for a damaged file."""
        from fullpipe.sweep.tables import read  # as `table`

        return {name: read(file) for name, file in self.sweep_files().items()}

    def sweep_files(self) -> dict[str, Path]:
        """Where it stands what each sweep asks for."""
        found = sorted((self.folder / "sweeps").glob("[!.]*.parquet"))
        return {file.stem: file for file in found}

    def document(self, name: str) -> str | None:
        """The file of a sweep as TOML; None where it is not there."""
        try:
            return (self.folder / "sweeps" / f"{name}.toml").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write_scenarios(self, name: str, scenarios: Mapping[int, Mapping[str, Any]]) -> None:
        """The scenarios of a sweep's cells (number -> document), where it has no file; besides
        those that are there."""
        with self._writing():
            every = {**self.scenarios(name), **{str(cell): one for cell, one in scenarios.items()}}
            self.write_text(self.folder / "sweeps" / f"{name}.json", json.dumps(every) + "\n")

    def scenarios(self, name: str) -> dict[str, Any]:
        """The scenarios of a sweep's cells, by their numbers as text; those that were written."""
        try:
            text = (self.folder / "sweeps" / f"{name}.json").read_text(encoding="utf-8")
            found = json.loads(text)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def settle(self) -> None:
        """Makes one part of all, in the order of keys, each run once. Waits for nobody: where
        another program settles, it will do."""
        with self._writing(), self._alone() as mine:
            parts = self.parts() if mine else []
            self._remove_replaced()
            if len(parts) == 0 or (len(parts) == 1 and (parts[0] / _REPLACES).exists()):
                return

            def fill(whole: Path) -> None:
                for name, unique in {**_UNIQUE, **_UNIQUE_EXTRA}.items():
                    files = [part / f"{name}.parquet" for part in parts]
                    if name in _UNIQUE_EXTRA:
                        files = [file for file in files if file.exists()]
                    if files:
                        _native.store.settle(files, unique, whole / f"{name}.parquet")
                replaced = json.dumps([part.name for part in parts])
                (whole / _REPLACES).write_text(replaced, encoding="utf-8")

            with _reading():
                self._add_part(fill)
            self._remove_replaced()

    def adopt(self, part: Path, recordings: Mapping[str, Path] | None = None) -> None:
        """Adds a copy of another store's part, and recordings as `write` does."""
        with self._writing():
            self._keep(recordings or {})
            self._add_part(
                lambda own: shutil.copytree(
                    part, own, ignore=shutil.ignore_patterns(_REPLACES), dirs_exist_ok=True
                )
            )

    def write_text(self, path: Path, text: str) -> None:
        """A small file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with _whole(path) as partial:
            partial.write_text(text, encoding="utf-8")

    def _keep(self, recordings: Mapping[str, Path]) -> None:
        for key, recording in recordings.items():
            place = self.recording(key)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(place, ignore_errors=True)
            recording.rename(place)

    def _add_part(self, fill: Callable[[Path], object]) -> None:
        """Adds what is written into a folder, whole or not at all."""
        partial = self.workplace()
        try:
            partial.mkdir()
            fill(partial)
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
        """Whether no other program settles this store now."""
        with (self.folder / ".settling").open("w") as lock:
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
                f"{self.folder}: cannot be written: {reason}; what is there is whole, and the "
                "same command continues"
            ) from None

    def _check_writable(self) -> None:
        with self._writing():
            place = self.workplace()
            place.mkdir()
            place.rmdir()


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file to write, which takes the place of another when it is whole."""
    partial = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def damaged(file: Path, reason: str) -> UserError:
    """What is said of a table that cannot be read: which, and what to do."""
    place = file.parent if file.parent.parent.name == "parts" else file
    return UserError(
        f"{file}: damaged: {reason.splitlines()[0]}; move {place} away, and the sweep runs what it "
        "held again"
    )


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise damaged(*error.args) from None
