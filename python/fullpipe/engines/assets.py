"""What is built beside the package: the static agent, the eBPF objects, QEMU's turnstile."""

from __future__ import annotations

from pathlib import Path

from fullpipe import files
from fullpipe.errors import UserError


def agent() -> Path:
    """The static agent. Raises UserError where it was not built."""
    return _built("fullpipe-agent")


def bpf_object(algorithm: str) -> Path:
    """The eBPF object of an algorithm. Raises UserError where it was not built."""
    return _built(f"{algorithm}.bpf.o")


def turnstile() -> Path:
    """The library that QEMU preloads. Raises UserError where it was not built."""
    return _built("turnstile.so")


def objects_folder() -> Path:
    """Where the eBPF objects lie."""
    return files.BUILT


def _built(name: str) -> Path:
    path = files.BUILT / name
    if not path.is_file():
        mend = "`make build` makes it" if files.checkout() else "a wheel of fullpipe has it"
        raise UserError(
            f"{name} is not in this installation, which the engines vm and live need; {mend}"
        )
    return path
