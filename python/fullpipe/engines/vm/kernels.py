"""Kernels for the virtual machine: Debian's packages, each pinned to one build, unpacked into a
cache and never installed; those that scripts/build_kernel.py built; or any image that the user
names. It knows nothing of plans.
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
from fullpipe.base.supplied import open_regular
from fullpipe.engines.vm import debian

#: What `--kernel` takes as a name -> the release that it stands for. The first is the default.
VERSIONS: dict[str, str] = debian.table()["name"]
DEFAULT = next(iter(VERSIONS))
#: Magic bytes of an x86 kernel image (Documentation/arch/x86/boot.rst).
_BOOT_MAGIC = (0x202, b"HdrS")
#: Where `make` leaves the image in a kernel's tree; the list of what is built into it.
_IMAGE_OF_TREE, _BUILTIN = Path("arch/x86/boot/bzImage"), "modules.builtin"
#: Folder of the kernels that were built here, beside Debian's.
_OWN = "own"
_OWN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True)
class Pinned:
    """A kernel of Debian's that is pinned: files of packages with the image and its modules, and of
    those with which modules are built for it."""

    version: str
    release: str
    packages: tuple[str, ...]
    headers: tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """An image and the folder that holds its modules (searched at any depth)."""

    release: str
    image: Path
    modules: Path


def pinned(name: str) -> Pinned | None:
    """The kernel that a name of VERSIONS, a version such as 6.12.113 or a release stands for; None
    if none of Debian's that are pinned does."""
    wanted = VERSIONS.get(name, name)
    for row in debian.table()["kernel"]:
        if wanted in (row["release"], row["version"]):
            files = (tuple(row[key]) for key in ("packages", "headers"))
            return Pinned(row["version"], row["release"], *files)
    return None


def require(name: str) -> Pinned:
    """The kernel that `pinned` gives. Raises UserError for another name, with those that there
    are."""
    row = pinned(name)
    if row is None:
        raise UserError(
            f"--kernel {name}: must be {', '.join(VERSIONS)} or one of {', '.join(_exact())}"
        )
    return row


def find(name: str | None, modules: str | None) -> Kernel:
    """The kernel that `--kernel` and `--modules` name; the default without them. Raises UserError
    if it is missing, with the command that downloads it."""
    if name is None or pinned(name) is not None:
        if modules is not None:
            raise UserError("--modules: only with --kernel PATH")
        kernel = cached(name or DEFAULT)
        if kernel is None:
            option = "" if name is None or name in VERSIONS else f" --kernel {name}"
            raise UserError(
                f"the kernel {name or DEFAULT} for --engine vm is not here; "
                f"`fullpipe doctor --install{option}` downloads it"
            )
        return kernel
    if name in built_here():
        if modules is not None:
            raise UserError("--modules: only with --kernel PATH")
        return _built_kernel(name)
    image = Path(name)
    if image.is_dir():
        image, modules = _built(image, modules)
    elif modules is None and image.is_file() and _is_image(image):
        modules = _modules_of(image)
    if not image.is_file():
        raise UserError(
            f"--kernel {name}: no such file; must be {', '.join([*VERSIONS, *built_here()])}, an "
            f"exact version ({', '.join(_exact())}), the path of a kernel image (bzImage), or a "
            "kernel's tree in which it was built"
        )
    if not _is_image(image):
        raise UserError(f"--kernel {name}: is no x86 kernel image (bzImage)")
    if modules is None or not Path(modules).is_dir():
        raise UserError(
            f"--kernel {name}: needs --modules DIR, the folder of its modules "
            f"(lib/modules/{_release(image)})"
        )
    return Kernel(_release(image), image, Path(modules))


def _built(tree: Path, modules: str | None) -> tuple[Path, str]:
    """Image and modules of a kernel's tree after `make`."""
    if modules is not None:
        raise UserError(f"--modules: not with {tree}, which is a kernel's tree with its modules")
    image = tree / _IMAGE_OF_TREE
    if not image.is_file() or not (tree / _BUILTIN).is_file():
        raise UserError(
            f"--kernel {tree}: has no {_IMAGE_OF_TREE} or no {_BUILTIN}; run `make bzImage "
            "modules` there"
        )
    return image, str(tree)


