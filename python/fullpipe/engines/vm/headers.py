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
from fullpipe.engines.vm import kernels
from fullpipe.engines.vm.debian import Archive

_PACKAGES = {
    "6.12": ("linux-headers-{release}", "linux-headers-{common}-common", "linux-kbuild-{common}"),
    "6.1": ("linux-headers-{release}", "linux-headers-{common}-common", "linux-kbuild-6.1",
            "linux-compiler-gcc-12-x86"),
}  # fmt: skip
_FLAVOUR = re.compile(r"-cloud-amd64\Z")
#: Where the packages look for each other.
_INSTALLED = "/usr/src/"


def tree(kernel: kernels.Kernel) -> Path:
    """The folder with which kbuild builds a module for a kernel. Raises UserError if it cannot be
    had here, RunError with apt's message."""
    if (kernel.modules / "Module.symvers").is_file():  # a kernel for User Mode Linux
        return kernel.modules
    version = next((v for v in _PACKAGES if kernel.release.startswith(f"{v}.")), None)
    if version is None or not _FLAVOUR.search(kernel.release):
        raise UserError(
            f"kernel {kernel.release}: no module can be built for it here, since its headers need "
            "another compiler than Debian 12's; kernels for modules are "
            f"{', '.join(_PACKAGES)}, and those of User Mode Linux"
        )
    kept = user_cache() / "headers" / kernel.release
    if not kept.is_dir():
        _fetch(version, kernel.release, kept)
    return kept / f"usr/src/linux-headers-{kernel.release}"


def _fetch(version: str, release: str, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    names = {"release": release, "common": _FLAVOUR.sub("", release)}
    with tempfile.TemporaryDirectory(dir=kept.parent) as text:
        folder = Path(text)
        archive = Archive(folder, kernels.VERSIONS[version].suite)
        unpacked = folder / "unpacked"
        archive.unpack([name.format(**names) for name in _PACKAGES[version]], unpacked)
        makefile = unpacked / f"usr/src/linux-headers-{release}/Makefile"
        if not makefile.is_file():
            raise RunError(f"linux-headers-{release} has no Makefile")
        words = makefile.read_text(encoding="utf-8")
        makefile.write_text(words.replace(_INSTALLED, f"{kept}{_INSTALLED}"), encoding="utf-8")
        try:
            unpacked.rename(kept)
        except OSError:  # another process was faster
            shutil.rmtree(unpacked)
