"""Objects that the cache keeps, each with its checksum in a file beside it: a damaged one is made
again. Must never know what an object holds.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from fullpipe.base.writing import atomic_file
from fullpipe.recording.checksums import sha256_of


def is_whole(file: Path) -> bool:
    """Whether the object is there as `keep_object` wrote it."""
    try:
        return _checksum_of(file).read_bytes() == sha256_of(file).encode()
    except OSError:
        return False


def keep_object(compiled: Path, file: Path) -> None:
    """Copies a compiled object to its place in the cache. Raises UserError where that cannot be
    written."""
    with atomic_file(_checksum_of(file)) as partial:
        partial.write_text(sha256_of(compiled), encoding="ascii")
    with atomic_file(file) as partial:
        shutil.copyfile(compiled, partial)


def remove_object(file: Path) -> None:
    """Removes an object and its checksum."""
    for path in (file, _checksum_of(file)):
        path.unlink(missing_ok=True)


def _checksum_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.sha256")
