"""Debian's packages: downloads those that are pinned in debian.toml and unpacks their files into a
folder. Needs neither apt nor root, and installs nothing. It knows nothing of kernels.

A package comes from a folder that the user names, from Debian's archive or, once the archive has a
newer one, from snapshot.debian.org, which keeps every file under its SHA-1. Its SHA-256 is checked
wherever it comes from, so plain HTTP is as safe as a signed list.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

import arpy

from fullpipe.base.errors import RunError, UserError

#: Sets another host for both archives, `http://HOST` or a folder above `debian`.
MIRROR_VARIABLE = "FULLPIPE_DEBIAN_MIRROR"
_MIRROR = "http://deb.debian.org"
_SNAPSHOT = "http://snapshot.debian.org/file"
_TABLE = Path(__file__).with_name("debian.toml")
_SILENCE_SECONDS = 60
_CHUNK_BYTES = 1 << 20

Say = Callable[[str], None]


@dataclass(frozen=True)
class Package:
    """A package that is pinned: its file's name, where it lies in an archive, and its content."""

    file: str
    archive: str
    path: str
    size_bytes: int
    sha256: str
    sha1: str

    def addresses(self) -> Iterator[str]:
        """Where it can be had, the nearest first."""
        mirror = os.environ.get(MIRROR_VARIABLE, _MIRROR).rstrip("/")
        yield f"{mirror}/{self.archive}/{self.path}"
        yield f"{_SNAPSHOT}/{self.sha1}"


@cache
def table() -> dict[str, Any]:
    """What scripts/pin_debian.py wrote."""
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


@cache
def _packages() -> dict[str, Package]:
    return {row["file"]: Package(**row) for row in table()["package"]}


def source(version: str) -> list[str]:
    """The files of packages with the source of a kernel, such as 6.12. Raises UserError if none is
    pinned, with those that are."""
    rows = {row["version"]: row["packages"] for row in table()["source"]}
    if version not in rows:
        raise UserError(f"Linux {version}: no source of it is pinned; there are {', '.join(rows)}")
    files: list[str] = rows[version]
    return files


def unpack(files: Sequence[str], into: Path, say: Say, source: Path | None = None) -> None:
    """Gets packages by the names of their files and unpacks them into a folder; `source`: a folder
    that has them, in place of the network. Raises RunError with every place that failed."""
    for file in files:
        package = _packages()[file]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "package.deb"
            if source is None:
                say(f"downloading {file} ({package.size_bytes / 1e6:.0f} MB)")
                _download(package, path)
            else:
                _copy(package, source / file, path)
            _extract(path, into)


def _download(package: Package, path: Path) -> None:
    failed = []
    opener = urllib.request.build_opener()  # it respects the environment's proxies
    for address in package.addresses():
        try:
            with opener.open(address, timeout=_SILENCE_SECONDS) as answer:
                _keep(package, answer, path)
        except (OSError, ValueError, RunError) as error:
            failed.append(f"  {address}: {error}")
        else:
            return
    raise RunError(
        f"{package.file}: could not be downloaded\n"
        + "\n".join(failed)
        + f"\n{MIRROR_VARIABLE} names another mirror; without a network, put the file into a "
        "folder and name it: fullpipe doctor --install --from DIR"
    )


def _copy(package: Package, source: Path, path: Path) -> None:
    try:
        with source.open("rb") as file:
            _keep(package, file, path)
    except (OSError, RunError) as error:
        where = f"{_MIRROR}/{package.archive}/{package.path}"
        raise RunError(f"{source}: {error}; must be the file of {where}") from None


def _keep(package: Package, source: IO[bytes], path: Path) -> None:
    """Writes the package. Raises RunError if it is another file; reads no more than its size."""
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        while chunk := source.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > package.size_bytes:
                break
            digest.update(chunk)
            file.write(chunk)
    if size != package.size_bytes or digest.hexdigest() != package.sha256:
        raise RunError(f"is not the package that is pinned (SHA-256 {package.sha256})")


def _extract(path: Path, into: Path) -> None:
    """Unpacks the files of a package (deb(5))."""
    with arpy.Archive(str(path)) as archive:
        for member in archive:
            if member.header.name.startswith(b"data.tar"):
                with tarfile.open(fileobj=member, mode="r|*") as files:
                    # Packages link to absolute paths, which "data" refuses; their content is known.
                    # Python before 3.11.4 has no filters.
                    files.extraction_filter = getattr(tarfile, "tar_filter", None)
                    files.extractall(into)
                return
    raise RunError(f"{path.name}: has no data.tar")
