"""Registers congestion controls in the running kernel, by the registry's names and constants."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.congestion.external import is_file_name
from fullpipe.congestion.registry import CcSet, cc_set, cc_sets, sets_of
from fullpipe.engines import assets
from fullpipe.kernel.agent import ask

#: Names that setsockopt(TCP_CONGESTION) accepts (Linux TCP_CA_NAME_MAX less the NUL).
_KERNEL_NAME = re.compile(r"[A-Za-z0-9_-]{1,15}\Z", re.ASCII)


@dataclass(frozen=True)
class Request:
    """A congestion control to load: its name for sockets, and all stored constants."""

    algorithm: str
    kernel_name: str
    params: tuple[int, ...]

    def document(self) -> dict[str, Any]:
        """The request as the agent's JSON."""
        return {
            "object": str(assets.bpf_object(self.algorithm)),
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
            param.name: value / param.scale
            for param, value, usual in zip(base.params, self.params, base.values, strict=False)
            if value != usual
        }


def request(
    name: str, overrides: Mapping[str, float] | None = None, kernel_name: str | None = None
) -> Request:
    """The congestion control `name` of the registry with some constants replaced, under the
    registry's kernel name or another one. Raises UserError for an unknown name or constant (with
    the known ones), a value out of range (with the range), a name that no socket can write."""
    found = cc_set(name)
    chosen = kernel_name or found.kernel_name
    if not _KERNEL_NAME.match(chosen):
        raise UserError(f"--as {chosen}: must be 1 to 15 letters, digits, _ or -")
    return Request(found.algorithm, chosen, found.with_overrides(overrides or {}))


def load(wanted: Request) -> None:
    """Registers it in the running kernel, where it stays when this process ends. Raises UserError
    if the kernel or the rights do not allow it, or the name is taken."""
    ask("load", wanted.document())


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


def unload(name: str) -> tuple[str, int]:
    """Takes a congestion control away, by its kernel name or the registry's; returns the kernel
    name and how many sockets go on with it until they close. Raises UserError if it is not
    loaded."""
    known = cc_set(name) if is_file_name(name) else cc_sets().get(name)
    kernel_name = known.kernel_name if known else name
    if not _KERNEL_NAME.match(kernel_name):
        raise UserError(f"{name}: not the name of a congestion control")
    return kernel_name, ask("unload", {"kernel_name": kernel_name})["sockets"]
