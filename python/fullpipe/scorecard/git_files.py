"""The algorithm of a file as it was at a commit, put into a folder. Only reads the repository. Must
never know what the file says.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path, PurePosixPath

from fullpipe.base.errors import UserError

#: What an algorithm's folder may hold for it: its headers, a kernel's
#: files, or its class and other modules.
_SUFFIXES = (".h", ".c", ".py")
_REGULAR = (b"100644", b"100755")
_MAX_FILES, _MAX_BYTES = 500, 2**24
_DIFF = ("diff", "--quiet", "--no-ext-diff", "--no-textconv")
#: Branches that pull requests usually go to, the first that exists.
_MAIN = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


def commit_of(file: Path, revision: str) -> str:
    """The full hash of a commit of the repository that a file lies in. Raises UserError if there is
    no such commit or no repository."""
    commit = _git(
        file, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    if commit is None:
        _top(file)
        raise UserError(
            f"--baseline {revision}: is no folder of an earlier --out, no congestion control, and "
            f"no commit of the repository of {file}"
        )
    return commit.decode("ascii").strip()


def usual_baseline(file: Path) -> str | None:
    """The commit that a change of this file began from: the merge base with the main branch; on
    that branch itself, and with the file unchanged since the last commit, the commit before. None
    if the file is new since then.

    Raises UserError if there is no such branch."""
    _top(file)
    for branch in _MAIN:
        base = _git(file, "merge-base", "HEAD", branch)
        if base is None:
            continue
        head = _git(file, "rev-parse", "HEAD")
        is_changed = _git(file, *_DIFF, "HEAD", "--", file.name) is None
        if base == head and not is_changed:
            base = _git(file, "rev-parse", "--verify", "--quiet", "HEAD^")
        commit = "" if base is None else base.decode("ascii").strip()
        return commit if commit and exists_at(file, commit) else None
    raise UserError(f"{file}: no merge base with {', '.join(_MAIN)}; name a commit by --baseline")


def exists_at(file: Path, commit: str) -> bool:
    """Whether the file is in that commit."""
    return _git(file, "cat-file", "-e", f"{commit}:{_inside(file, _top(file))}") is not None


def check_out(file: Path, commit: str, folder: Path) -> Path:
    """Puts the file of that commit and what lies beside and below it into a folder; returns it.

    Raises UserError if the commit does not hold the file, or too much beside it."""
    top = _top(file)
    inside = PurePosixPath(_inside(file, top))
    if not exists_at(file, commit):
        raise UserError(f"--baseline {commit[:12]}: holds no {inside}")
    beside = [] if inside.parent == PurePosixPath() else [f"{inside.parent}/"]
    listed = _git(file, "ls-tree", "-r", "-z", "-l", "--full-tree", commit, *beside)
    entries = [_entry(line) for line in (listed or b"").split(b"\0") if line]
    wanted = [
        (name, blob, size)
        for mode, blob, size, name in entries
        if mode in _REGULAR and name.suffix in _SUFFIXES
    ]
    if len(wanted) > _MAX_FILES or sum(size for _, _, size in wanted) > _MAX_BYTES:
        raise UserError(
            f"{inside}: its folder holds more than {_MAX_FILES} files or {_MAX_BYTES >> 20} MiB at "
            f"{commit[:12]}; keep an algorithm in a folder of its own"
        )
    for name, blob, _ in wanted:
        copy = folder / name.relative_to(inside.parent)
        if ".." in copy.parts:
            raise UserError(f"{commit[:12]}: {name}: is no path inside the folder")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(_git(file, "cat-file", "blob", blob) or b"")
    return folder / inside.name


def _entry(line: bytes) -> tuple[bytes, str, int, PurePosixPath]:
    """Mode, blob, bytes and path of a line of `git ls-tree -l`."""
    facts, _, name = line.partition(b"\t")
    mode, _kind, blob, size = facts.split()
    path = PurePosixPath(name.decode("utf-8", "surrogateescape"))
    return mode, blob.decode("ascii"), int(size) if size.isdigit() else 0, path


def _inside(file: Path, top: Path) -> str:
    """The file's path in its repository."""
    return file.resolve().relative_to(top.resolve()).as_posix()


def _top(file: Path) -> Path:
    if shutil.which("git") is None:
        raise UserError("--baseline: a commit needs git, which is not installed")
    root = _git(file, "rev-parse", "--show-toplevel")
    if root is None:
        raise UserError(f"{file}: lies in no git repository that can be read")
    return Path(root.decode("utf-8", "surrogateescape").rstrip("\n"))


def _git(file: Path, *words: str) -> bytes | None:
    """What git prints; None if it fails."""
    try:
        done = subprocess.run(
            ["git", "--literal-pathspecs", "-C", str(file.resolve().parent), *words],
            capture_output=True,
            check=False,
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
