"""A compiler's words as one sentence with the user's file and line. Must never run a compiler."""

from __future__ import annotations

import re
from pathlib import Path

from fullpipe.congestion.external.source import Source

_ERROR = re.compile(r"^(.*?:\d+)(?::\d+)?: (?:fatal )?error: (.*)$", re.M)
#: Names that a compiler does not know.
_UNKNOWN = re.compile(r"implicit declaration|undeclared|no member named|unknown type name|"
                      r"unknown field|incomplete type")  # fmt: skip


def explain_errors(source: Source, words: str) -> str | None:
    """The first error of a compiler and the number of others; None if it reported none."""
    errors = _ERROR.findall(words)
    if not errors:
        return None
    place, what = errors[0]
    if source.is_kernels and _UNKNOWN.search(what):
        what = f"{what}: not of those that fullpipe gives to a kernel's file (linux_tcp.h)"
    if "frame size" in what:
        what = f"{what}: a call has 512 bytes of stack in the kernel"
    if Path(place.rpartition(":")[0]).name not in source.files:
        place = str(source.path)  # the error is in the code that includes the file
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place}: {what}{more}"
