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
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fullpipe.base.errors import RunError, UserError
from fullpipe.cli import INTERRUPTED
from fullpipe.engines.vm import builders, debian, kernels, source

_MODULE = re.compile(r"(?:\w+/)+[\w-]+")
#: What a whole kernel has.
_OPTIONS = (Path(__file__).resolve().parents[1] / "qemu/kernel.config", source.NETWORK)
#: A file that `patch` reads has these.
_DIFF = re.compile(r"^--- .*\n\+\+\+ .*\n@@ ", re.MULTILINE)
#: Of what `uname -r` says beyond the version.
_LOCAL_BYTES_MAX = 40


def with_module(given: argparse.Namespace, name: str, work: Path) -> kernels.Kernel:
    """Kept under that name: Debian's newest kernel of the version, and the module."""
    stock = kernels.fetch(given.version, _say)
    tree = source.unpacked(given.version, work, _say)
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
    pinned = kernels.pinned(given.version)
    assert pinned is not None  # since it was fetched
    debian.unpack(pinned.headers[:1], work / "headers", _say)
    configured = next((work / "headers").rglob("Module.symvers")).parent
    made = source.folder(work / "made")
    shutil.copy(configured / ".config", made)
    # Its own signature the guest does not ask for; a program in Rust it is not.
    change = ["-m", goal[1].removeprefix("CONFIG_"), "-d", "RUST", "-d", "MODULE_SIG_ALL"]
    keys = ["--set-str", "MODULE_SIG_KEY", "", "--set-str", "SYSTEM_TRUSTED_KEYS", ""]
    source.run(["scripts/config", "--file", str(made / ".config"), *change, *keys], tree, work)
    local = re.sub(r"^[0-9.]+", "", stock.release)
    make = ["make", "-s", f"O={made}", f"-j{given.jobs}", f"LOCALVERSION={local}"]
    _say(f"building {given.module} for {stock.release}")
    source.run([*make, "olddefconfig"], tree, work)
    source.run([*make, "modules_prepare"], tree, work)
    release = (made / "include/config/kernel.release").read_text().strip()
    if release != stock.release:
        raise RunError(f"Debian's source calls itself {release}, its binary {stock.release}")
    shutil.copy(configured / "Module.symvers", made)
    alone = source.folder(work / "alone")
    shutil.copy(code, alone)
    (alone / "Makefile").write_text(f"obj-m := {code.stem}.o\n")
    source.run([*make, f"M={alone}", "modules"], tree, work)
    source.run(["strip", "--strip-debug", f"{code.stem}.ko"], alone, work)
    return kernels.keep(name, stock.image, [stock.modules, alone / f"{code.stem}.ko"])


def whole(given: argparse.Namespace, name: str, work: Path) -> kernels.Kernel:
    """Kept under that name: a kernel with all that the machine needs built in, and no modules."""
    tree = given.source.resolve() if given.source else source.unpacked(given.version, work, _say)
    apply(given.patch, tree, work)
    made = source.folder(work / "made")
    files = [*_OPTIONS, *([given.config] if given.config else [])]
    make = ["make", "-s", f"O={made}", f"-j{given.jobs}"]
    make += [f"LOCALVERSION=-{name[:_LOCAL_BYTES_MAX]}"]
    source.configure(make, files, _OPTIONS, made / ".config", tree, work, _say)
    _say("building the kernel")
    source.run([*make, "bzImage"], tree, work)
    return kernels.keep(name, made / "arch/x86/boot/bzImage", [made / "modules.builtin"])


def apply(patches: Sequence[Path], tree: Path, work: Path) -> None:
    """Changes the tree. Raises UserError where a patch is not of it."""
    for patch in patches:
        _say(f"applying {patch}")
        try:
            source.apply(patch, tree, work)
        except RunError as error:
            raise UserError(
                f"--patch {patch}: does not fit {tree.name}; must be a diff of it as `git diff` "
                f"writes one (a/net/..., b/net/...)\n{error}"
            ) from None


def _say(sentence: str) -> None:
    print(sentence, flush=True)


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
