"""A compiler's errors with the user's files and lines. Must never run a compiler."""

from __future__ import annotations

import re
from pathlib import Path

from fullpipe.congestion.userfiles.source import Source, folder_of

#: An error or a note; what else a compiler writes belongs to the error before it.
_MESSAGE = re.compile(
    r"^(?P<location>.*?:\d+)(?::\d+)?: (?P<kind>(?:fatal )?error|note): (?P<text>.*)$", re.M
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
_UNKNOWN = re.compile(
    r"implicit declaration|undeclared|no member named|unknown type name|"
    r"unknown field|incomplete type"
)


def explain_errors(source: Source, words: str) -> str | None:
    """All errors of a compiler, one a line; None if it reported none."""
    errors: list[tuple[str, str]] = []
    for message in _MESSAGE.finditer(words):
        location, text = message["location"], message["text"]
        if message["kind"] != "note":
            errors.append((location, text))
        elif errors and not _is_own(source, errors[-1][0]) and _is_own(source, location):
            errors[-1] = location, errors[-1][1]  # where the user's file uses what is wrong
    lines = list(dict.fromkeys(_line(source, location, text) for location, text in errors))
    if not lines:
        return None
    if len(lines) > _MOST:
        lines[_MOST:] = [f"{source.path}: {len(lines) - _MOST} more errors"]
    return "\n".join(lines)


def _line(source: Source, location: str, text: str) -> str:
    row = _ROW.search(text)
    if row:
        name = f"{source.name}_{'PARAMS' if row[1] == 'PARAM' else 'STATE'}"
        has, takes = row["has"] or row["given"], row["takes"] or row["needs"]
        text = f"a row of {name} has {has} values; it takes {takes}"
        return f"{_location_of(source, name)}: {text}"
    if not _is_own(source, location):
        # It is in a header of the contract, or in a list that one of them expands.
        named = _NAMED.search(text)
        location = _location_of(source, named[1]) if named else str(source.path)
    return f"{location}: {_explained(source, text)}"


def _explained(source: Source, text: str) -> str:
    if source.is_kernels and _UNKNOWN.search(text):
        return f"{text}: not of those that fullpipe gives to a kernel's file (linux_tcp.h)"
    if "frame size" in text:
        return f"{text}: a call has 512 bytes of stack in the kernel"
    return text


def _location_of(source: Source, name: str) -> str:
    """`file:line` where a name stands first in the user's files; the file where it does not."""
    for file, text in source.files.items():
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(rf"\b{name}\b", line):
                cached = folder_of(source.id) / "source" / file
                return source.with_user_paths(f"{cached}:{number}")
    return str(source.path)


def _is_own(source: Source, location: str) -> bool:
    return Path(location.rpartition(":")[0]).name in source.files
