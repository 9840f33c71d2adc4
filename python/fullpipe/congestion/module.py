"""Congestion controls as the sources of a kernel module, `fullpipe_cc`, that kbuild and DKMS build
out of the kernel's tree; and its build. Must never know an engine, nor load what it built.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import fullpipe
from fullpipe.base.cache import user_cache
from fullpipe.base.commit import build_version
from fullpipe.base.errors import RunError, UserError
from fullpipe.base.installed import shipped
from fullpipe.congestion import userfiles
from fullpipe.congestion.registry import CcSet
from fullpipe.congestion.userfiles.kept import is_whole, keep_object, remove_object
from fullpipe.congestion.userfiles.kernel_files import KernelFile
from fullpipe.congestion.userfiles.source import source_of

#: The module's name, and its package's for DKMS.
NAME, PACKAGE = "fullpipe_cc", "fullpipe-cc"
FILE = f"{NAME}.ko"
#: A kernel's file that is built alone: its module, and the name that it registers.
JUDGED = "fp_judged"
#: What of the eBPF form the module shares.
_SHARED = ("glue.h", "settings.h")
_LICENSES = ("LICENSE-BSD-3-Clause", "LICENSE-GPL-2.0")
#: What stands around files of the kernel.
_LINUX = "module/linux"
_LOG_LINES = 15
_MOST_KEPT = 16

_KBUILD = """\
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
obj-m := {name}.o
{name}-y := module/core.o {objects}
ccflags-y := {errors}-Wno-unused-function {folders}-I$(src)/cc
# Some kernels have taken calls of later ones, so that their version does not tell.
ccflags-y += $(shell grep -qs cwnd_event_tx_start $(srctree)/include/net/tcp.h && \\
	echo -DFP_HAS_TX_START)
"""
# The kernel's own build only warns.
_KBUILD_ALONE = """\
obj-m := {module}.o
{module}-y := {object}.o
# Warnings name the file, wherever it was built. What it exports the kernel's own module may export
# too, and a second one is refused (linux/export.h).
ccflags-y := -fmacro-prefix-map=$(src)/= -D__DISABLE_EXPORTS
"""
_MAKEFILE = """\
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
KDIR ?= /lib/modules/$(shell uname -r)/build
# Types for eBPF programs, which the module does without, are made by pahole.
NO_TYPES := $(shell command -v pahole >/dev/null || echo CONFIG_DEBUG_INFO_BTF_MODULES=)

modules clean:
	$(MAKE) -C $(KDIR) M=$(CURDIR) $(NO_TYPES) $@
modules_install: modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) INSTALL_MOD_STRIP=1 $@
.PHONY: modules clean modules_install
"""
_DKMS = """\
PACKAGE_NAME="{package}"
PACKAGE_VERSION="{version}"
BUILT_MODULE_NAME[0]="{name}"
DEST_MODULE_LOCATION[0]="/updates/dkms"
MAKE[0]="make KDIR=${{kernel_source_dir}} modules"
CLEAN="make KDIR=${{kernel_source_dir}} clean"
STRIP[0]="yes"
AUTOINSTALL="yes"
"""
_README = """\
{name}: congestion controls of fullpipe {version} as a module of Linux 6.1 and later, 64 bits.

Registers: {kernel_names}.

