"""Debian's kernel sources: unpacks, patches and configures them, and runs what builds them. It
knows nothing of what the kernels are for.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from fullpipe.base.errors import RunError, UserError
from fullpipe.base.sessions import session
from fullpipe.engines.vm import debian

#: Where the options of kernels are; and those that every kernel of ours has.
CONFIG = Path(__file__).with_name("config")
NETWORK = CONFIG / "network.config"
_OPTION = re.compile(r"CONFIG_(\w+)=.+")
#: Makes builds reproducible.
_REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_USER": "fullpipe",
    "KBUILD_BUILD_HOST": "fullpipe",
}
_LOG_LINES = 15

Say = Callable[[str], None]


def unpacked(version: str, work: Path, say: Say) -> Path:
    """Debian's source of that version with Debian's own patches, in a folder of `work`."""
    name = f"linux-source-{version}"
    files = work / "debian-source"
    debian.unpack(debian.source(version), files, say)
    packed = next(files.rglob(f"{name}.tar.xz"), None)
    if packed is None:
        raise RunError(f"{name} has no {name}.tar.xz")
    say("unpacking it")
    run(["tar", "-xf", str(packed)], work, work)
    packed.unlink()
    return work / name


def apply(patch: Path, tree: Path, work: Path) -> None:
    """Changes the tree. Raises RunError if the patch is not of it."""
    run(["patch", "-p1", "--forward", "--batch", "-i", str(patch.resolve())], tree, work)


def configure(
    make: Sequence[str],
    files: Sequence[Path],
    ours: Sequence[Path],
    config: Path,
    tree: Path,
    work: Path,
    say: Say,
) -> None:
    """Writes `config`, which has the options of the files and no more. Options of `ours` may be
    unknown to this version. Raises UserError for others, and for those that it refuses."""
    wanted = work / "options"
    wanted.write_text("\n".join(path.read_text(encoding="utf-8") for path in files))
    run([*make, f"KCONFIG_ALLCONFIG={wanted}", "allnoconfig"], tree, work)
    for path in files:
        unknown, refused = left_out(path, config, tree)
        # What is ours covers several versions; what is the user's is for this one.
        if refused or (unknown and path not in ours):
            raise UserError(
                f"{path}: this source does not take {', '.join([*refused, *unknown])}; must be "
                "options of it, with those that they depend on"
            )
        if unknown:
            say(f"without {', '.join(unknown)}, which this source has not")


def left_out(wanted: Path, config: Path, tree: Path) -> tuple[list[str], list[str]]:
    """Options of a file that a configuration made of it does not have: those that no Kconfig of the
    tree knows, and those that it knows and refuses."""
    have = set(config.read_text(encoding="utf-8").split("\n"))
    lines = wanted.read_text(encoding="utf-8").split("\n")
    missing = [match for match in map(_OPTION.fullmatch, lines) if match and match[0] not in have]
    if not missing:
        return [], []
    symbols: set[str] = set()
    for path in tree.rglob("Kconfig*"):
        text = path.read_text(encoding="utf-8", errors="replace")
        symbols.update(re.findall(r"^\s*(?:menu)?config\s+(\w+)", text, re.MULTILINE))
    unknown = [match[0] for match in missing if match[1] not in symbols]
    return unknown, [match[0] for match in missing if match[1] in symbols]


def folder(path: Path) -> Path:
    """Makes a folder."""
    path.mkdir()
    return path


def run(command: Sequence[str], folder: Path, work: Path) -> None:
    """Runs a command in a folder. Raises RunError with the last lines of its output if it fails."""
    log = work / "log"
    with (
        log.open("wb") as output,
        session(
            command,
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **_REPRODUCIBLE},
        ) as process,
    ):
        process.wait()
    if process.returncode != 0:
        words = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        raise RunError(f"{command[0]} failed:\n  " + "\n  ".join(words))
