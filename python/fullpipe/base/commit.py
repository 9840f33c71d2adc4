"""The commit that this package was made from: a checkout's own, or what a wheel carries. Two builds
of a version that is in development differ by it."""

from __future__ import annotations

import functools
import subprocess

from fullpipe._native import __version__
from fullpipe.base.installed import BUILT, checkout

#: scripts/with_sources.sh writes it into wheels and source distributions.
_FILE = BUILT / "commit"


@functools.cache
def git_commit() -> str | None:
    """The commit, with "+changes" for a wheel of a changed checkout; None before the first commit,
    or without Git in a checkout. An installed package, or an unpacked source distribution, may lie
    inside another repository, so only its own file counts."""
    folder = checkout()
    if folder is None or not (folder / ".git").exists():
        return _FILE.read_text(encoding="utf-8").strip() or None if _FILE.is_file() else None
    # Git refuses another user's repository (sudo, containers) unless the command names it as safe.
    command = [
        "git",
        "-c",
        f"safe.directory={folder}",
        "-C",
        str(folder),
        "rev-parse",
        "-q",
        "--verify",
        "HEAD",
    ]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None


def build_version() -> str:
    """The version that tells this build from others: "1.2.0" for a release, and for a version in
    development its commit too, as PEP 440 writes it: "1.2.0.dev0+0123456789ab"."""
    commit = git_commit()
    if ".dev" not in __version__ or commit is None:
        return __version__
    changed = ".changed" if commit.endswith("+changes") else ""
    return f"{__version__}+{commit[:12]}{changed}"
