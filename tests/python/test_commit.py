"""The commit that is written into recordings is the one that git names."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fullpipe.base.commit import head_of


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_is_gits_whichever_way_it_is_kept(tmp_path: Path) -> None:
    top, beside = tmp_path / "top", tmp_path / "beside"
    top.mkdir()
    assert head_of(top) is None
    git(top, "init", "-q", "-b", "main")
    assert head_of(top) is None
    git(top, "commit", "-q", "--allow-empty", "-m", "one")
    git(top, "worktree", "add", "-q", str(beside), "-b", "other/one")
    git(beside, "commit", "-q", "--allow-empty", "-m", "two")
    seen = []
    for change in ([], ["pack-refs", "--all"], ["checkout", "-q", "--detach"]):
        if change:
            git(top, *change)
        for folder in (top, beside):
            seen.append(head_of(folder))
            assert seen[-1] == git(folder, "rev-parse", "HEAD")
    assert len(set(seen)) == 2
