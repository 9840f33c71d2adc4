"""What is built beside the package: the static agent, the eBPF objects, QEMU's turnstile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fullpipe.base import installed
from fullpipe.base.errors import UserError
from fullpipe.congestion import external
from fullpipe.plan.senders import cc_choices


def agent() -> Path:
    """The static agent. Raises UserError where it was not built."""
    return _built("fullpipe-agent")


def bpf_object(algorithm: str) -> Path:
    """The eBPF object of an algorithm. Raises UserError where it was not built, or cannot be
    compiled of its file."""
    if external.is_external(algorithm):
        return external.bpf_object(algorithm)
    return _built(f"{algorithm}.bpf.o")


def kernel_cubic() -> Path:
    """The object that calls the kernel's own CUBIC. Raises UserError where it was not built."""
    return _built("kernel-cubic.o")


def turnstile() -> Path:
    """The library that QEMU preloads. Raises UserError where it was not built."""
    return _built("turnstile.so")


def put_objects(plan: Mapping[str, Any], folder: Path) -> None:
    """Puts the eBPF objects that a plan's flows need into a folder, for an agent of this host."""
    for algorithm in algorithms(plan):
        (folder / f"{algorithm}.bpf.o").symlink_to(bpf_object(algorithm))


def refuse_classes(plan: Mapping[str, Any]) -> None:
    """Raises UserError where a flow runs a class of Python, which no kernel does."""
    for algorithm in algorithms(plan):
        if external.is_class(algorithm):
            external.bpf_object(algorithm)


def algorithms(plan: Mapping[str, Any]) -> list[str]:
    """The algorithms of ours that a plan's flows run."""
    return sorted({choice["algorithm"] for _, choice in cc_choices(plan)} - {None})


def objects_folder() -> Path:
    """Where the eBPF objects of the built-in algorithms lie."""
    return installed.BUILT


def _built(name: str) -> Path:
    path = installed.BUILT / name
    if not path.is_file():
        mend = "`make build` makes it" if installed.checkout() else "a wheel of fullpipe has it"
        raise UserError(
            f"{name} is not in this installation, which the engines vm and live need; {mend}"
        )
    return path
