"""Kernels for User Mode Linux: built from Debian's source with a small patch of ours, and kept in
the user's cache with the headers that modules need. It knows nothing of plans.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from fullpipe.base.cache import user_cache
from fullpipe.base.errors import RunError, UserError
from fullpipe.engines.vm import builders, kernels, source
from fullpipe.engines.vm.kernels import Kernel
from fullpipe.engines.vm.source import Say

BUILD = "fullpipe doctor --build uml"
#: What a kernel is that is there and is not taken.
OUTDATED = "built with other options"
_OPTIONS = (source.CONFIG / "uml.config", source.NETWORK)
_PATCH = source.CONFIG / "uml.patch"
#: What a module's build reads: files, folders, and of other folders only headers and makefiles.
_FILES = ("Kbuild", "Makefile", "Module.symvers", ".config", "modules.builtin")
_FOLDERS = ("scripts", "include")
_FOLDERS_OF_HEADERS = ("arch/um", "arch/x86")
_HEADERS = ("*.h", "Makefile*", "Kbuild*")
_MAKE = ("make", "-s", "ARCH=um")
#: The file beside a kernel that says what it was built with.
_STAMP = "stamp"


def find(version: str | None, modules: str | None) -> Kernel:
    """The kernel of a version, by default the default one. Raises UserError with the command that
    builds it."""
    if modules is not None:
        raise UserError("--modules: not with --machine uml, whose kernels have all built in")
    name = version or kernels.DEFAULT
    if name not in kernels.VERSIONS:
        raise UserError(
            f"--kernel {name}: --machine uml has builds of its own; must be "
            f"{', '.join(kernels.VERSIONS)}"
        )
    kernel = cached(name)
    if kernel is None:
        is_there = name in outdated()
        built = [f"--kernel {release}" for release in versions()]
        raise UserError(
            f"the kernel {name} for --machine uml is {OUTDATED if is_there else 'not built'}; "
            f"`{command(name)}` builds it{' again' if is_there else ''}"
            + (f" (built: {', '.join(built)})" if built else "")
        )
    return kernel


def cached(version: str) -> Kernel | None:
    """The kernel of that version, if it was built here as it is built today; otherwise None."""
    if version not in versions():
        return None
    folder = _folder(version)
    release = (folder / "release").read_text(encoding="utf-8")
    return Kernel(release, folder / "linux", folder / "tree")


def versions() -> list[str]:
    """Versions of the kernels that were built here as they are built today."""
    return [version for version in _built() if _stamp_of(version) == stamp(version)]


def outdated() -> list[str]:
    """Versions of the kernels that were built here with another patch or other options."""
    return [version for version in _built() if _stamp_of(version) != stamp(version)]


def stamp(version: str) -> str:
    """A hash of the version, the patch and the options. Debian's updates of a version's source do
    not count."""
    digest = hashlib.sha256(version.encode())
    for path in (_PATCH, *_OPTIONS):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def command(version: str) -> str:
    """What builds the kernel of a version."""
    return BUILD if version == kernels.DEFAULT else f"{BUILD} --kernel {version}"


def build(version: str, say: Say) -> Kernel:
    """Builds and keeps the kernel of a version. Raises UserError if a program is missing, RunError
    if a step fails."""
    missing = builders.missing_packages(types=False)
    if missing:
        raise UserError(f"missing; as root: {builders.install_command(missing)}")
    target = _folder(version)
    target.parent.mkdir(parents=True, exist_ok=True)
    built_from = stamp(version)
    with tempfile.TemporaryDirectory(prefix="fullpipe-uml-", dir=target.parent) as text:
        work = Path(text)
        tree = source.unpacked(version, work, say)
        source.apply(_PATCH, tree, work)
        source.configure(_MAKE, _OPTIONS, _OPTIONS, tree / ".config", tree, work, say)
        say("building the kernel, some 8 CPU minutes")
        source.run([*_MAKE, f"-j{os.cpu_count() or 1}", "linux", "modules_prepare"], tree, work)
        made = source.folder(work / "made")
        shutil.copy(tree / "linux", made)
        release = (tree / "include/config/kernel.release").read_text(encoding="utf-8").strip()
        (made / "release").write_text(release, encoding="utf-8")
        (made / _STAMP).write_text(built_from, encoding="utf-8")
        # Every symbol is in the kernel itself, so that this is what modules are linked against.
        shutil.copy(tree / "vmlinux.symvers", tree / "Module.symvers")
        _keep_headers(tree, made / "tree")
        source.run(["strip", str(made / "linux")], work, work)
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    kernel = cached(version)
    if kernel is None:
        raise RunError(f"{target}: the kernel is not there")
    return kernel


def _keep_headers(tree: Path, target: Path) -> None:
    """Copies what modules need to be built, and the list of what is built in."""
    target.mkdir()
    for name in _FILES:
        shutil.copy(tree / name, target)
    # So that modules need not say for which machine they are.
    makefile = target / "Makefile"
    makefile.write_text("ARCH ?= um\n" + makefile.read_text(encoding="utf-8"), encoding="utf-8")
    for name in _FOLDERS:
        shutil.copytree(tree / name, target / name, symlinks=True)
    for name in _FOLDERS_OF_HEADERS:
        for path in (header for glob in _HEADERS for header in (tree / name).rglob(glob)):
            inside = target / path.relative_to(tree)
            inside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, inside, follow_symlinks=False)


def _built() -> list[str]:
    return [version for version in kernels.VERSIONS if (_folder(version) / "linux").is_file()]


def _stamp_of(version: str) -> str | None:
    file = _folder(version) / _STAMP
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _folder(version: str) -> Path:
    return user_cache() / "uml" / version