def _modules_of(image: Path) -> str | None:
    """Where an image's modules lie: in its tree, or as `make install modules_install` leaves
    them."""
    full = image.resolve()
    suffix = _IMAGE_OF_TREE.parts
    if full.parts[-len(suffix) :] == suffix:
        tree = full.parents[len(suffix) - 1]
        if (tree / _BUILTIN).is_file():
            return str(tree)
    installed = full.parent.parent / "lib" / "modules" / _release(image)
    return str(installed) if installed.is_dir() else None


def built_here() -> list[str]:
    """Names of the kernels that were built here (`keep`)."""
    names = (image.parent.name for image in (_cache() / _OWN).glob("*/vmlinuz"))
    return sorted(name for name in names if _OWN_NAME.fullmatch(name))


def own_name(name: str) -> str:
    """The name, unchanged. Raises UserError if it is not valid for a kernel built here."""
    if pinned(name) is not None or not _OWN_NAME.fullmatch(name):
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
    ignored = shutil.ignore_patterns(*(f"{path.name}*" for path in modules if path.is_file()))
    for path in modules:
        if path.is_dir():
            shutil.copytree(path, made / "modules" / path.name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(path, made / "modules")
    shutil.rmtree(target, ignore_errors=True)
    made.rename(target)
    return _built_kernel(name)


def cached(name: str) -> Kernel | None:
    """The downloaded kernel of a name that `pinned` takes; None if it is not here."""
    row = pinned(name)
    folder = _cache() / row.release if row else None
    if row is None or folder is None or not (folder / "vmlinuz").is_file():
        return None
    return Kernel(row.release, folder / "vmlinuz", folder / "modules")


def fetch(name: str, say: debian.Say, source: Path | None = None) -> Kernel:
    """Gets the packages of a kernel, from the network or the folder `source`, and unpacks them into
    the cache. Raises UserError for a name that is not pinned, RunError if that fails."""
    row = require(name)
    _made(_cache())
    with tempfile.TemporaryDirectory(dir=_cache(), prefix=".") as text:
        unpacked = Path(text) / "unpacked"
        debian.unpack(row.packages, unpacked, say, source)
        image = next(unpacked.rglob("vmlinuz*"), None)
        modules = next(unpacked.rglob(f"modules/{row.release}"), None)
        if image is None or modules is None:
            raise RunError(f"{', '.join(row.packages)}: no kernel with modules")
        target = _cache() / row.release
        made = Path(tempfile.mkdtemp(dir=_cache(), prefix="."))
        shutil.move(image, made / "vmlinuz")
        shutil.move(modules, made / "modules")
        try:
            made.rename(target)
        except OSError:  # another process was faster
            shutil.rmtree(made)
        return Kernel(row.release, target / "vmlinuz", target / "modules")


def _exact() -> list[str]:
    return list(dict.fromkeys(row["version"] for row in debian.table()["kernel"]))


def _built_kernel(name: str) -> Kernel:
    folder = _cache() / _OWN / name
    return Kernel(_release(folder / "vmlinuz"), folder / "vmlinuz", folder / "modules")


def _is_image(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            head = file.read(0x210)
    except OSError:
        return False
    return head[_BOOT_MAGIC[0] : _BOOT_MAGIC[0] + 4] == _BOOT_MAGIC[1]


def _release(image: Path) -> str:
    """The release string of an image (boot.rst, kernel_version)."""
    with open_regular(image) as file:
        head = file.read(0x210)
        offset = int.from_bytes(head[0x20E:0x210], "little")
        file.seek(0x200 + offset)
        return file.read(100).split(b"\0")[0].decode("ascii", "replace").split(" ")[0]


def _cache() -> Path:
    return user_cache() / "kernels"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
