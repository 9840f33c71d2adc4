"""Traces of every call that the kernel makes, and their replay through the native build."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe import _native
from fullpipe.base.errors import RunError, UserError
from fullpipe.base.supplied import open_regular
from fullpipe.congestion import userfiles
from fullpipe.kernel.agent import lasting
from fullpipe.kernel.registration import Request

_MAGIC = b"fpcctrc4"
_RECORD_ALGORITHM = 1
_MAX_RECORD_BYTES = 64 * 1024


@dataclass(frozen=True)
class Difference:
    """The first call where the native build and the kernel differ."""

    connection: int  # from 1
    sequence: int  # of the connection's calls, from 0
    call: str  # `init`, `ack` or the event
    field: str  # of struct cc_ctl or struct cc_ack, as in cc/cc.h
    kernel: int
    native: int


@dataclass(frozen=True)
class Replayed:
    """The outcome of the replay of one congestion control's calls."""

    algorithm: str
    kernel_name: str
    release: str
    calls: int
    acks: int
    connections: int
    skipped: int  # after a gap in their connection
    lost: int  # that the kernel could not log
    difference: Difference | None


@dataclass(frozen=True)
class Replay:
    """The result of a replay, for each congestion control in the trace."""

    algorithms: tuple[Replayed, ...]
    is_cut_off: bool  # the last record is not whole


def trace(wanted: Request, out: Path, command: Sequence[str]) -> None:
    """Registers a congestion control while `command` runs and writes every call of it to `out`.

    Raises UserError if it cannot be registered or `out` exists, RunError if the command
    fails; the trace is then kept."""
    if out.exists():
        raise UserError(f"{out}: exists already; name another file")
    question = {"congestion_control": wanted.document(), "out": str(out)}
    with lasting("trace", question):
        try:
            status = subprocess.run(command, check=False).returncode
        except OSError as error:
            raise RunError(f"{command[0]}: {error.strerror}") from None
    if status != 0:
        raise RunError(f"{command[0]}: exit status {status} (the trace is in {out})")


def replay(path: Path) -> Replay:
    """Runs every call of a trace through the native build. Raises UserError if the file cannot
    be read or is no trace."""
    try:
        from_files = sorted(set(filter(userfiles.is_external, introduced(path))))
        if from_files:
            name = str(path.resolve())
            answer = userfiles.ask(from_files, "replay", {"path": name}, read=[name]).value
        else:
            answer = _native.cc.replay(str(path))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    return Replay(tuple(_replayed(item) for item in answer["algorithms"]), answer["is_cut_off"])


def introduced(path: Path) -> list[str]:
    """The algorithms in a trace's header (format: crates/fullpipe-cc/src/replay.rs)."""
    names = []
    with open_regular(path) as file:
        file.seek(len(_MAGIC))
        while len(head := file.read(8)) == 8:
            kind, size = struct.unpack("<II", head)
            body = file.read(min(size, _MAX_RECORD_BYTES))
            if kind != _RECORD_ALGORITHM or len(body) < 8:
                break
            at = 8 + 4 * int.from_bytes(body[4:8], "little")
            length = int.from_bytes(body[at : at + 4], "little")
            names.append(body[at + 4 : at + 4 + length].decode("utf-8", "replace"))
    return names


def _replayed(item: dict[str, Any]) -> Replayed:
    difference = item.pop("difference")
    return Replayed(**item, difference=None if difference is None else Difference(**difference))
