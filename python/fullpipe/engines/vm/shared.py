"""The memory that host and guest share (guest side: crates/fullpipe-agent/src/shared.rs): a header,
the job with its files, then the stream of frames. It knows nothing of plans.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Magic, bytes of the job, offset of the stream. What QEMU and the guest tell one another follows.
_HEAD = struct.Struct("<8sQQ")
_MAGIC = b"fullpipe"
_PAGE = 4096
#: Only touched pages cost memory. A generous size gives most runs the same hardware.
_LEAST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Job:
    """The work for a machine: modules, files, and the agent's request or scripts for it."""

    request: Mapping[str, Any] | None
    #: Modules that it needs.
    modules: Sequence[str]
    #: Files for the request's folder of objects.
    objects: Mapping[str, bytes]
    #: Scripts of a differential test (crates/fullpipe-differential), in place of a request: what
    #: they are played to (`tcp`, `queues`, `packetdrill`) and the scripts.
    scripts: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def parts(self) -> tuple[bytes, bytes]:
        """The memory layout: the text, and the files."""
        text = {
            "request": self.request,
            "scripts": self.scripts,
            "modules": list(self.modules),
            "objects": [(name, len(content)) for name, content in self.objects.items()],
        }
        return json.dumps(text).encode(), b"".join(self.objects.values())


def size_bytes(job: Job, stream_mib: int) -> int:
    """Bytes of shared memory for the job and a stream: a power of two."""
    needed = _stream_offset(job.parts()) + stream_mib * 2**20
    return 1 << (max(needed, _LEAST_BYTES) - 1).bit_length()


def create(path: Path, size: int, job: Job | None) -> int:
    """Makes the file; returns the offset of the stream. Without a job it is all zeros."""
    with path.open("wb") as file:
        file.truncate(size)
        if job is None:
            return 0
        text, files = parts = job.parts()
        offset = _stream_offset(parts)
        file.write(_HEAD.pack(_MAGIC, len(text), offset))
        file.seek(_PAGE)
        file.write(text + files)
        return offset


def stream_offset(head: bytes) -> int:
    """The offset of the stream, from the first bytes of the memory."""
    return int(_HEAD.unpack_from(head)[2])


def view(path: Path) -> mmap.mmap:
    """A read-only mapping of the memory, valid while the guest writes."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), os.fstat(file.fileno()).st_size, access=mmap.ACCESS_READ)


def _stream_offset(parts: tuple[bytes, bytes]) -> int:
    return _PAGE + -(-sum(map(len, parts)) // _PAGE) * _PAGE
