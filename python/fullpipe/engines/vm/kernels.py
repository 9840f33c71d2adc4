"""Kernels for the virtual machine: Debian's packages, unpacked into a cache and never installed;
those that scripts/build_kernel.py built; or any image that the user names. It knows nothing of
plans.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fullpipe.base.cache import user_cache
from fullpipe.base.errors import RunError, UserError
from fullpipe.engines.vm.debian import Archive


@dataclass(frozen=True)
class Source:
    """The Debian packages of a kernel version."""

    #: The package of the image; the group is the release.
    image: str
    #: Others that belong to it, with the release for `{}`.
    others: tuple[str, ...] = ()
    #: A suite that this host's apt need not know; None: the host's own.
    suite: str | None = None


#: What `--kernel` takes as a name. The first is the default.
VERSIONS = {
    "6.12": Source(r"linux-image-(6\.12\.[0-9]+\+deb12-cloud-amd64)-unsigned"),
    "6.1": Source(r"linux-image-(6\.1\.0-[0-9]+-cloud-amd64)-unsigned"),
    "7.3": Source(
        r"linux-binary-(7\.3\.[0-9]+\+deb13-cloud-amd64)",
        ("linux-modules-{}", "linux-base-{}"),
        "trixie-backports",
    ),
}
DEFAULT = next(iter(VERSIONS))
#: Magic bytes of an x86 kernel image (Documentation/arch/x86/boot.rst).
_BOOT_MAGIC = (0x202, b"HdrS")
#: Folder of the kernels that were built here, beside Debian's.
_OWN = "own"
_OWN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True)
class Kernel:
    """An image and the folder that holds its modules (searched at any depth)."""

    release: str
    image: Path
    modules: Path


def find(name: str | None, modules: str | None) -> Kernel:
    """The kernel that `--kernel` and `--modules` name; the default without them. Raises UserError
    if it is missing, with the command that downloads it."""
    if name is None or name in VERSIONS:
        if modules is not None:
            raise UserError("--modules: only with --kernel PATH")
        kernel = cached(name or DEFAULT)
        if kernel is None:
            raise UserError(
                f"the kernel {name or DEFAULT} for --engine vm is not here; "
                "`fullpipe doctor --install` downloads it"
            )
        return kernel
    if name in own():
        if modules is not None:
            raise UserError("--modules: only with --kernel PATH")
        return _own(name)
    image = Path(name)
    if not image.is_file():
        raise UserError(
            f"--kernel {name}: no such file; must be {', '.join([*VERSIONS, *own()])} or the path "
            "of a kernel image (bzImage)"
        )
    if not _is_image(image):
        raise UserError(f"--kernel {name}: is no x86 kernel image (bzImage)")
    if modules is None or not Path(modules).is_dir():
        raise UserError(
            f"--kernel {name}: needs --modules DIR, the folder of its modules (lib/modules/RELEASE)"
        )
    return Kernel(_release(image), image, Path(modules))


def own() -> list[str]:
    """Names of the kernels that were built here (`keep`)."""
    names = (image.parent.name for image in (_cache() / _OWN).glob("*/vmlinuz"))
    return sorted(name for name in names if _OWN_NAME.fullmatch(name))


def own_name(name: str) -> str:
    """The name, unchanged. Raises UserError if it is not valid for a kernel built here."""
    if name in VERSIONS or not _OWN_NAME.fullmatch(name):
        raise UserError(
            f"--name {name}: must be letters, digits, `.`, `_`, `-`, and none of Debian's versions "
            f"({', '.join(VERSIONS)})"
        )
    return name


def keep(name: str, image: Path, modules: Sequence[Path]) -> Kernel:
    """Stores a kernel that was built here for `find`, and replaces one of that name. `modules` are
    files and folders; a file replaces one of its name in a folder. Raises RunError if the image is
    no kernel."""
    if not _is_image(image):
        raise RunError(f"{image}: is no x86 kernel image (bzImage)")
    target = _cache() / _OWN / own_name(name)
    made = Path(tempfile.mkdtemp(dir=_made(target.parent), prefix="."))
    shutil.copy(image, made / "vmlinuz")
    (made / "modules").mkdir()
    others = shutil.ignore_patterns(*(f"{path.name}*" for path in modules if path.is_file()))
    for path in modules:
        if path.is_dir():
            shutil.copytree(path, made / "modules" / path.name, symlinks=True, ignore=others)
        else:
            shutil.copy(path, made / "modules")
    shutil.rmtree(target, ignore_errors=True)
    made.rename(target)
    return _own(name)


def cached(version: str) -> Kernel | None:
    """The newest downloaded kernel of that version; None if there is none."""
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
    """Downloads Debian's newest packages of that version and unpacks them into the cache. Raises
    RunError with apt's message if that fails."""
    source = VERSIONS[version]
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        archive = Archive(folder, source.suite)
        package, release = _newest(archive, version)
        unpacked = folder / "unpacked"
        others = [name.format(release) for name in source.others]
        archive.unpack([package, *others], unpacked)
        image = next(unpacked.rglob("vmlinuz*"), None)
        modules = next(unpacked.rglob(f"modules/{release}"), None)
        if image is None or modules is None:
            raise RunError(f"{package} has no kernel, or none with modules")
        target = _cache() / release
        made = Path(tempfile.mkdtemp(dir=_made(_cache())))
        shutil.move(image, made / "vmlinuz")
        shutil.move(modules, made / "modules")
        try:
            made.rename(target)
        except OSError:  # another process was faster
            shutil.rmtree(made)
        return Kernel(release, target / "vmlinuz", target / "modules")


def _newest(archive: Archive, version: str) -> tuple[str, str]:
    """Package and release of the newest image."""
    pattern = re.compile(VERSIONS[version].image)

    def found() -> list[re.Match[str]]:
        return [match for match in map(pattern.fullmatch, archive.names("linux-")) if match]

    matches = found()
    if not matches and archive.refresh():
        matches = found()
    if not matches:
        where = VERSIONS[version].suite or "this host's package lists"
        raise RunError(
            f"{where}: no kernel {version} ({pattern.pattern}); as root: apt-get update, or name "
            "an image with --kernel and --modules"
        )
    newest = max(matches, key=lambda match: [int(n) for n in re.findall(r"\d+", match[1])])
    return newest[0], newest[1]


def _own(name: str) -> Kernel:
    folder = _cache() / _OWN / name
    return Kernel(_release(folder / "vmlinuz"), folder / "vmlinuz", folder / "modules")


def _is_image(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(0x210)
    return head[_BOOT_MAGIC[0] : _BOOT_MAGIC[0] + 4] == _BOOT_MAGIC[1]


def _release(image: Path) -> str:
    """The release string of an image (boot.rst, kernel_version)."""
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
