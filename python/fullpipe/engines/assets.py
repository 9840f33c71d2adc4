"""What is built beside the package: the static agent, the eBPF objects, QEMU's turnstile."""

from __future__ import annotations

from pathlib import Path

from fullpipe.errors import UserError

_FOLDER = Path(__file__).resolve().parent.parent / "assets"


def agent() -> Path:
    """The static agent. Raises UserError where it was not built."""
    return _built(_FOLDER / "fullpipe-agent")


def bpf_object(algorithm: str) -> Path:
    """The eBPF object of an algorithm. Raises UserError where it was not built."""
    return _built(_FOLDER / f"{algorithm}.bpf.o")


def turnstile() -> Path:
    """The library that QEMU preloads. Raises UserError where it was not built."""
    return _built(_FOLDER / "turnstile.so")


def objects_folder() -> Path:
    """Where the eBPF objects lie."""
    return _FOLDER


def _built(path: Path) -> Path:
    if not path.is_file():
        raise UserError(
            f"{path.name} is not in this installation, which the engines vm and live need; "
            "`make build` makes it"
        )
    return path
