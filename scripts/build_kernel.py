"""A kernel for the virtual machine, kept in the user's cache under a name. Debian's own binary, and
beside its modules one more, which Debian's source has and its configuration leaves out, or which a
patch of the user's changes (a minute and a half of one core):

    python scripts/build_kernel.py --module net/sched/sch_dualpi2 [--patch FILE]
    fullpipe run scenario.toml --engine vm --kernel stock-7.3

Or a whole one with what the machine needs and nothing else (qemu/kernel.config), of Debian's source
or of a tree of the user's:

    python scripts/build_kernel.py --whole [--patch FILE] [--config FILE] [--source DIR]
    fullpipe run scenario.toml --engine vm --kernel slim-7.3
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fullpipe.base.errors import RunError, UserError
from fullpipe.cli import INTERRUPTED
from fullpipe.engines.vm import builders, kernels
from fullpipe.engines.vm.debian import Archive

_MODULE = re.compile(r"(?:\w+/)+[\w-]+")
#: What a whole kernel has.
_OPTIONS = Path(__file__).resolve().parents[1] / "qemu/kernel.config"
_OPTION = re.compile(r"CONFIG_(\w+)=.+")
#: A file that `patch` reads has these.
_DIFF = re.compile(r"^--- .*\n\+\+\+ .*\n@@ ", re.MULTILINE)
#: Of what `uname -r` says beyond the version.
_LOCAL_BYTES_MAX = 40
#: Makes builds reproducible.
_REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_USER": "fullpipe",
    "KBUILD_BUILD_HOST": "fullpipe",
}
_LOG_LINES = 15


def with_module(given: argparse.Namespace, name: str, work: Path) -> kernels.Kernel:
    """Kept under that name: Debian's newest kernel of the version, and the module."""
    # Debian updates image, headers and source together, and removes the old ones.
    stock = kernels.fetch(given.version)
    tree = _debians(given.version, work)
    apply(given.patch, tree, work)
    code = tree / f"{given.module}.c"
    makefile = code.parent / "Makefile"
    goal = re.search(
        rf"^obj-\$\((CONFIG_\w+)\)\s*\+?=.*\b{re.escape(code.stem)}\.o",
        makefile.read_text() if makefile.is_file() else "",
        re.MULTILINE,
    )
    if goal is None or not code.is_file():
        raise UserError(
            f"--module {given.module}: linux-source-{given.version} has no module of that file; "
            "must be like net/sched/sch_dualpi2"
        )
    headers = _unpacked(f"linux-headers-{stock.release}", given.version, work)
    configured = next(headers.rglob("Module.symvers")).parent
    made = _folder(work / "made")
    shutil.copy(configured / ".config", made)
    # Its own signature the guest does not ask for; a program in Rust it is not.
    change = ["-m", goal[1].removeprefix("CONFIG_"), "-d", "RUST", "-d", "MODULE_SIG_ALL"]
    keys = ["--set-str", "MODULE_SIG_KEY", "", "--set-str", "SYSTEM_TRUSTED_KEYS", ""]
    _run(["scripts/config", "--file", str(made / ".config"), *change, *keys], tree, work)
    local = re.sub(r"^[0-9.]+", "", stock.release)
    make = ["make", "-s", f"O={made}", f"-j{given.jobs}", f"LOCALVERSION={local}"]
    _say(f"building {given.module} for {stock.release}")
    _run([*make, "olddefconfig"], tree, work)
    _run([*make, "modules_prepare"], tree, work)
    release = (made / "include/config/kernel.release").read_text().strip()
    if release != stock.release:
        raise RunError(f"Debian's source calls itself {release}, its binary {stock.release}")
    shutil.copy(configured / "Module.symvers", made)
    alone = _folder(work / "alone")
    shutil.copy(code, alone)
    (alone / "Makefile").write_text(f"obj-m := {code.stem}.o\n")
    _run([*make, f"M={alone}", "modules"], tree, work)
    _run(["strip", "--strip-debug", f"{code.stem}.ko"], alone, work)
    return kernels.keep(name, stock.image, [stock.modules, alone / f"{code.stem}.ko"])


def whole(given: argparse.Namespace, name: str, work: Path) -> kernels.Kernel:
    """Kept under that name: a kernel with all that the machine needs built in, and no modules."""
    tree = given.source.resolve() if given.source else _debians(given.version, work)
    apply(given.patch, tree, work)
    made = _folder(work / "made")
    files = [_OPTIONS, *([given.config] if given.config else [])]
    wanted = work / "options"
    wanted.write_text("\n".join(path.read_text(encoding="utf-8") for path in files))
    make = ["make", "-s", f"O={made}", f"-j{given.jobs}"]
    make += [f"LOCALVERSION=-{name[:_LOCAL_BYTES_MAX]}"]
    _run([*make, f"KCONFIG_ALLCONFIG={wanted}", "allnoconfig"], tree, work)
    for path in files:
        unknown, refused = left_out(path, made / ".config", tree)
        # What is ours covers several versions; what is the user's is for this one.
        if refused or (unknown and path != _OPTIONS):
            raise UserError(
                f"{path}: this source does not take {', '.join([*refused, *unknown])}; must be "
                "options of it, with those that they depend on"
            )
        if unknown:
            _say(f"without {', '.join(unknown)}, which this source has not")
    _say("building the kernel")
    _run([*make, "bzImage"], tree, work)
    return kernels.keep(name, made / "arch/x86/boot/bzImage", [made / "modules.builtin"])


