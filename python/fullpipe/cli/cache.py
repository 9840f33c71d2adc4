"""`fullpipe cache`: what is in the user's cache, and its removal."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from fullpipe.cli.output import console, message, text_table

#: Folders of the cache -> what they hold, and what makes them again.
PARTS = {
    "kernels": "Debian's kernels (`fullpipe doctor --install`) and those that were built here",
    "headers": "Debian's headers, for modules",
    "vmlinux": "unpacked kernels",
    "initramfs": "images that machines boot from",
    "snapshots": "booted machines",
    "cores": "locks: one machine for each core",
    "uml": "kernels for User Mode Linux (`fullpipe doctor --build uml`)",
    "linux-source": "the kernel's congestion controls (`fullpipe doctor --linux-source`)",
    "cc": "users' algorithms, compiled",
    "modules": "algorithms as kernel modules",
    "costs": "costs of algorithms in a kernel",
}
_MEGABYTE = 1e6


def cache(
    clear: Annotated[
        list[str] | None,
        typer.Option("--clear", metavar="NAME", help="Remove this folder; `all` removes each."),
    ] = None,
) -> None:
    """Shows what is in the cache, or clears it. Everything there can be made again."""
    from fullpipe.base.cache import user_cache
    from fullpipe.base.errors import UserError

    root = user_cache()
    folders = sorted(path for path in root.glob("*") if path.is_dir()) if root.is_dir() else []
    names = [folder.name for folder in folders]
    for name in clear or []:
        if name != "all" and name not in names:
            raise UserError(f"--clear {name}: must be all or one of {', '.join(names) or 'none'}")
    for folder in folders:
        if clear and ("all" in clear or folder.name in clear):
            removed = _size_bytes(folder)
            shutil.rmtree(folder)
            message(f"removed {folder} ({removed / _MEGABYTE:.1f} MB)")
    if clear:
        return
    console.print(str(root))
    table = text_table("folder", "MB", "holds")
    for folder in folders:
        holds = PARTS.get(folder.name, "of another version of fullpipe, or of another program")
        if folder.name.startswith("scorecards"):
            holds = "runs of scorecards"
        table.add_row(folder.name, f"{_size_bytes(folder) / _MEGABYTE:.1f}", holds)
    console.print(table)


def _size_bytes(folder: Path) -> int:
    """Bytes on disk: files with holes, such as the memory of machines, count what they take."""
    return sum(512 * path.lstat().st_blocks for path in folder.rglob("*") if not path.is_dir())
