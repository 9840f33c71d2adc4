"""The commit that this package was made from: a checkout's own, or what a wheel carries."""

from __future__ import annotations

import functools
import subprocess

from fullpipe.base.installed import BUILT, checkout

#: scripts/with_sources.sh writes it into wheels and source distributions.
_FILE = BUILT / "commit"


@functools.cache
def git_commit() -> str | None:
    """The commit, with "+changes" for a wheel of a changed checkout; None before the first commit,
    or without Git in a checkout. An installed package may lie inside another repository, so only
    its own file counts."""
    folder = checkout()
    if folder is None:
        return _FILE.read_text(encoding="utf-8").strip() or None if _FILE.is_file() else None
    # Git refuses another user's repository (sudo, containers) unless the command names it as safe.
    command = ["git", "-c", f"safe.directory={folder}", "-C", str(folder), "rev-parse", "-q",
               "--verify", "HEAD"]  # fmt: skip
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None
