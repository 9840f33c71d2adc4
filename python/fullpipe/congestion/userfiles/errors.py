"""A compiler's errors with the user's files and lines. Must never run a compiler."""

from __future__ import annotations

import re
from pathlib import Path

from fullpipe.congestion.userfiles.source import Source, folder_of

#: An error or a note; what else a compiler writes belongs to the error before it.
_SAID = re.compile(
    r"^(?P<place>.*?:\d+)(?::\d+)?: (?P<kind>(?:fatal )?error|note): (?P<what>.*)$", re.M
)
#: A row of one of the lists with the wrong number of values (params.h, state.h).
_ROW = re.compile(
    r'macro "CC_(STATE|PARAM)_\w*" (?:passed (?P<has>\d+) arguments, but takes just (?P<takes>\d+)'
    r"|requires (?P<needs>\d+) arguments, but only (?P<given>\d+) given)"
)
_NAMED = re.compile(r"['‘]([A-Za-z_]\w*)['’]")
#: Errors that are shown. What follows the first ones is mostly their consequence.
_MOST = 40
#: Names that a compiler does not know.
_UNKNOWN = re.compile(r"implicit declaration|undeclared|no member named|unknown type name|"
                      r"unknown field|incomplete type")  # fmt: skip


def explain_errors(source: Source, words: str) -> str | None:
    """All errors of a compiler, one a line; None if it reported none."""
    errors: list[tuple[str, str]] = []
    for said in _SAID.finditer(words):
        place, what = said["place"], said["what"]
        if said["kind"] != "note":
            errors.append((place, what))
        elif errors and not _is_own(source, errors[-1][0]) and _is_own(source, place):
            errors[-1] = place, errors[-1][1]  # where the user's file uses what is wrong
    lines = list(dict.fromkeys(_line(source, place, what) for place, what in errors))
    if not lines:
        return None
    if len(lines) > _MOST:
        lines[_MOST:] = [f"{source.path}: {len(lines) - _MOST} more errors"]
    return "\n".join(lines)


def _line(source: Source, place: str, what: str) -> str:
    row = _ROW.search(what)
    if row:
        name = f"{source.name}_{'PARAMS' if row[1] == 'PARAM' else 'STATE'}"
        has, takes = row["has"] or row["given"], row["takes"] or row["needs"]
        what = f"a row of {name} has {has} values; it takes {takes}"
        return f"{_place_of(source, name)}: {what}"
    if not _is_own(source, place):
        # It is in a header of the contract, or in a list that one of them expands.
        named = _NAMED.search(what)
        place = _place_of(source, named[1]) if named else str(source.path)
    return f"{place}: {_explained(source, what)}"


def _explained(source: Source, what: str) -> str:
    if source.is_kernels and _UNKNOWN.search(what):
        return f"{what}: not of those that fullpipe gives to a kernel's file (linux_tcp.h)"
    if "frame size" in what:
        return f"{what}: a call has 512 bytes of stack in the kernel"
    return what


def _place_of(source: Source, name: str) -> str:
    """`file:line` where a name stands first in the user's files; the file where it does not."""
    for file, text in source.files.items():
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(rf"\b{name}\b", line):
                return source.place(str(folder_of(source.id) / "source" / file)) + f":{number}"
    return str(source.path)


def _is_own(source: Source, place: str) -> bool:
    return Path(place.rpartition(":")[0]).name in source.files
