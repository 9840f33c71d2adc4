"""Trace files of links: delivery opportunities as Mahimahi writes them, and delays over time.

The files are read by the compiled module (crates/fullpipe-net/src/trace/files.rs), which checks
every line; a plan holds a file's name and its SHA-256. `link_trace_generators` makes some.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.base.supplied import open_regular


@dataclass(frozen=True)
class Trace:
    """A trace file."""

    path: str
    sha256: str
    #: Mean rate on the wire in bit/s, or first delay in ns.
    value: int

    def planned(self) -> dict[str, Any]:
        """What a plan holds of it (TraceFile in crates/fullpipe-net/src/trace/files.rs)."""
        return {"path": self.path, "sha256": self.sha256}


def rate_trace(path: str) -> Trace:
    """A file of delivery opportunities. Raises ValueError naming the file, line and value."""
    return _read(path, _stamp(path), "rate")


def delay_trace(path: str) -> Trace:
    """A file of times and delays. Raises ValueError naming the file, line and value."""
    return _read(path, _stamp(path), "delay")


def paths(plan: Mapping[str, Any]) -> list[str]:
    """The files of a plan's links."""
    return sorted({planned["path"] for _, _, planned in _planned(plan)})


def verify(plan: Mapping[str, Any]) -> None:
    """Raises UserError where a trace has changed since the plan was made."""
    for link, key, planned in _planned(plan):
        read = rate_trace if key == "rate_trace" else delay_trace
        try:
            trace = read(planned["path"])
        except ValueError as error:
            raise UserError(f"link {link}: {key}: {error}") from None
        if trace.sha256 != planned["sha256"]:
            raise UserError(
                f"link {link}: {key}: {planned['path']}: has changed since the run was planned"
            )


def _planned(plan: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(link, key, what the plan holds) of every trace file."""
    for link in plan["links"]:
        for direction in ("forward", "reverse"):
            for key in ("rate_trace", "delay_trace"):
                planned = link["medium"].get(direction, {}).get(key)
                if planned:
                    yield link["name"], key, planned


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise ValueError(f"{path!r}: is no name of a file") from None
    return status.st_mtime_ns, status.st_size


@functools.lru_cache(maxsize=256)
def _read(path: str, _stamp: tuple[int, int], kind: str) -> Trace:
    whole = Path(path).resolve()
    try:
        with open_regular(whole) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        if kind == "rate":
            value = _native.traces.rates(str(whole))[2]
        else:
            value = _native.traces.delays(str(whole), 1)[0][1]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return Trace(str(whole), digest, value)
