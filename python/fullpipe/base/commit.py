"""The commit of the checkout that this package runs from.

Read as gitrepository-layout(5) has it: asking git takes a process, as long as a short run writes.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from fullpipe.base.installed import checkout

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@functools.cache
def git_commit() -> str | None:
    """The commit; None outside a checkout: an installed package may lie inside somebody else's
    repository."""
    folder = checkout()
    return None if folder is None else head_of(folder)


def head_of(folder: Path) -> str | None:
    """The commit that is checked out in a folder with `.git`; None where there is none yet."""
    try:
        return _head_in_files(folder) or _head_by_git(folder)
    except OSError:
        return None


def _head_in_files(folder: Path) -> str | None:
    """None where references are kept in another way than as files."""
    own = folder / ".git"
    if own.is_file():  # a further work tree
        own = folder / own.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    head = (own / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith("ref: "):
        return head if _COMMIT.fullmatch(head) else None
    name = head.removeprefix("ref: ")
    shared = own / "commondir"
    common = own / shared.read_text(encoding="utf-8").strip() if shared.is_file() else own
    for place in (own, common):
        if (place / name).is_file():
            found = (place / name).read_text(encoding="utf-8").strip()
            return found if _COMMIT.fullmatch(found) else None
    packed = common / "packed-refs"
    lines = packed.read_text(encoding="utf-8").splitlines() if packed.is_file() else []
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), None)


def _head_by_git(folder: Path) -> str | None:
    import subprocess

    command = ["git", "-C", str(folder), "rev-parse", "--verify", "-q", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except subprocess.SubprocessError:
        return None
    return answer.stdout.strip()
