"""Files built with the package: the static agent, the eBPF objects, QEMU's turnstile."""

from __future__ import annotations

import platform
from pathlib import Path

from fullpipe.base import installed
from fullpipe.base.errors import UserError
from fullpipe.base.machine import needs_linux
from fullpipe.congestion import stacks, userfiles
from fullpipe.plan.plan import Plan
from fullpipe.plan.senders import cc_choices


def agent() -> Path:
    """Path of the static agent. Raises UserError if it was not built."""
    return _built("fullpipe-agent")


def guest_agent() -> Path:
    """Path of the agent for the virtual machine, which is an x86-64 one. Raises UserError if it was
    not built."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise UserError(f"engine vm needs an x86-64 host so far, and this is {platform.machine()}")
    return agent()


def bpf_object(algorithm: str) -> Path:
    """Path of an algorithm's eBPF object. Raises UserError if it was not built, or its file does
    not compile."""
    if userfiles.is_external(algorithm):
        return userfiles.bpf_object(algorithm)
    return _built(f"{algorithm}.bpf.o")


def kernel_cubic() -> Path:
    """The object that calls the kernel's own CUBIC. Raises UserError if it was not built."""
    return _built("kernel-cubic.o")


def sockets() -> Path:
    """The object that tells what TCP_INFO does not. Raises UserError if it was not built."""
    return _built("sockets.o")


def turnstile() -> Path:
    """The library that QEMU preloads. Raises UserError if it was not built."""
    return _built("turnstile.so")


def put_objects(plan: Plan, folder: Path) -> None:
    """Copies the eBPF objects that a plan's flows need into a folder, for this host's agent."""
    (folder / sockets().name).symlink_to(sockets())
    for algorithm in algorithms(plan):
        (folder / f"{algorithm}.bpf.o").symlink_to(bpf_object(algorithm))


def refuse_classes(plan: Plan) -> None:
    """Raises UserError if a flow runs a Python class, which no kernel can."""
    for algorithm in algorithms(plan):
        if userfiles.is_class(algorithm):
            userfiles.bpf_object(algorithm)


def algorithms(plan: Plan) -> list[str]:
    """The fullpipe algorithms that a plan's flows run (not the kernel's own)."""
    return sorted({choice["algorithm"] for _, choice in cc_choices(plan)} - {None})


def refuse_stacks(plan: Plan, name: str) -> None:
    """Raises UserError for congestion controls of QUIC stacks, which no kernel has."""
    for whose, cc in stacks.used(cc_choices(plan)):
        raise UserError(
            f"{whose}: {cc} is a QUIC stack's, which --engine {name} "
            "does not have; --engine sim runs it"
        )


def objects_folder() -> Path:
    """The folder of the built-in algorithms' eBPF objects."""
    return installed.BUILT


def _built(name: str) -> Path:
    needs_linux("what the engines vm and live run")
    path = installed.BUILT / name
    if not path.is_file():
        mend = (
            "`fullpipe doctor --install` builds it"
            if installed.checkout()
            else "a wheel of fullpipe has it"
        )
        raise UserError(
            f"{name} is not in this installation, which the engines vm and live need; {mend}"
        )
    return path