def left_out(wanted: Path, config: Path, tree: Path) -> tuple[list[str], list[str]]:
    """Options of a file that a configuration made of it does not have: those that no Kconfig of the
    tree knows, and those that it knows and refuses."""
    have = set(config.read_text(encoding="utf-8").split("\n"))
    lines = wanted.read_text(encoding="utf-8").split("\n")
    missing = [match for match in map(_OPTION.fullmatch, lines) if match and match[0] not in have]
    if not missing:
        return [], []
    known: set[str] = set()
    for path in tree.rglob("Kconfig*"):
        text = path.read_text(encoding="utf-8", errors="replace")
        known.update(re.findall(r"^\s*(?:menu)?config\s+(\w+)", text, re.MULTILINE))
    unknown = [match[0] for match in missing if match[1] not in known]
    return unknown, [match[0] for match in missing if match[1] in known]


def apply(patches: Sequence[Path], tree: Path, work: Path) -> None:
    """Changes the tree. Raises UserError where a patch is not of it."""
    for patch in patches:
        _say(f"applying {patch}")
        try:
            _run(["patch", "-p1", "--forward", "--batch", "-i", str(patch.resolve())], tree, work)
        except RunError as error:
            raise UserError(
                f"--patch {patch}: does not fit {tree.name}; must be a diff of it as `git diff` "
                f"writes one (a/net/..., b/net/...)\n{error}"
            ) from None


def _debians(version: str, work: Path) -> Path:
    """Debian's source of that version, its own patches in it, unpacked."""
    package = f"linux-source-{version}"
    files = _unpacked(package, version, work)
    packed = next(files.rglob(f"{package}.tar.xz"), None)
    if packed is None:
        raise RunError(f"{package} has no {package}.tar.xz")
    _say("unpacking it")
    _run(["tar", "-xf", str(packed)], work, work)
    packed.unlink()
    return work / package


def _unpacked(package: str, version: str, work: Path) -> Path:
    """The files of one of Debian's packages."""
    _say(f"downloading {package}")
    folder = _folder(work / package.replace("linux-", "debian-"))
    archive = Archive(folder, kernels.VERSIONS[version].suite)
    if package not in archive.names(package):
        archive.refresh()
    archive.unpack([package], folder / "files")
    return folder / "files"


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _say(sentence: str) -> None:
    print(sentence, flush=True)


def _run(command: list[str], folder: Path, work: Path) -> None:
    """Runs a command. Raises RunError with the last lines of its output if it fails."""
    log = work / "log"
    with log.open("wb") as output:
        # A session of its own: what is interrupted ends with all that it has started, and before
        # its folder goes.
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, env={**os.environ, **_REPRODUCIBLE}, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if process.returncode != 0:
        words = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        raise RunError(f"{command[0]} failed:\n  " + "\n  ".join(words))


def _check_programs() -> None:
    missing = builders.missing_packages()
    if missing:
        raise UserError(f"missing; as root: {builders.install_command(missing)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--version", choices=list(kernels.VERSIONS), default="7.3", help="of Debian's; 7.3"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--module", metavar="PATH", help="like net/sched/sch_dualpi2")
    what.add_argument("--whole", action="store_true", help="a small kernel without modules")
    parser.add_argument(
        "--patch", type=Path, metavar="FILE", action="append", default=[], help="for patch -p1"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="more options, CONFIG_X=y")
    parser.add_argument("--source", type=Path, metavar="DIR", help="a tree; else Debian's")
    parser.add_argument("--name", help="for --kernel; stock-VERSION or slim-VERSION")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="all processors")
    given = parser.parse_args()
    _check(given)
    return given


def _check(given: argparse.Namespace) -> None:
    for path in given.patch:
        if not path.is_file():
            raise UserError(f"--patch {path}: no such file")
        if not _DIFF.search(path.read_text(encoding="utf-8", errors="replace")):
            raise UserError(f"--patch {path}: is no patch; must be what `git diff` writes")
    if given.module and not _MODULE.fullmatch(given.module):
        raise UserError(f"--module {given.module}: must be a path like net/sched/NAME")
    if given.module and (given.config or given.source):
        raise UserError("--config, --source: only with --whole")
    if given.config and not given.config.is_file():
        raise UserError(f"--config {given.config}: no such file")
    if given.source and not given.name:
        raise UserError("--source: needs --name NAME, by which --kernel knows what is built of it")
    if given.source and given.patch:
        raise UserError("--patch: not with --source, which stays as it is; apply it there")
    if given.source and not (given.source / "arch/x86/Kconfig").is_file():
        raise UserError(f"--source {given.source}: must be the folder of a kernel's source")
    if given.source and (given.source / ".config").exists():
        raise UserError(f"--source {given.source}: was built in; `make mrproper` there first")


def main() -> int:
    """Builds the kernel, stores it and prints its name. An interrupted build leaves nothing."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        given = _arguments()
        build, kind = (whole, "slim") if given.whole else (with_module, "stock")
        name = kernels.own_name(given.name or f"{kind}-{given.version}")
        _check_programs()
        with tempfile.TemporaryDirectory(prefix="fullpipe-kernel-") as folder:
            kernel = build(given, name, Path(folder))
    except UserError as error:
        print(f"build_kernel: {error}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"build_kernel: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    print(f"built {kernel.release}; for the virtual machine: --kernel {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
