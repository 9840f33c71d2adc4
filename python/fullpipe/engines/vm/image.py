"""The machine's user space as an initramfs: the agent and the modules that any plan may need, so
that one booted machine serves all plans. The same content gives the same bytes, which the user's
cache keeps.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.congestion import registry
from fullpipe.engines import assets
from fullpipe.engines.rows import has_policer, qdiscs
from fullpipe.engines.vm.kernels import Kernel
from fullpipe.plan.plan import Plan
from fullpipe.plan.senders import cc_choices
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

#: What every topology is made of.
_ALWAYS = ("veth", "sch_htb", "sch_netem")
#: What polices.
_POLICER = ("sch_prio", "cls_matchall", "act_police")
_ENDINGS = (".ko", ".ko.xz")
_SIGNATURE_MARK = b"~Module signature appended~\n"
_SIGNATURE_FIELDS_BYTES = 12


#: File names of a kernel's congestion control modules; and those that match but are not one.
_CC_PREFIX, _NO_CC = "tcp_", ("tcp_diag",)
_MOST_KEPT = 8
#: The machine of eBPF in an ELF file (e_machine, elf(5)).
_EM_BPF = (247).to_bytes(2, "little")


def build(
    kernel: Kernel, module_files: Mapping[str, Path], folder: Path, ready: bool = True
) -> Path:
    """Path of the initramfs (cpio, newc) for a kernel with these modules, cached in `folder` under
    a hash of its content. `ready`: with all congestion controls, for a machine that boots once."""
    name = _name_of_sources(module_files, ready)
    for cached in folder.glob(f"{name}-*"):
        digest = cached.name.removeprefix(f"{name}-")
        with suppress(FileNotFoundError):  # another process may have removed it
            if digest == hashlib.sha256(cached.read_bytes()).hexdigest():
                # A machine is about to read it: it must not be the next one that is removed.
                os.utime(cached)
                return cached
    content = _content(kernel, module_files, ready)
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, partial = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    cached = folder / f"{name}-{hashlib.sha256(content).hexdigest()}"
    Path(partial).rename(cached)
    _forget_oldest(folder)
    return cached


def _forget_oldest(folder: Path) -> None:
    """Removes the images that were not used for longest, as other processes may do meanwhile."""
    used = {}
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            used[path] = path.stat().st_mtime_ns
    for path in sorted(used, key=used.__getitem__, reverse=True)[_MOST_KEPT:]:
        path.unlink(missing_ok=True)


def modules(
    plan: Plan, kernel: Kernel, module_files: Mapping[str, Path], brings_ccs: bool = False
) -> list[str]:
    """Names of the modules that a plan needs and that the kernel has not built in. Raises UserError
    if the kernel lacks one; with `brings_ccs` a module of the user's has the congestion controls
    that the kernel does not have."""
    wanted = _wanted(plan)
    if brings_ccs:
        wanted = [
            name for name in wanted if name in module_files or not name.startswith(_CC_PREFIX)
        ]
    return needed(wanted, kernel, module_files)


def needed(names: Sequence[str], kernel: Kernel, module_files: Mapping[str, Path]) -> list[str]:
    """Those of the modules that the kernel has not built in. Raises UserError if it lacks one."""
    builtin = _builtin(kernel)
    wanted = [name for name in names if name not in builtin]
    for name in wanted:
        if name not in module_files:
            missing = (
                f"no congestion control kernel:{name.removeprefix(_CC_PREFIX)}"
                if name.startswith(_CC_PREFIX)
                else f"no module {name}"
            )
            raise UserError(f"kernel {kernel.release}: {missing} in {kernel.modules.name}")
    return wanted


def cc_modules(plan: Plan, module_files: Mapping[str, Path]) -> dict[str, bytes]:
    """The modules of the kernel's own congestion controls that a plan names, by these names."""
    files = {name: module_files.get(f"{_CC_PREFIX}{name}") for name in kernel_ccs(plan)}
    return {name: _read(path) for name, path in files.items() if path}


def own_module(path: Path) -> tuple[str, bytes]:
    """A module, or an object of eBPF programs, that the user built: its name in the machine, and
    its content. Raises UserError if the file is none."""
    try:
        content = _read(path)
    except (OSError, lzma.LZMAError) as error:
        raise UserError(f"--module {path}: cannot be read: {error}") from None
    stem = path.name.partition(".")[0]
    if content[18:20] == _EM_BPF and b".struct_ops" in content:
        return f"own_{stem}.bpf.o", content
    if not content.startswith(b"\x7fELF") or b"\0vermagic=" not in content:
        raise UserError(
            f"--module {path}: is no kernel module (NAME.ko, as `make modules` builds), nor eBPF "
            "programs with a struct_ops (`clang -g -O2 -target bpf -c`)"
        )
    return f"{stem}.ko", content


def objects(plan: Plan) -> dict[str, bytes]:
    """The eBPF objects that a plan needs, by the names of their files."""
    return {
        f"{algorithm}.bpf.o": assets.bpf_object(algorithm).read_bytes()
        for algorithm in assets.algorithms(plan)
    }


def counted(plan: Plan) -> dict[str, bytes]:
    """The eBPF object that measures the cost of the kernel's own CUBIC (bpf/kernel_cubic.c)."""
    if "cubic" not in kernel_ccs(plan):
        return {}
    return {assets.kernel_cubic().name: assets.kernel_cubic().read_bytes()}


def digest(initramfs: Path, objects: Mapping[str, bytes]) -> str:
    """A hash of everything that a guest runs apart from its kernel."""
    whole = hashlib.sha256(initramfs.name.partition("-")[2].encode())
    for name, content in sorted(objects.items()):
        whole.update(name.encode() + hashlib.sha256(content).digest())
    return whole.hexdigest()


