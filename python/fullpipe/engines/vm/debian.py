"""Debian's archive, through apt: lists packages and unpacks their files into a folder, without
installing them. apt checks every signature and hash. It knows nothing of kernels.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fullpipe.base.errors import RunError

_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_ARCHIVE = "http://deb.debian.org/debian"
_APT_SECONDS = 600


class Archive:
    """The packages that this host's apt knows, or those of another Debian suite. The lists of such
    a suite are kept in `folder`, separate from the host's."""

    def __init__(self, folder: Path, suite: str | None = None) -> None:
        self._folder = folder
        self._suite = suite
        self._options: tuple[str, ...] = ()
        if suite is not None:
            self._options = self._apart(suite)

    def names(self, prefix: str) -> list[str]:
        """Names of the packages with this prefix, from the lists at hand."""
        return self._run("apt-cache", "pkgnames", prefix).split()

    def refresh(self) -> bool:
        """Fetches the lists again if the user has the rights; returns whether it did."""
        if self._suite is None and os.geteuid() != 0:
            return False
        self._run("apt-get", "-qq", "update")
        return True

    def unpack(self, packages: Sequence[str], into: Path) -> None:
        """Downloads packages and unpacks their files. Raises RunError with apt's message."""
        for package in packages:
            self._run("apt-get", "-q", "download", package)
        archives = list(self._folder.glob("*.deb"))
        if len(archives) != len(packages):
            raise RunError(f"apt-get download {' '.join(packages)} left {len(archives)} packages")
        for archive in archives:
            self._call(["dpkg-deb", "-x", str(archive), str(into)])

    def _apart(self, suite: str) -> tuple[str, ...]:
        """Options that confine apt to the folder."""
        mirrors = self._run("apt-get", "indextargets", "--format", "$(REPO_URI)").split()
        mirror = next((uri for uri in mirrors if uri.rstrip("/").endswith("/debian")), _ARCHIVE)
        sources, lists, cache = (self._folder / name for name in ("sources", "lists", "cache"))
        sources.write_text(f"deb [signed-by={_KEYS}] {mirror} {suite} main\n", encoding="utf-8")
        for folder in (lists, cache / "archives"):
            (folder / "partial").mkdir(parents=True)
        settings = {
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "-",
            "Dir::State::lists": lists,
            "Dir::State::status": "/dev/null",
            "Dir::Cache": cache,
            # Only this user can read the folder.
            "APT::Sandbox::User": "",
        }
        return tuple(part for key, value in settings.items() for part in ("-o", f"{key}={value}"))

    def _run(self, program: str, *arguments: str) -> str:
        return self._call([program, *self._options, *arguments])

    def _call(self, command: list[str]) -> str:
        try:
            done = subprocess.run(
                command, cwd=self._folder, capture_output=True, text=True, timeout=_APT_SECONDS
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise RunError(f"{' '.join(command)}: {error}") from None
        if done.returncode != 0:
            words = done.stderr.strip().splitlines() or ["no reason given"]
            raise RunError(f"{command[0]} {command[-1]}: {words[-1]}")
        return done.stdout
