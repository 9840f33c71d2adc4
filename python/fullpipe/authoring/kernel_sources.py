"""Congestion controls of Debian's kernel sources: the package linux-source-VERSION, of which the
files net/ipv4/tcp_*.[ch] are kept in the user's cache. Must never read what they say.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
from pathlib import Path

from fullpipe.base.cache import user_cache
from fullpipe.base.errors import RunError, UserError
from fullpipe.engines.vm import debian

_NAMED = re.compile(r"linux-([0-9]+\.[0-9]+):(.+)")
_KEPT = re.compile(r"[^/]+/net/ipv4/(tcp_\w+\.[ch])")


def find(name: str) -> Path:
    """The file that a user names: a path, or linux-VERSION:tcp_NAME.c of a source that `fetch` put
    into the cache. Raises UserError if it is not there, with the command that gets it."""
    match = _NAMED.fullmatch(name)
    if match is None:
        return Path(name)
    version, file = match.groups()
    folder = _folder(version)
    if not folder.is_dir():
        raise UserError(
            f"{name}: the source of Linux {version} is not here; "
            f"`fullpipe doctor --linux-source {version}` downloads Debian's"
        )
    if not (folder / file).is_file():
        there = ", ".join(sorted(path.name for path in folder.glob("tcp_*.c")))
        raise UserError(f"{name}: Linux {version} has no such file; there are {there}")
    return folder / file


def fetch(version: str, say: debian.Say) -> Path:
    """Downloads Debian's source of a kernel, and keeps its congestion controls; returns the folder.
    Raises UserError if no such source is pinned, RunError if the download fails."""
    files = debian.source(version)
    folder = _folder(version)
    if folder.is_dir():
        return folder
    package = f"linux-source-{version}"
    with tempfile.TemporaryDirectory() as text:
        work = Path(text)
        debian.unpack(files, work / "unpacked", say)
        packed = next((work / "unpacked").rglob("linux-source-*.tar.*"), None)
        if packed is None:
            raise RunError(f"{package}: has no archive of the source")
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.parent))
        with tarfile.open(packed, "r|*") as source:
            for member in source:
                wanted = _KEPT.fullmatch(member.name)
                content = source.extractfile(member) if wanted and member.isfile() else None
                if wanted and content is not None:
                    (made / wanted[1]).write_bytes(content.read())
        try:
            made.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(made)
    return folder


def _folder(version: str) -> Path:
    return user_cache() / "linux-source" / version
