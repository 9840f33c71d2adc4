"""The commit of the checkout that this package runs from."""

from __future__ import annotations

import functools
import subprocess

from fullpipe.base.installed import checkout


@functools.cache
def git_commit() -> str | None:
    """The commit; None outside a checkout (an installed package may lie inside another repository),
    before the first commit, or without Git."""
    folder = checkout()
    if folder is None:
        return None
    # Git refuses another user's repository (sudo, containers) unless the command names it as safe.
    command = ["git", "-c", f"safe.directory={folder}", "-C", str(folder), "rev-parse", "-q",
               "--verify", "HEAD"]  # fmt: skip
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None
