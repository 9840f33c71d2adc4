"""Reads TOML files: scenarios and what holds scenarios. Checks nothing but the file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.base.filekind import kind_of
from fullpipe.base.overrides import apply_changes
from fullpipe.base.supplied import open_regular
from fullpipe.base.text import is_utf_16
from fullpipe.base.toml import cure, parse_toml
from fullpipe.congestion.userfiles import is_file_name
from fullpipe.scenario.delay_distributions import NAMES as DISTRIBUTIONS
from fullpipe.scenario.traffic.options import MAWI
from fullpipe.scenario.traffic.sizes import is_file

MAX_FILE_BYTES = 2**20
#: The version of the format of scenario and sweep files. A change that older files do not survive
#: makes a new one, and the old one is still read.
FORMAT_VERSION = 1


def load_document(
    path: Path | str, what: str = "scenario", needs: str = "duration, [path] and [[flow]]"
) -> dict[str, Any]:
    """The TOML file as a dictionary, not validated: see `load_with_text`."""
    return load_with_text(path, what, needs)[0]


def load_with_text(
    path: Path | str, what: str = "scenario", needs: str = "duration, [path] and [[flow]]"
) -> tuple[dict[str, Any], str]:
    """The TOML file as a dictionary, not validated, and as text; `what` and `needs` name the kind
    of file and its content in errors.

    Raises UserError where it cannot be read, is empty, too large or no TOML."""
    path = Path(path)
    try:
        if path.is_dir():
            raise UserError(f"{path}: is a folder; a {what} is a TOML file")
        with open_regular(path) as file:
            content = file.read(MAX_FILE_BYTES + 1)
        kind = kind_of(content)
        if kind is not None:
            raise UserError(f"{path}: is {kind}; a {what} is a TOML file")
        if len(content) > MAX_FILE_BYTES:
            raise UserError(f"{path}: larger than 1 MiB; that is no {what}")
        if is_utf_16(content):
            raise UserError(f"{path}: is in UTF-16; save it as UTF-8, which a {what} is in")
        text = content.decode("utf-8").replace("\r\n", "\n")
        document: dict[str, Any] = parse_toml(text)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file; a {what} is TOML in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not TOML: {error}{cure(text, error)}") from None
    if not document:
        raise UserError(f"{path}: empty; a {what} needs {needs}")
    check_version(document, str(path))
    find_files(document, path.parent)
    return document, text


def check_version(document: Mapping[str, Any], source: str) -> None:
    """Raises UserError for a document in a version of the format that this program does not read;
    one without a version is read as the first."""
    version = document.get("version", FORMAT_VERSION)
    if type(version) is not int or version != FORMAT_VERSION:
        raise UserError(
            f"{source}: version: {version!r}: this fullpipe reads version {FORMAT_VERSION} of the "
            "format; a newer release may read this file"
        )


def changed(
    document: Mapping[str, Any], changes: Iterable[str], path: Path | str
) -> dict[str, Any]:
    """The document of the file `path` with `key=value` changes. Files that a change names are
    looked for beside `path`, as those in it are; where there is none, in the current folder."""
    result = apply_changes(document, changes)
    find_files(result, Path(path).parent, or_here=True)
    return result


def find_files(document: dict[str, Any], folder: Path, or_here: bool = False) -> None:
    """Replaces the names of files in a scenario's document, which are relative to this folder, by
    absolute paths, unless it is the current folder; with `or_here` not the names of files that are
    in the current folder only."""
    folder = folder.resolve()
    if folder == Path.cwd():
        return

    def is_cc(name: str) -> bool:
        return is_file_name(name.split("[")[0])

    def replace(table: Any, key: str, is_name: Any = lambda _: True) -> None:
        name = table.get(key) if isinstance(table, dict) else None
        if not isinstance(name, str) or not is_name(name):
            return
        if or_here and _is_file(Path(name)) and not _is_file(folder / name):
            return
        table[key] = str(folder / name)

    for key in ("flow", "page", "traffic"):
        for table in _tables(document.get(key)):
            replace(table, "cc", is_cc)
    for table in _tables(document.get("traffic")):
        replace(table, "sizes", is_file)
        replace(table, "trace", lambda name: name != MAWI)
    ccs = document.get("cc")
    for table in _tables(list(ccs.values()) if isinstance(ccs, dict) else None):
        replace(table, "base", is_cc)
    for link in _tables(document.get("link")):
        for direction in (link, link.get("reverse")):
            replace(direction, "rate_trace")
            replace(direction, "delay_trace")
            replace(direction, "delay_distribution", lambda name: name not in DISTRIBUTIONS)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except ValueError:  # no name of a file
        return False


def _tables(value: Any) -> list[dict[str, Any]]:
    """The tables of a list that may be anything."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
