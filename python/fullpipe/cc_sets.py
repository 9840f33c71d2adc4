"""The congestion controls that there are: names, constants, overrides.

A view of the compiled registry (cc/registry.h); nothing is listed twice. Must never know an engine.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from fullpipe import _native
from fullpipe.errors import UserError

KERNEL_PREFIX = "kernel:"


@dataclass(frozen=True)
class Param:
    """One constant of an algorithm; values are stored as whole multiples of 1/`scale`."""

    name: str
    unit: str
    zero: str
    source: str
    meaning: str
    default: int
    min: int
    max: int
    scale: int

    def stored(self, value: float) -> int:
        """The stored form of a value. Raises UserError outside the range, naming it."""
        stored = round(value * self.scale) if math.isfinite(value) else -1
        if not self.min <= stored <= self.max:
            raise UserError(
                f"{value!r} is out of range: {self.min / self.scale:g} to "
                f"{self.max / self.scale:g} {self.unit}"
            )
        return stored


@dataclass(frozen=True)
class CcSet:
    """A named set of constants of one algorithm."""

    name: str
    algorithm: str
    kernel_name: str
    title: str
    sources: str
    values: tuple[int, ...]
    params: tuple[Param, ...]

    def with_overrides(self, overrides: Mapping[str, float]) -> tuple[int, ...]:
        """All stored values with some replaced.

        Raises UserError for an unknown name or a value out of range."""
        values = list(self.values)
        names = [param.name for param in self.params]
        for name, value in overrides.items():
            if name not in names:
                raise UserError(f"cc.{self.name}.{name}: unknown constant{_near(name, names)}")
            index = names.index(name)
            try:
                values[index] = self.params[index].stored(value)
            except UserError as error:
                raise UserError(f"cc.{self.name}.{name}: {error}") from None
        return tuple(values)


@cache
def cc_sets() -> dict[str, CcSet]:
    """All sets by name, in the registry's order."""
    algorithms = {item["name"]: item for item in _native.cc.algorithms()}
    result = {}
    for item in _native.cc.sets():
        algorithm = algorithms[item["algorithm"]]
        params = tuple(Param(**param) for param in algorithm["params"])
        result[item["name"]] = CcSet(
            item["name"], item["algorithm"], item["kernel_name"], item["title"],
            algorithm["sources"], tuple(item["values"]), params,
        )  # fmt: skip
    return result


def cc_set(name: str) -> CcSet:
    """The set of that name. Raises UserError with the nearest names."""
    found = cc_sets().get(name)
    if found is None:
        names = list(cc_sets())
        raise UserError(f"unknown congestion control {name!r}{_near(name, names)}")
    return found


def is_kernel(name: str) -> bool:
    """Whether the name means the kernel's own implementation (`kernel:cubic`)."""
    return name.startswith(KERNEL_PREFIX) and len(name) > len(KERNEL_PREFIX)


def check_choices(names: Iterable[str], overrides: Mapping[str, Mapping[str, float]]) -> None:
    """Raises UserError unless every name exists and every override fits its set."""
    names = list(names)
    for index, name in enumerate(names):
        if not is_kernel(name):
            try:
                cc_set(name)
            except UserError as error:
                raise UserError(f"flow.{index}.cc: {error}") from None
    for name, changes in overrides.items():
        try:
            found = cc_set(name)
        except UserError as error:
            raise UserError(f"cc.{name}: {error}") from None
        found.with_overrides(changes)
        if name not in names:
            raise UserError(
                f"cc.{name}: no flow uses it; flows use {', '.join(sorted(set(names)))}"
            )


def _near(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, 3)
    if near:
        return f"; did you mean {' or '.join(near)}? (all: {', '.join(names)})"
    return f"; known are {', '.join(names)}"
