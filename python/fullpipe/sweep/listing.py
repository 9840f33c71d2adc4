"""Which sweeps a store has: their names, and which is the newest.

`sweeps.json` has them in that order, so that neither a clock that was set nor a copy of the store
changes which one is the newest. Must never know what a sweep asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from fullpipe.base.errors import UserError
from fullpipe.recording import checksums

FILE = "sweeps.json"
#: What names every sweep of a store.
ALL = "all"
#: Characters of an id that name a sweep, if no other begins with them.
_LEAST_OF_ID = 4


class Listed(NamedTuple):
    """A sweep of a store. `id`: the name of its files. `name`: what its user calls it."""

    id: str
    name: str


def read_list(folder: Path, files: Iterable[Path]) -> list[Listed]:
    """The sweeps with these files, in the order in which they were last asked for. Those of earlier
    programs are not in the list: they come first, by the times of their files.

    Raises DamagedError for a damaged list."""
    there = {file.stem: file for file in files}
    listed = [sweep for sweep in _listed(folder / FILE) if sweep.id in there]
    ids = {sweep.id for sweep in listed}
    unlisted = sorted(
        (file for name, file in there.items() if name not in ids),
        key=lambda file: (file.stat().st_mtime_ns, file.name),
    )
    return [*(Listed(file.stem, file.stem) for file in unlisted), *listed]


def text_of(listed: Iterable[Listed]) -> str:
    """The list as the file has it."""
    return checksums.sealed({"sweeps": [list(sweep) for sweep in listed]}) + "\n"


def chosen(listed: Sequence[Listed], wanted: str | None) -> list[Listed]:
    """The sweeps that are meant: by name (of several the newest), by id or its first characters,
    `all`, or the newest where nothing is wanted.

    Raises UserError naming the sweeps that there are."""
    if wanted == ALL:
        return list(listed)
    if wanted is None:
        return list(listed[-1:])
    of_id = [sweep for sweep in listed if sweep.id == wanted]
    of_name = [sweep for sweep in listed if sweep.name == wanted]
    if matching := of_id or of_name[-1:]:
        return matching
    begins = [sweep for sweep in listed if sweep.id.startswith(wanted)]
    if len(begins) == 1 and len(wanted) >= _LEAST_OF_ID:
        return begins
    raise UserError(f"--sweep {wanted}: no such sweep here; there are {named(listed)}, and {ALL}")


def named(listed: Sequence[Listed]) -> str:
    """The sweeps as a sentence names them, the newest first."""
    return ", ".join(map(shown, reversed(listed)))


def shown(sweep: Listed) -> str:
    """A sweep's name, with its id, since an edited file keeps its name."""
    return sweep.name if sweep.name == sweep.id else f"{sweep.name} ({sweep.id})"


def _listed(file: Path) -> list[Listed]:
    try:
        text = checksums.read_text(file)
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        raise checksums.DamagedError(file) from None
    rows = checksums.unsealed(file, text).get("sweeps")
    if not isinstance(rows, list) or not all(map(_is_pair, rows)):
        raise checksums.DamagedError(file)
    return [Listed(*row) for row in rows]


def _is_pair(row: object) -> bool:
    return isinstance(row, list) and len(row) == 2 and all(isinstance(item, str) for item in row)
