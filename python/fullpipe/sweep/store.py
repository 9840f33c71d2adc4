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
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import fullpipe
from fullpipe.columns import empty, first_of_equals, order, taken
from fullpipe.errors import UserError
from fullpipe.parquet import ParquetFile, opened_parquet, write_parquet
from fullpipe.sweep.measures import SCHEMAS

FORMAT = 1
#: What experiments measure of a run: expressions of their metrics, by metrics of one `version`, and
#: what plots need. A part has them where there are any.
EXTRA: dict[str, pa.Schema] = {
    "values": pa.schema([
        ("key", pa.string()), ("name", pa.string()), ("version", pa.string()),
        ("value", pa.float64()),
    ]),
    "distributions": pa.schema([
        ("key", pa.string()), ("name", pa.string()), ("version", pa.string()),
        ("values", pa.list_(pa.float64())),
    ]),
}  # fmt: skip
#: Columns of which no two rows are the same; by default `key`.
_UNIQUE = {
    "flows": ["key", "flow_id"], "values": ["key", "name", "version"],
    "distributions": ["key", "name", "version"],
}  # fmt: skip
#: Rows of a settled file's groups; part of what its bytes are.
_GROUP_ROWS = 1 << 16
_REPLACES = "replaces.json"
#: How a worker writes what it adds: encoding costs more than the disk that it saves until the end
#: of the sweep.
_SOON_SETTLED: dict[str, Any] = {
    "compression": "lz4", "row_group_size": _GROUP_ROWS, "use_dictionary": False,
    "write_statistics": False,
}  # fmt: skip


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
            keys.update(read(part / "runs.parquet", ["key"]).column("key").to_pylist())
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
        files = [part / f"{name}.parquet" for part in self.parts()]
        found = [read(file) for file in files if name in SCHEMAS or file.exists()]
        return pa.concat_tables([empty({**SCHEMAS, **EXTRA}[name]), *found])

    def read_part(self, part: Path) -> dict[str, pa.Table]:
        """The rows in a folder of another store. Raises UserError where they are no such rows."""
        tables = {}
        for name, schema in {**SCHEMAS, **EXTRA}.items():
            if name in EXTRA and not (part / f"{name}.parquet").exists():
                continue
            table = read(part / f"{name}.parquet")
            if table.schema != schema:
                raise UserError(f"{part}/{name}.parquet: has other columns than this program's")
            tables[name] = table
        return tables

    def write(self, tables: Mapping[str, pa.Table], recordings: Mapping[str, Path]) -> None:
        """Adds the rows of whole runs, or rows of EXTRA for runs that are there.

        Moves recordings (key -> folder in `workplace()`) first, so that no row stands without what
        it promises."""
        with self._writing():
            for key, recording in recordings.items():
                place = self.recording(key)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.rmtree(place, ignore_errors=True)
                recording.rename(place)
            nothing = {name: empty(schema) for name, schema in SCHEMAS.items()}
            self._write_part({**nothing, **tables}, [])

    def recording(self, key: str) -> Path:
        """Where the recording of a run lies, if it was kept."""
        return self.folder / "recordings" / key[:2] / key

    def workplace(self) -> Path:
        """A folder that does not exist yet, for what is being written."""
        (self.folder / "work").mkdir(exist_ok=True)
        return self.folder / "work" / f"{os.getpid()}-{secrets.token_hex(6)}"

    def write_sweep(self, name: str, rows: pa.Table, document: str | None) -> None:
        """What a sweep asks for, and its file where it has one; replaces an earlier answer of the
        same sweep."""
        with self._writing():
            if document is not None:
                self.write_text(self.folder / "sweeps" / f"{name}.toml", document)
            place = self.folder / "sweeps" / f"{name}.parquet"
            partial = place.with_name(f".{name}.{secrets.token_hex(6)}")
            try:
                write_parquet(rows, partial)
                partial.replace(place)
            finally:
                partial.unlink(missing_ok=True)

    def sweeps(self) -> dict[str, pa.Table]:
        """What each sweep asks for. Raises UserError for a damaged file."""
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
            tables = {name: _settled(name, self.table(name)) for name in (*SCHEMAS, *EXTRA)}
            tables = {name: t for name, t in tables.items() if name in SCHEMAS or t.num_rows}
            self._write_part(tables, [part.name for part in parts])
            self._remove_replaced()

    def adopt(self, part: Path) -> None:
        """Adds a copy of another store's part."""
        with self._writing():
            partial = self.workplace()
            try:
                shutil.copytree(part, partial, ignore=shutil.ignore_patterns(_REPLACES))
                partial.rename(self.folder / "parts" / partial.name)
            finally:
                shutil.rmtree(partial, ignore_errors=True)

    def write_text(self, path: Path, text: str) -> None:
        """A small file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    def _write_part(self, tables: Mapping[str, pa.Table], replaces: Iterable[str]) -> None:
        partial = self.workplace()
        try:
            partial.mkdir()
            for name, table in tables.items():
                how = _lasting(table.schema) if replaces else _SOON_SETTLED
                write_parquet(table, partial / f"{name}.parquet", **how)
            if replaces:
                (partial / _REPLACES).write_text(json.dumps(list(replaces)), encoding="utf-8")
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


def _lasting(schema: pa.Schema) -> dict[str, Any]:
    """How tables that last are written: words by numbers for them, of which a column of measures or
    keys would have as many as rows."""
    words = [one.name for one in schema if one.type == pa.string() and one.name != "key"]
    return {"compression": "zstd", "row_group_size": _GROUP_ROWS, "use_dictionary": words}


def schema_of(file: Path) -> pa.Schema:
    """The columns of a table of a store. Raises UserError as `read`."""
    with _opened(file) as opened:
        return opened.schema


def read(file: Path, columns: list[str] | None = None) -> pa.Table:
    """A table of a store. Raises UserError naming a damaged file and what to do."""
    with _opened(file) as opened:
        lacking = sorted(set(columns or []) - set(opened.schema.names))
        if lacking:
            raise ValueError(f"has no column {lacking[0]}")
        return opened.read(columns)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[ParquetFile]:
    try:
        with opened_parquet(file) as opened:
            yield opened
    except (OSError, pa.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0]
        place = file.parent if file.parent.parent.name == "parts" else file
        raise UserError(
            f"{file}: damaged: {reason}; move {place} away, and the sweep runs what it held again"
        ) from None


def _settled(name: str, table: pa.Table) -> pa.Table:
    """Each run's rows once, in the order of keys."""
    if not table.num_rows:
        return table
    arrays = {
        field.name: one.chunk(0)
        for field, one in zip(table.schema, table.combine_chunks().columns, strict=True)
    }
    same = [arrays[key] for key in _UNIQUE.get(name, ["key"])]
    rows = order(same)
    rows = rows[first_of_equals(same, rows)]
    return pa.table([taken(one, rows) for one in arrays.values()], schema=table.schema)
