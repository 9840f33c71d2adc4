"""The machine's whole user space as an initramfs: the agent, the modules and eBPF objects that a
plan needs, and nothing else. The same content gives the same bytes.
"""

from __future__ import annotations

import lzma
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fullpipe.engines import assets
from fullpipe.engines.vm.kernels import Kernel
from fullpipe.errors import UserError

#: What every topology is made of.
_ALWAYS = ("veth", "sch_htb", "sch_netem")
_QDISC_MODULES = {
    "fifo": (),
    "fq": ("sch_fq",),
    "codel": ("sch_codel",),
    "fq_codel": ("sch_fq_codel",),
    "red": ("sch_red",),
    "cake": ("sch_cake",),
    "pie": ("sch_pie",),
    "fq_pie": ("sch_fq_pie",),
    "sfq": ("sch_sfq",),
    "tbf": ("sch_tbf",),
    "prio": ("sch_prio", "cls_u32"),
    "dualpi2": ("sch_dualpi2",),
}
_ENDINGS = (".ko", ".ko.xz")
_SIGNATURE_MARK = b"~Module signature appended~\n"
_SIGNATURE_FIELDS_BYTES = 12


def build(plan: Mapping[str, Any], kernel: Kernel) -> bytes:
    """The initramfs (cpio, newc) for a plan. Raises UserError where the kernel lacks a module."""
    files: dict[str, bytes] = {"init": assets.agent().read_bytes()}
    order = []
    for name, content in _load_order(_modules(plan), kernel):
        files[f"modules/{name}.ko"] = content
        order.append(f"{name}.ko")
    files["modules/order"] = "\n".join(order).encode()
    for algorithm in assets.algorithms(plan):
        files[f"bpf/{algorithm}.bpf.o"] = assets.bpf_object(algorithm).read_bytes()
    return _cpio(files, ("bpf", "dev", "modules", "proc", "run", "sys", "tmp"))


def kernel_ccs(plan: Mapping[str, Any]) -> list[str]:
    """The kernel's own congestion controls that a plan names."""
    names = {flow["cc"]["name"] for flow in plan["flows"] if flow["cc"]["algorithm"] is None}
    return sorted(name.removeprefix("kernel:") for name in names)


def _modules(plan: Mapping[str, Any]) -> list[str]:
    wanted = [*_ALWAYS]
    for key in ("qdisc", "reverse_qdisc"):
        wanted += _QDISC_MODULES[plan["path"][key]["aqm"]["kind"]]
    if plan["host"]["pacing"] == "fq":
        wanted.append("sch_fq")
    wanted += [f"tcp_{name}" for name in kernel_ccs(plan) if name not in ("reno", "cubic")]
    return list(dict.fromkeys(wanted))


def _load_order(wanted: Sequence[str], kernel: Kernel) -> Iterable[tuple[str, bytes]]:
    """Modules with what they depend on before them; what is built in is left out."""
    builtin = _builtin(kernel)
    loaded: set[str] = set()

    def visit(name: str) -> Iterable[tuple[str, bytes]]:
        if name in builtin or name in loaded:
            return
        loaded.add(name)
        content = _read(name, kernel)
        for needed in _depends(content):
            yield from visit(needed)
        yield name, content

    for name in wanted:
        yield from visit(name)


def _builtin(kernel: Kernel) -> set[str]:
    found = next(kernel.modules.rglob("modules.builtin"), None)
    lines = found.read_text().split() if found else []
    return {Path(line).stem.replace("-", "_") for line in lines}


def _read(name: str, kernel: Kernel) -> bytes:
    for ending in _ENDINGS:
        for spelling in dict.fromkeys((name, name.replace("_", "-"))):
            path = next(kernel.modules.rglob(f"{spelling}{ending}"), None)
            if path is not None:
                content = path.read_bytes()
                return _unsigned(lzma.decompress(content) if ending == ".ko.xz" else content)
    what = (
        f"no congestion control kernel:{name.removeprefix('tcp_')}"
        if name.startswith("tcp_")
        else f"no module {name}"
    )
    raise UserError(f"kernel {kernel.release}: {what} in {kernel.modules.name}")


def _unsigned(module: bytes) -> bytes:
    """Without its signature (kernel/module_signature.h), whose check costs the guest 60 million
    instructions a module."""
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