def _content(kernel: Kernel, module_files: Mapping[str, Path], ready: bool) -> bytes:
    files = {"init": assets.guest_agent().read_bytes(), "ready/sets.json": _sets(ready)}
    for path in _ready_objects(ready):
        files[f"ready/{path.name}"] = path.read_bytes()
    order = []
    for name, content in ready_modules(kernel, module_files):
        files[f"modules/{name}.ko"] = content
        order.append(name)
    files["modules/order"] = "\n".join(order).encode()
    return _cpio(files, ("bpf", "dev", "modules", "proc", "ready", "run", "sys", "tmp"))


def _sets(ready: bool) -> bytes:
    """The congestion controls that a machine loads when it boots: all built-in ones, or none."""
    available = registry.cc_sets().values() if ready else ()
    sets = [{"algorithm": item.algorithm, "params": item.values} for item in available]
    return json.dumps(sets).encode()


def _ready_objects(ready: bool) -> list[Path]:
    names = {item.algorithm for item in registry.cc_sets().values()} if ready else set()
    return [*(assets.bpf_object(name) for name in sorted(names)), assets.sockets()]


def ready_modules(kernel: Kernel, module_files: Mapping[str, Path]) -> Iterable[tuple[str, bytes]]:
    """Names and contents of all modules that a plan may need, in an order in which they load."""
    ccs = [name for name in module_files if name.startswith(_CC_PREFIX) and name not in _NO_CC]
    qdiscs = [name for row in DISCIPLINES.values() for name in row.modules]
    return _load_order([*_ALWAYS, *_POLICER, *qdiscs, *sorted(ccs)], kernel, module_files)


def module_files(kernel: Kernel) -> dict[str, Path]:
    """The files of a kernel's modules by name."""
    return {
        file.split(".")[0].replace("-", "_"): Path(folder, file)
        for folder, _, files in sorted(os.walk(kernel.modules))
        for file in files
        if file.endswith(_ENDINGS)
    }


def _name_of_sources(module_files: Mapping[str, Path], ready: bool) -> str:
    """A name that changes when any source file changes."""
    facts: list[object] = [_sets(ready)]
    for path in (assets.guest_agent(), *_ready_objects(ready), *module_files.values()):
        status = path.stat()
        facts.append((str(path), status.st_size, status.st_mtime_ns))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def kernel_ccs(plan: Plan) -> list[str]:
    """The kernel's own congestion controls that a plan names."""
    names = {choice["name"] for _, choice in cc_choices(plan) if choice["algorithm"] is None}
    return sorted(name.removeprefix("kernel:") for name in names)


def _wanted(plan: Plan) -> list[str]:
    wanted = [*_ALWAYS]
    for kind in qdiscs(plan):
        wanted += DISCIPLINES[kind].modules
    if has_policer(plan):
        wanted += _POLICER
    if plan["host"]["pacing"] == "fq":
        wanted.append("sch_fq")
    wanted += [f"{_CC_PREFIX}{name}" for name in kernel_ccs(plan) if name not in ("reno", "cubic")]
    return list(dict.fromkeys(wanted))


def _load_order(
    wanted: Sequence[str], kernel: Kernel, module_files: Mapping[str, Path]
) -> Iterable[tuple[str, bytes]]:
    """Modules in load order, dependencies first, without those that are built in or missing."""
    builtin = _builtin(kernel)
    loaded: set[str] = set()

    def visit(name: str) -> Iterable[tuple[str, bytes]]:
        if name in builtin or name in loaded or name not in module_files:
            return
        loaded.add(name)
        content = _read(module_files[name])
        for needed in _depends(content):
            yield from visit(needed)
        yield name, content

    for name in wanted:
        yield from visit(name)


def is_builtin(name: str, kernel: Kernel) -> bool:
    """Whether a kernel has a congestion control built in."""
    return f"{_CC_PREFIX}{name}" in _builtin(kernel)


def _builtin(kernel: Kernel) -> set[str]:
    builtin = next(kernel.modules.rglob("modules.builtin"), None)
    lines = builtin.read_text().split() if builtin else []
    return {Path(line).stem.replace("-", "_") for line in lines}


def _read(path: Path) -> bytes:
    content = path.read_bytes()
    return _unsigned(lzma.decompress(content) if path.suffix == ".xz" else content)


def _unsigned(module: bytes) -> bytes:
    """The module without its signature (kernel/module_signature.h). To check one costs the guest
    60 million instructions."""
    if not module.endswith(_SIGNATURE_MARK):
        return module
    end = len(module) - len(_SIGNATURE_MARK)
    signature_bytes = int.from_bytes(module[end - 4 : end], "big")
    return module[: end - _SIGNATURE_FIELDS_BYTES - signature_bytes]


def _depends(module: bytes) -> list[str]:
    """Names in a module's .modinfo (`depends=a,b`)."""
    start = module.find(b"\0depends=")
    if start < 0:
        return []
    names = module[start + len(b"\0depends=") :].split(b"\0", 1)[0].decode("ascii", "replace")
    return [name.replace("-", "_") for name in names.split(",") if name]


def _cpio(files: Mapping[str, bytes], folders: Sequence[str]) -> bytes:
    """A cpio archive in the format newc (Documentation/driver-api/early-userspace)."""
    parts = [_entry(name, stat.S_IFDIR | 0o755, b"") for name in sorted(folders)]
    parts += [_entry(name, stat.S_IFREG | 0o755, files[name]) for name in sorted(files)]
    parts.append(_entry("TRAILER!!!", 0, b""))
    return b"".join(parts)


def _entry(name: str, mode: int, content: bytes) -> bytes:
    encoded = name.encode() + b"\0"
    fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
