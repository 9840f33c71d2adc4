"""Kernels for the virtual machine: Debian's packages, unpacked into a cache and never installed, or
any other image that the user names. It knows nothing of plans.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fullpipe.cache import user_cache
from fullpipe.errors import RunError, UserError

#: What `--kernel` takes as a name -> pattern of Debian's package. The first is the default.
VERSIONS = {
    "6.12": r"linux-image-6\.12\.[0-9]+\+deb12-cloud-amd64-unsigned",
    "6.1": r"linux-image-6\.1\.0-[0-9]+-cloud-amd64-unsigned",
}
DEFAULT = next(iter(VERSIONS))
#: Bytes in which an x86 kernel image says what it is (Documentation/arch/x86/boot.rst).
_BOOT_MAGIC = (0x202, b"HdrS")
_APT_SECONDS = 600


@dataclass(frozen=True)
class Kernel:
    """An image and the folder that holds its modules (searched at any depth)."""

    release: str
    image: Path
    modules: Path


def find(name: str | None, modules: str | None) -> Kernel:
    """The kernel that `--kernel` and `--modules` name; the default without them. Raises UserError
    where it is not there, with the command that brings it."""
    if name is None or name in VERSIONS:
        if modules is not None:
            raise UserError("--modules: only with --kernel PATH")
        kernel = cached(name or DEFAULT)
        if kernel is None:
            raise UserError(
                f"the kernel {name or DEFAULT} for --engine vm is not here; "
                "`fullpipe doctor --mend` downloads it"
            )
        return kernel
    image = Path(name)
    if not image.is_file():
        raise UserError(
            f"--kernel {name}: no such file; must be {', '.join(VERSIONS)} or the path of a "
            "kernel image (bzImage)"
        )
    with image.open("rb") as file:
        head = file.read(0x210)
    if head[_BOOT_MAGIC[0] : _BOOT_MAGIC[0] + 4] != _BOOT_MAGIC[1]:
        raise UserError(f"--kernel {name}: is no x86 kernel image (bzImage)")
    if modules is None or not Path(modules).is_dir():
        raise UserError(
            f"--kernel {name}: needs --modules DIR, the folder of its modules (lib/modules/RELEASE)"
        )
    return Kernel(_release(image), image, Path(modules))


def cached(version: str) -> Kernel | None:
    """The newest downloaded kernel of that version; None where there is none."""
    found = [
        folder
        for folder in _cache().glob("*")
        if folder.name.startswith(f"{version}.") and (folder / "vmlinuz").is_file()
    ]
    if not found:
        return None
    newest = max(found, key=lambda folder: [int(n) for n in re.findall(r"\d+", folder.name)])
    return Kernel(newest.name, newest / "vmlinuz", newest / "modules")


def fetch(version: str) -> Kernel:
    """Downloads Debian's newest package of that version and unpacks it into the cache. Raises
    RunError with apt's words where that fails."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        package = _package(version)
        _apt(["apt-get", "-q", "download", package], folder)
        archives = list(folder.glob("*.deb"))
        if len(archives) != 1:
            raise RunError(f"apt-get download {package} left no package")
        unpacked = folder / "unpacked"
        _apt(["dpkg-deb", "-x", str(archives[0]), str(unpacked)], folder)
        image = next((unpacked / "boot").glob("vmlinuz-*"))
        release = image.name.removeprefix("vmlinuz-")
        target = _cache() / release
        made = Path(tempfile.mkdtemp(dir=_made(_cache())))
        shutil.move(image, made / "vmlinuz")
        shutil.move(unpacked / "lib" / "modules" / release, made / "modules")
        try:
            made.rename(target)
        except OSError:  # another process was faster
            shutil.rmtree(made)
        return Kernel(release, target / "vmlinuz", target / "modules")


def _package(version: str) -> str:
    pattern = re.compile(VERSIONS[version])
    for refreshed in (False, True):
        if refreshed:
            if os.geteuid() != 0:
                break
            _apt(["apt-get", "-qq", "update"], Path.cwd())
        names = _apt(["apt-cache", "pkgnames", "linux-image-6."], Path.cwd()).split()
        found = [name for name in names if pattern.fullmatch(name)]
        if found:
            return max(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
    raise RunError(
        f"the package archive has no kernel {version} ({VERSIONS[version]}); "
        "as root: apt-get update, or name an image with --kernel and --modules"
    )


def _apt(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_APT_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"{' '.join(command)}: {error}") from None
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or ["no reason given"]
        raise RunError(f"{' '.join(command[:3])}: {words[-1]}")
    return done.stdout


def _release(image: Path) -> str:
    """The release that an image carries (boot.rst, kernel_version)."""
    with image.open("rb") as file:
        head = file.read(0x210)
        offset = int.from_bytes(head[0x20E:0x210], "little")
        file.seek(0x200 + offset)
        return file.read(100).split(b"\0")[0].decode("ascii", "replace").split(" ")[0]


def _cache() -> Path:
    return user_cache() / "kernels"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
