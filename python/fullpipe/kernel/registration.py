"""Registers congestion controls in the running kernel, by the registry's names and constants."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.congestion import module
from fullpipe.congestion.registry import CcSet, cc_set, cc_sets, sets_of
from fullpipe.congestion.userfiles import is_file_name
from fullpipe.engines import assets
from fullpipe.engines.base import CcForm
from fullpipe.kernel.agent import ask

#: There in every kernel that takes modules.
_LIST_OF_MODULES = Path("/proc/modules")
#: Those that are in the kernel.
_MODULES = Path("/sys/module")
#: Names that setsockopt(TCP_CONGESTION) accepts (Linux TCP_CA_NAME_MAX less the NUL).
_KERNEL_NAME = re.compile(r"[A-Za-z0-9_-]{1,15}\Z", re.ASCII)


@dataclass(frozen=True)
class Request:
    """A congestion control to load: its name for sockets, and all stored constants."""

    algorithm: str
    kernel_name: str
    params: tuple[int, ...]
    form: CcForm = "ebpf"

    def document(self) -> dict[str, Any]:
        """The request as the agent's JSON. A module is built for the running kernel."""
        is_module = self.form == "module"
        code = _module(self.algorithm) if is_module else assets.bpf_object(self.algorithm)
        return {
            "object": str(code),
            "is_module": is_module,
            "algorithm": self.algorithm,
            "kernel_name": self.kernel_name,
            "params": self.params,
        }


@dataclass(frozen=True)
class Loaded:
    """A congestion control that is registered, or that sockets still use."""

    kernel_name: str
    algorithm: str
    #: Stored constants, in the algorithm's order.
    params: tuple[int, ...]
    sockets: int
    opened: int
    is_registered: bool
    is_module: bool

    @property
    def base(self) -> CcSet:
        """The set of its algorithm with the fewest different constants; one without constants if
        this host does not know the algorithm (its file was another user's)."""
        unknown = CcSet(self.algorithm, self.algorithm, "", "", "", (), ())
        sets = sets_of(self.algorithm) or [unknown]
        return min(sets, key=lambda item: len(self._changes(item)))

    @property
    def changes(self) -> dict[str, float]:
        """The constants that differ from `base`, in their units."""
        return self._changes(self.base)

    def _changes(self, base: CcSet) -> dict[str, float]:
        return {
            param.name: param.value(value)
            for param, value, usual in zip(base.params, self.params, base.values, strict=False)
            if value != usual
        }


def request(
    name: str,
    overrides: Mapping[str, float] | None = None,
    kernel_name: str | None = None,
    form: CcForm = "ebpf",
) -> Request:
    """The congestion control `name` of the registry with some constants replaced, under the
    registry's kernel name or another one, as eBPF or as a kernel module. Raises UserError for an
    unknown name or constant (with the known ones), a value out of range (with the range), a name
    that no socket can write."""
    control = cc_set(name)
    chosen = kernel_name or control.kernel_name
    if not _KERNEL_NAME.match(chosen):
        raise UserError(f"--name {chosen}: must be 1 to 15 letters, digits, _ or -")
    return Request(control.algorithm, chosen, control.with_overrides(overrides or {}), form)


def load(wanted: Request) -> None:
    """Registers it in the running kernel, where it stays when this process ends. Raises UserError
    if the kernel or the rights do not allow it, or the name is taken."""
    ask("load", wanted.document())


def _module(algorithm: str) -> Path:
    """The module for the running kernel. Raises UserError if it takes none, or without its
    headers."""
    if not _LIST_OF_MODULES.exists():
        raise UserError(
            "--as module: this kernel takes no modules (needs CONFIG_MODULES=y); use --as ebpf"
        )
    release = os.uname().release
    tree = Path("/lib/modules") / release / "build"
    if not tree.is_dir():
        raise UserError(
            f"--as module: the headers of this kernel are not here ({tree}); on Debian and Ubuntu: "
            f"apt-get install linux-headers-{release}"
        )
    return module.build(sets_of(algorithm), tree)


def own_name() -> str:
    """A kernel name that no other program has. A process id is not unique, because containers
    share a kernel and have overlapping ids."""
    return f"fp_{secrets.token_hex(6)}"


def load_and_unload(cc: str) -> None:
    """Whether the running kernel takes the congestion control `cc`. Raises UserError with the
    reason where it does not."""
    name = own_name()
    load(request(cc, kernel_name=name))
    unload(name)


def list_loaded() -> list[Loaded]:
    """What this program registered in the running kernel. Raises UserError without the rights."""
    return [Loaded(**{**item, "params": tuple(item["params"])}) for item in ask("list", None)]


def left_module() -> str | None:
    """The name of our module if it is in the kernel and registers nothing, since sockets still
    used it when its last name was unloaded."""
    if not (_MODULES / module.NAME).exists():
        return None
    is_used = any(item.is_module and item.is_registered for item in list_loaded())
    return None if is_used else module.NAME


def unload(name: str) -> tuple[str, int]:
    """Takes a congestion control away, by its kernel name or the registry's; returns the kernel
    name and how many sockets go on with it until they close. Raises UserError if it is not
    loaded."""
    control = cc_set(name) if is_file_name(name) else cc_sets().get(name)
    kernel_name = control.kernel_name if control else name
    if not _KERNEL_NAME.match(kernel_name):
        raise UserError(f"{name}: not the name of a congestion control")
    return kernel_name, ask("unload", {"kernel_name": kernel_name})["sockets"]
