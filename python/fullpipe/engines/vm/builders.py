"""What this machine lacks to build kernels for the virtual machine (scripts/build_kernel.py)."""

from __future__ import annotations

import shutil
import subprocess

#: Commands and the Debian packages that bring them.
_PROGRAMS = {
    "make": "make", "gcc": "gcc libc6-dev", "flex": "flex", "bison": "bison", "bc": "bc",
    "tar": "tar", "xz": "xz-utils", "patch": "patch", "pahole": "dwarves",
}  # fmt: skip
#: objtool and resolve_btfids read ELF files.
_HEADER = "#include <libelf.h>\n"


def missing_packages() -> list[str]:
    """Debian packages with what is missing; empty if kernels can be built."""
    missing = [packages for name, packages in _PROGRAMS.items() if not shutil.which(name)]
    compiler = shutil.which("gcc")
    if compiler:
        tried = subprocess.run(
            [compiler, "-E", "-"], input=_HEADER, capture_output=True, text=True, check=False
        )
        missing += ["libelf-dev"] if tried.returncode != 0 else []
    return " ".join(missing).split()


def install_command(packages: list[str]) -> str:
    """What an administrator runs to get them."""
    return "apt-get install -y --no-install-recommends " + " ".join(packages)
