"""What this machine lacks to build kernels for the virtual machine (scripts/build_kernel.py)."""

from __future__ import annotations

import shutil
import subprocess

#: Commands and the Debian packages that bring them.
_PROGRAMS = {
    "make": "make",
    "gcc": "gcc libc6-dev",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "tar": "tar",
    "xz": "xz-utils",
    "patch": "patch",
}
#: What writes a kernel's types (BTF), which eBPF needs.
_TYPES = {"pahole": "dwarves"}
#: objtool and resolve_btfids read ELF files.
_HEADER = "#include <libelf.h>\n"


def missing_packages(types: bool = True) -> list[str]:
    """Debian packages with what is missing; empty if kernels can be built, by default those for
    QEMU, which have types."""
    programs = {**_PROGRAMS, **(_TYPES if types else {})}
    missing = [packages for name, packages in programs.items() if not shutil.which(name)]
    compiler = shutil.which("gcc")
    if compiler and types:
        tried = subprocess.run(
            [compiler, "-E", "-"], input=_HEADER, capture_output=True, text=True, check=False
        )
        missing += ["libelf-dev"] if tried.returncode != 0 else []
    return " ".join(missing).split()


def install_command(packages: list[str]) -> str:
    """What an administrator runs to get them."""
    return "apt-get install -y --no-install-recommends " + " ".join(packages)