Build and load (the kernel's headers, make and its compiler are needed):
  make
  insmod {name}.ko            or: make modules_install && depmod && modprobe {name}
Constants are the module's parameters, SET_CONSTANT, in their units (modinfo lists them):
  insmod {name}.ko {example}
They cannot be changed later; /sys/module/{name}/parameters has them.

A kernel that asks for signatures (secure boot, module.sig_enforce, lockdown) refuses the module
until it is signed with a key that the kernel knows. DKMS signs with its own key; as root:
  mokutil --import /var/lib/dkms/mok.pub     asks for a password
and after the next boot, in the firmware's dialogue, "Enroll MOK" with that password. Without DKMS:
  openssl req -new -x509 -newkey rsa:2048 -nodes -days 36500 -subj /CN=modules/ \\
    -outform DER -keyout key.priv -out key.der
  mokutil --import key.der
  /lib/modules/$(uname -r)/build/scripts/sign-file sha256 key.priv key.der {name}.ko
"""


def write_package(sets: Sequence[CcSet], folder: Path, for_dkms: bool = False) -> None:
    """Writes the sources of a module with these sets into a new folder. Raises UserError if it
    exists, or a set cannot be in a module."""
    _check(sets)
    if folder.exists():
        raise UserError(f"{folder}: exists already; name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fullpipe-") as scratch:
        made = Path(scratch) / "package"
        _write(sets, made, for_dkms)
        made.rename(folder)


def build(sets: Sequence[CcSet], tree: Path) -> Path:
    """The module with these sets, built for the kernel whose headers (or whose prepared source) are
    in `tree`; cached. Raises RunError with the compiler's last lines."""
    _check(sets)
    with tempfile.TemporaryDirectory(prefix="fullpipe-module-") as scratch:
        package = Path(scratch) / "package"
        _write(sets, package, for_dkms=False)
        built = _cached(package, tree)
        if is_whole(built):
            return built
        _make(package, FILE, tree, built)
    return built


def build_alone(kernel_file: KernelFile, tree: Path) -> tuple[Path, str]:
    """The module of a kernel's file alone, as the kernel's own build makes it, without anything of
    fullpipe's; cached. Returns it and the name that it registers: JUDGED, so that it can stand
    beside the kernel's own of its name. Raises RunError with the compiler's last lines."""
    text = kernel_file.files[kernel_file.path.name]
    renamed, count = re.subn(
        rf'(\.name\s*=\s*)"{re.escape(kernel_file.name)}"', rf'\1"{JUDGED}"', text
    )
    name = JUDGED if count == 1 else kernel_file.name
    with tempfile.TemporaryDirectory(prefix="fullpipe-module-") as scratch:
        package = Path(scratch)
        for file, content in kernel_file.files.items():
            (package / file).write_text(content, encoding="utf-8")
        if name == JUDGED:
            (package / kernel_file.path.name).write_text(renamed, encoding="utf-8")
        kbuild = _KBUILD_ALONE.format(module=JUDGED, object=kernel_file.path.stem)
        (package / "Kbuild").write_text(kbuild, encoding="utf-8")
        (package / "Makefile").write_text(_MAKEFILE, encoding="utf-8")
        built = _cached(package, tree)
        if not is_whole(built):
            _make(package, f"{JUDGED}.ko", tree, built)
    return built, name


def _make(package: Path, file: str, tree: Path, built: Path) -> None:
    make = ["make", "-s", f"KDIR={tree}", f"-j{os.cpu_count() or 1}", "modules"]
    done = subprocess.run(make, cwd=package, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        output = (done.stdout + done.stderr).replace(f"{package}/", "").splitlines()
        wrong = [line for line in output if ": error: " in line or line.startswith("ERROR: ")]
        words = (wrong or output)[-_LOG_LINES:]
        raise RunError(f"{file} cannot be built with {tree}:\n  " + "\n  ".join(words))
    subprocess.run(["strip", "--strip-debug", file], cwd=package, check=True)
    keep_object(package / file, built)
    modules = sorted(built.parent.glob("*.ko"), key=lambda path: -path.stat().st_mtime)
    for old in modules[_MOST_KEPT:]:
        remove_object(old)


def _check(sets: Sequence[CcSet]) -> None:
    words = [_word(item) for item in sets]
    names = {item.algorithm: item.algorithm.partition("@")[0] for item in sets}
    for item in sets:
        if userfiles.is_external(item.algorithm) and userfiles.is_class(item.algorithm):
            raise UserError(f"{item.name}: a class of Python runs in the simulator alone")
    if len(set(words)) < len(words) or len(set(names.values())) < len(names):
        raise UserError(f"{', '.join(item.name for item in sets)}: two are named alike")


def _cached(package: Path, tree: Path) -> Path:
    """Where the module is kept: under a hash of its sources and of what its kernel is."""
    digest = hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    for name in (".config", "Module.symvers", "include/generated/utsrelease.h"):
        path = tree / name
        digest.update(path.read_bytes() if path.is_file() else b"")
    return user_cache() / "modules" / f"{digest.hexdigest()[:32]}.ko"


def _write(sets: Sequence[CcSet], folder: Path, for_dkms: bool) -> None:
    for name in ("module", "cc", "bpf"):
        (folder / name).mkdir(parents=True)
    for path in sorted(shipped("module").glob("*.[ch]")):
        shutil.copy(path, folder / "module")
    for path in (*shipped("cc").glob("*.h"), *(shipped("cc") / name for name in _LICENSES)):
        shutil.copy(path, folder / "cc")
    for name in _SHARED:
        shutil.copy(shipped("bpf") / name, folder / "bpf")
    algorithms = list(dict.fromkeys(item.algorithm for item in sets))
    for algorithm in algorithms:
        name, main = _sources(algorithm, folder)
        text = _algorithm(algorithm, name, main, [s for s in sets if s.algorithm == algorithm])
        (folder / f"algorithm_{name}.c").write_text(text, encoding="utf-8")
    names = [_name(algorithm) for algorithm in algorithms]
    kernel_names = [item.kernel_name for item in sets]
    objects = [f"algorithm_{name}.o" for name in names]
    has_kernels = (folder / _LINUX).exists()
    if has_kernels:
        objects.insert(0, f"{_LINUX}/kernel_file.o")
    facts = {
        "name": NAME,
        "package": PACKAGE,
        "version": fullpipe.__version__,
        "objects": " ".join(objects),
        # Before cc/, whose headers of the same names are the simulator's.
        "folders": f"-I$(src)/{_LINUX} " if has_kernels else "",
        "kernel_names": ", ".join(kernel_names),
        "example": _example(sets[0]),
        # Files of users are what kernels only warn of.
        "errors": "" if any(map(userfiles.is_external, algorithms)) else "-Werror ",
    }
    (folder / "module" / "package.h").write_text(_list(names, sets, for_dkms), encoding="utf-8")
    (folder / "Kbuild").write_text(_KBUILD.format(**facts), encoding="utf-8")
    (folder / "Makefile").write_text(_MAKEFILE, encoding="utf-8")
    (folder / "README").write_text(_README.format(**facts), encoding="utf-8")
    if for_dkms:
        (folder / "dkms.conf").write_text(_DKMS.format(**facts), encoding="utf-8")


def _sources(algorithm: str, folder: Path) -> tuple[str, str]:
    """The algorithm's name in C and its file in the package."""
    if not userfiles.is_external(algorithm):
        return algorithm, f"cc/{algorithm}.h"
    source = source_of(algorithm)
    for name, text in source.files.items():
        target = folder / "user" / source.name / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    if source.is_kernels:
        shutil.copytree(shipped("module") / "linux", folder / _LINUX, dirs_exist_ok=True)
    return source.name, f"user/{source.name}/{source.main}"


def _name(algorithm: str) -> str:
    return source_of(algorithm).name if userfiles.is_external(algorithm) else algorithm


def _algorithm(algorithm: str, name: str, main: str, sets: Sequence[CcSet]) -> str:
    lines = [
        "/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */",
        f"/* {name}, and the sets of its constants. */",
        '#include "module/core.h"',
        '#include "cc/params.h"',
        f'#include "{main}"',
        f"#define FP_ALGORITHM {name}",
        f'#define FP_IDENTITY "{algorithm}"',
        '#define FP_HOST "../module/host.c"',
        '#include "bpf/glue.h"',
        '#include "module/ops.c"',
    ]
    for item in sets:
        lines += [
            f"#define FP_SET {_word(item)}",
            f'#define FP_KERNEL_NAME "{item.kernel_name}"',
            f"#define FP_VALUES {', '.join(f'{value}u' for value in item.values)}",
            '#include "module/set.h"',
        ]
    return "\n".join(lines) + "\n"


def _list(names: Sequence[str], sets: Sequence[CcSet], for_dkms: bool) -> str:
    # Otherwise each commit would rebuild the virtual machine's module.
    version = build_version() if for_dkms else fullpipe.__version__
    return (
        "/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */\n"
        "/* What is in this package. */\n"
        f"#define FP_PACKAGE_ALGORITHMS(A) {' '.join(f'A({name})' for name in names)}\n"
        f"#define FP_PACKAGE_SETS(S) {' '.join(f'S({_word(item)})' for item in sets)}\n"
        f'#define FP_PACKAGE_TITLE "{", ".join(item.kernel_name for item in sets)}"\n'
        f'#define FP_PACKAGE_VERSION "{version}"\n'
    )


def _word(item: CcSet) -> str:
    """The set's name as C and the module's parameters have it."""
    return re.sub(r"\W", "_", item.name if item.name.isascii() else item.kernel_name)


def _example(item: CcSet) -> str:
    if not item.params:
        return ""
    param, value = item.params[0], item.values[0]
    return f"{_word(item)}_{param.name}={param.shortest(value)}"
