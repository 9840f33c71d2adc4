"""The headers of Debian's kernels, with which modules are built for the virtual machine:
downloaded, unpacked into the user's cache and never installed. It knows no module.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from fullpipe.base.cache import user_cache
from fullpipe.base.errors import RunError, UserError
from fullpipe.engines.vm import debian, kernels

#: Releases whose headers Debian 12's compiler takes.
_FOR_MODULES = re.compile(r"6\.12\.\d+\+deb12-.*|6\.1\.0-\d+-.*")
#: Where the packages look for each other.
_INSTALLED = "/usr/src/"


def tree(kernel: kernels.Kernel) -> Path:
    """The folder with which kbuild builds a module for a kernel. Raises UserError if it cannot be
    had here, RunError if the download fails."""
    if (kernel.modules / "Module.symvers").is_file():  # a kernel for User Mode Linux
        return kernel.modules
    row = kernels.pinned(kernel.release)
    if row is None or not row.headers or not _FOR_MODULES.fullmatch(row.release):
        raise UserError(
            f"kernel {kernel.release}: no module can be built for it here: its headers are not "
            "pinned, or need another compiler than Debian 12's; kernels for modules are 6.12, 6.1, "
            "and those of User Mode Linux"
        )
    folder = user_cache() / "headers" / kernel.release
    if not folder.is_dir():
        _fetch(row, folder)
    return folder / f"usr/src/linux-headers-{kernel.release}"


def _fetch(row: kernels.Pinned, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as text:
        unpacked = Path(text) / "unpacked"
        debian.unpack(row.headers, unpacked, lambda _: None)
        makefile = unpacked / f"usr/src/linux-headers-{row.release}/Makefile"
        if not makefile.is_file():
            raise RunError(f"linux-headers-{row.release} has no Makefile")
        words = makefile.read_text(encoding="utf-8")
        makefile.write_text(words.replace(_INSTALLED, f"{folder}{_INSTALLED}"), encoding="utf-8")
        try:
            unpacked.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(unpacked)
