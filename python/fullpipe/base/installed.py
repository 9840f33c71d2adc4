"""Where the files lie that come with fullpipe and are not Python: in a checkout beside the package
(`experiments/`, `scorecard/`, `cc/`, `bpf/`), in a wheel inside it, below `assets/` with what was
built.
"""

from __future__ import annotations

from pathlib import Path

from fullpipe.base.errors import UserError

_PACKAGE = Path(__file__).resolve().parents[1]
#: What is built: the static agent, the eBPF objects, QEMU's turnstile.
BUILT = _PACKAGE / "assets"


def checkout() -> Path | None:
    """The top of the checkout that this package runs from; None for an installed one."""
    top = _PACKAGE.parent.parent
    return top if (top / "crates" / "fullpipe-py" / "Cargo.toml").is_file() else None


def shipped(folder: str) -> Path:
    """A folder of sources that comes with the program: "experiments" (the catalogue), "cc" (the
    algorithms and their contract), "examples" (algorithms as users write them), "bpf" and "module"
    (what makes them the kernel's), "scorecard" (its items).

    Raises UserError where this installation has none."""
    path = (checkout() or BUILT) / folder
    if not path.is_dir():
        raise UserError(f"{folder}: not in this installation ({path} is missing)")
    return path
