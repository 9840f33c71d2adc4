"""What the kernel engines need from this machine, and how to get it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fullpipe.engines import assets
from fullpipe.engines.vm import kernels, machine
from fullpipe.errors import RunError, UserError

_MEND = "fullpipe doctor --mend"
#: Commands and the Debian packages that bring them.
_PROGRAMS = {machine.PROGRAM: "qemu-system-x86", "dpkg-deb": "dpkg", "apt-get": "apt"}
_INSTALL_SECONDS = 1200


@dataclass(frozen=True)
class Check:
    """One thing that an engine needs; `mend` is the one command that brings it."""

    name: str
    ok: bool
    detail: str
    mend: str = ""


def checks() -> list[Check]:
    """Everything that the engines `vm` and `live` need, in the order of mending."""
    return [_assets(), _qemu(), *(_kernel(version) for version in kernels.VERSIONS), _live()]


def mend(say: Callable[[str], None]) -> None:
    """Installs QEMU where the user may, and downloads the kernels that are missing. Raises
    RunError with the reason, or the command for an administrator."""
    missing = [package for program, package in _PROGRAMS.items() if not shutil.which(program)]
    if missing:
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
        if os.geteuid() != 0:
            raise RunError(f"missing system packages; as root: {' '.join(command)}")
        say(f"installing {', '.join(missing)}")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["apt-get", "-qq", "update"], command):
            done = subprocess.run(
                step, env=environment, capture_output=True, text=True, timeout=_INSTALL_SECONDS
            )
            if done.returncode != 0:
                raise RunError(f"{' '.join(step)}: {done.stderr.strip()}")
    for version in kernels.VERSIONS:
        if kernels.cached(version) is None:
            say(f"downloading Debian's kernel {version}")
            kernels.fetch(version)


def _assets() -> Check:
    try:
        names = [assets.agent().name, *(p.name for p in assets.objects_folder().glob("*.bpf.o"))]
    except UserError as error:
        return Check("vm, live: agent", False, str(error), "make build")
    return Check("vm, live: agent", True, ", ".join(sorted(names)))


def _qemu() -> Check:
    version = machine.version()
    return Check("vm: QEMU", version is not None, version or "not installed", _MEND)


def _kernel(version: str) -> Check:
    found = kernels.cached(version)
    name = f"vm: kernel {version}"
    return Check(name, found is not None, found.release if found else "not downloaded", _MEND)


def _live() -> Check:
    if os.geteuid() != 0:
        return Check("live, kernel load", False, "needs root", "sudo fullpipe ...")
    if not Path("/sys/kernel/btf/vmlinux").exists():
        return Check(
            "live, kernel load", False, "this kernel has no BTF", "a kernel with DEBUG_INFO_BTF"
        )
    return Check("live, kernel load", True, f"kernel {os.uname().release}")
