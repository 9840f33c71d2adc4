"""The available congestion controls: names, constants, changed constants, variants.

A view of the compiled registry (cc/registry.h) and of users' files. Only this module decides what
a flow's `cc` means. Must never know an engine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.congestion import stacks, trust, userfiles
from fullpipe.recording.recording import TABLES

KERNEL_PREFIX = "kernel:"
#: A set with changed constants, as names show it and flows may write it: `cubic[beta=0.85]`.
_CHANGED = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")
#: A comma within brackets separates constants.
_BETWEEN_NAMES = re.compile(r",(?![^\[\]]*\])")
#: How the unit of a constant begins whose values have names.
_CHOICE = "one of "
#: Valid names of a scenario's own variants.
_VARIANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]{0,39}", re.ASCII)


@dataclass(frozen=True)
class Param:
    """One constant of an algorithm; values are stored as whole multiples of 1/`scale`, from 0 on:
    0 itself as `origin`, which is above 0 where values below 0 are allowed."""

    name: str
    unit: str
    zero: str
    source: str
    meaning: str
    default: int
    min: int
    max: int
    scale: int
    origin: int

    def value(self, stored: int) -> float:
        """A stored value in the unit."""
        return (stored - self.origin) / self.scale

    @property
    def choices(self) -> tuple[str, ...]:
        """What the values 0, 1, 2 are called, where they are a choice (cc/params.h)."""
        start, _, names = self.unit.partition(_CHOICE)
        return tuple(names.split(", ")) if names and not start else ()

    def stored(self, value: float | str) -> int:
        """The stored form of a value, or of a choice's name. Raises UserError outside the range,
        naming it."""
        if isinstance(value, str):
            if value not in self.choices:
                choices = ", ".join(self.choices) or "a number"
                raise UserError(f"{value!r} is not {choices}")
            return self.choices.index(value)
        stored = round(value * self.scale) + self.origin if math.isfinite(value) else -1
        if not self.min <= stored <= self.max:
            allowed = (
                ", ".join(self.choices)
                or f"{self.value(self.min):g} to {self.value(self.max):g} {self.unit}"
            )
            raise UserError(f"{value!r} is out of range: {allowed}")
        return stored

    def shortest(self, stored: int) -> str:
        """The shortest decimal that is stored so: 0.85 for 870/1024. A choice's name."""
        if self.choices:
            return self.choices[stored]
        value = self.value(stored)
        texts = (f"{value:.{digits}g}" for digits in range(1, 11))
        return next(
            (text for text in texts if "e+" not in text and self._is_stored_as(text, stored)),
            repr(value),
        )

    def _is_stored_as(self, text: str, stored: int) -> bool:
        return round(float(text) * self.scale) + self.origin == stored


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

    def with_overrides(
        self, overrides: Mapping[str, float | str], called: str | None = None
    ) -> tuple[int, ...]:
        """All stored values with some replaced.

        Raises UserError for an unknown name or a value out of range; `called` is what the set goes
        by in it."""
        called = called or self.name
        values = list(self.values)
        names = [param.name for param in self.params]
        for name, value in overrides.items():
            if name not in names:
                raise UserError(f"cc.{called}.{name}: {_unknown(name, self.algorithm, names)}")
            index = names.index(name)
            try:
                values[index] = self.params[index].stored(value)
            except UserError as error:
                raise UserError(f"cc.{called}.{name}: {error}") from None
        return tuple(values)


@cache
def params_of(algorithm: str) -> tuple[Param, ...]:
    """The constants of an algorithm as plans name it, in storage order."""
    return tuple(Param(**param) for param in _algorithm(algorithm)["params"])


@dataclass(frozen=True)
class Variable:
    """One of an algorithm's own variables, as tables show it (cc/state.h)."""

    name: str
    column: str
    unit: str
    meaning: str
    scale: float


@cache
def variables_of(algorithm: str) -> tuple[Variable, ...]:
    """The variables of an algorithm as plans name it, in the order of its list."""
    return tuple(Variable(**item) for item in _algorithm(algorithm)["variables"])


def own_variables(algorithms: Mapping[str, str]) -> dict[str, Any]:
    """What a recording's metadata says of the variables that only some algorithms have: by the
    names of the congestion controls, whose algorithms are given, and by column; empty where no
    algorithm has any."""
    variables = {
        name: {
            variable.column: {"unit": variable.unit, "meaning": variable.meaning}
            for variable in variables_of(algorithm)
            if variable.column not in TABLES["cc_samples"].names
        }
        for name, algorithm in algorithms.items()
    }
    variables = {name: columns for name, columns in variables.items() if columns}
    return {"variables": variables} if variables else {}


def state_bytes_of(algorithm: str) -> int:
    """Bytes of state that an algorithm, as plans name it, keeps for each connection."""
    return int(_algorithm(algorithm)["state_bytes"])


def _algorithm(name: str) -> dict[str, Any]:
    if userfiles.is_external(name):
        return userfiles.load(name)
    return next(item for item in _native.cc.algorithms() if item["name"] == name)


@cache
def cc_sets() -> dict[str, CcSet]:
    """All sets by name, in the registry's order."""
    algorithms = {item["name"]: item for item in _native.cc.algorithms()}
    result = {}
    for item in _native.cc.sets():
        algorithm = algorithms[item["algorithm"]]
        params = params_of(item["algorithm"])
        result[item["name"]] = CcSet(
            item["name"],
            item["algorithm"],
            item["kernel_name"],
            item["title"],
            algorithm["sources"],
            tuple(item["values"]),
            params,
        )
    return result


def cc_set(name: str) -> CcSet:
    """The set of that name, or of that file. Raises UserError with the nearest names, or with what
    is wrong with the file."""
    result = _find(name)
    if result is None:
        names = list(cc_sets())
        raise UserError(f"unknown congestion control {name!r}{_near(name, names)}")
    return result


def _find(name: str) -> CcSet | None:
    return file_set(name) if is_external_name(name) else cc_sets().get(name)


def is_external_name(name: str) -> bool:
    """Whether a flow's `cc` names a file, a class in a file, or a class that a program passed."""
    written = name.partition("[")[0]
    return userfiles.is_file_name(written) or userfiles.is_class(written)


def file_set(path: str) -> CcSet:
    """The one set that a file defines: the defaults of its constants, under the file's name without
    its ending (with it, where a set of the registry is called so). Raises UserError if the file
    cannot be used."""
    source = _source(path)
    if not _VARIANT.fullmatch(source.stem):
        raise UserError(f"{path}: a file's name must be letters, digits, _, + or -, and then .h")
    return _source_set(source, userfiles.describe(source))


def _source(name: str) -> userfiles.Source:
    from fullpipe.congestion.userfiles import classes  # most programs need none

    trust.check(name)
    if userfiles.is_class(name):
        return userfiles.source_of(name)
    return classes.read(name) if classes.is_class_name(name) else userfiles.read(name)


def sets_of(algorithm: str) -> list[CcSet]:
    """The sets of a plan's algorithm: those of the registry, or the one of its file. Empty if
    this host does not know it."""
    if not userfiles.is_external(algorithm):
        return [item for item in cc_sets().values() if item.algorithm == algorithm]
    try:
        return [_source_set(userfiles.source_of(algorithm), userfiles.load(algorithm))]
    except UserError:
        return []


def _source_set(source: userfiles.Source, description: Mapping[str, Any]) -> CcSet:
    params = tuple(Param(**param) for param in description["params"])
    name = source.main if source.stem in cc_sets() else source.stem
    if source.is_class and source.stem in cc_sets():
        name = f"{source.main}:{source.stem}"
    kernel_name = "fp_" + re.sub(r"[^A-Za-z0-9_-]", "_", source.stem)[:12]
    values = tuple(param.default for param in params)
    return CcSet(name, source.id, kernel_name, source.title, str(source.path), values, params)


def is_kernel(name: str) -> bool:
    """Whether the name means the kernel's own implementation (`kernel:cubic`)."""
    return name.startswith(KERNEL_PREFIX) and len(name) > len(KERNEL_PREFIX)


@dataclass(frozen=True)
class Table:
    """A scenario's `[cc.NAME]`: changed constants of the set NAME, or, with a base, a variant of
    that base called NAME."""

    base: str | None
    changes: Mapping[str, float | str]


@dataclass(frozen=True)
class Choice:
    """The congestion control of a flow: its name for tables and plots, which includes changed
    constants; its set; and all stored values. Of the kernel's own and QUIC stacks' only the name is
    known."""

    name: str
    base: CcSet | None
    values: tuple[int, ...] = ()


def choose(name: str, tables: Mapping[str, Table]) -> Choice:
    """What a flow's `cc` means in a scenario with these `[cc.NAME]` tables: a set of the registry,
    a file, one of them as `SET[constant=value,...]`, a variant of the scenario, `kernel:NAME`, or a
    QUIC stack's (`quinn:bbr`).

    Raises UserError for an unknown name, an unknown constant or a value out of range."""
    if not tables and (plain := _plain(name)) is not None:
        return plain
    if is_kernel(name) or stacks.is_stack(name):
        return Choice(name, None)
    table = tables.get(name)
    if table is not None and table.base is not None:
        return Choice(name, _base(table.base), _values(name, tables))
    written, changes = _split(name)
    base = _find(written)
    if base is None:
        names = [
            *cc_sets(),
            *(variant for variant, table in tables.items() if table.base is not None),
        ]
        raise UserError(f"unknown congestion control {name!r}{_near(written, names)}")
    table = table or tables.get(base.name)  # of a file
    if table is not None:
        changes = table.changes
    values = base.with_overrides(changes)
    return Choice(changed_name(base, values), base, values)


@cache
def _plain(name: str) -> Choice | None:
    """A set of the registry unchanged; None for every other name."""
    base = cc_sets().get(name)
    return None if base is None else Choice(name, base, base.values)


def base_of(name: str, tables: Mapping[str, Table]) -> CcSet | None:
    """The registry's set that a name in a recording comes from; None if this program does not have
    it."""
    table = tables.get(name)
    if table is not None and table.base is not None:
        return cc_sets().get(table.base)
    return cc_sets().get(name.partition("[")[0])


def changed_name(base: CcSet, values: Iterable[int]) -> str:
    """The name of a set with the constants that were changed: `cubic[beta=0.85]`."""
    changes = [
        f"{param.name}={param.shortest(value)}"
        for param, value, usual in zip(base.params, values, base.values, strict=True)
        if value != usual
    ]
    return f"{base.name}[{','.join(changes)}]" if changes else base.name


def check_choices(names: Iterable[str], tables: Mapping[str, Table]) -> None:
    """Raises UserError unless every name exists, every table fits its set and a flow uses it."""
    names = list(names)
    if not tables and all(_plain(name) for name in names):
        return
    files = _files(names)
    used = {*names, *(item.name for item in files.values())}
    for name, table in tables.items():
        if table.base is not None:
            _check_variant(name)
        elif name in files:
            files[name].with_overrides(table.changes)
            continue
        elif name not in cc_sets():
            raise UserError(
                f"cc.{name}: unknown congestion control {name!r}{_near(name, list(cc_sets()))}; "
                'a variant of your own needs base, such as base = "cubic"'
            )
        _values(name, tables)
    for index, name in enumerate(names):
        try:
            choose(name, tables)
        except UserError as error:
            raise UserError(f"flow.{index}.cc: {error}") from None
    for name in tables:
        if name not in used:
            raise UserError(
                f"cc.{name}: no flow uses it; flows use {', '.join(sorted(set(names)))}"
            )


def _files(names: Iterable[str]) -> dict[str, CcSet]:
    """The sets of the files that flows name, by what they are called. Raises UserError if two
    files are called the same."""
    sets: dict[str, CcSet] = {}
    for index, name in enumerate(names):
        written = name.partition("[")[0]
        if is_external_name(written):
            try:
                item = file_set(written)
            except UserError as error:
                raise UserError(f"flow.{index}.cc: {error}") from None
            first = sets.setdefault(item.name, item)
            if first.algorithm != item.algorithm:
                raise UserError(
                    f"flow.{index}.cc: {first.sources} and {item.sources} are both called "
                    f"{item.name}; rename one"
                )
    return sets


def _check_variant(name: str) -> None:
    if name in cc_sets():
        raise UserError(
            f"cc.{name}.base: {name} is a congestion control already; name it otherwise"
        )
    if not _VARIANT.fullmatch(name):
        raise UserError(f"cc.{name}: must be 1 to 40 letters, digits, _, + or -")


def _values(name: str, tables: Mapping[str, Table]) -> tuple[int, ...]:
    table = tables[name]
    try:
        return _base(table.base or name).with_overrides(table.changes, name)
    except UserError as error:
        where = "" if str(error).startswith(f"cc.{name}") else f"cc.{name}.base: "
        raise UserError(f"{where}{error}") from None


def _base(name: str) -> CcSet:
    if is_kernel(name):
        raise UserError(f"{name!r} has no constants that could be changed: it is the kernel's own")
    if stacks.is_stack(name):
        raise UserError(f"{name!r} has no constants that could be changed: it is its stack's own")
    return cc_set(name)


def listed(text: str) -> list[str]:
    """The names of a list such as `reno,cubic[beta=0.85,scale=50]`."""
    return [name for part in _BETWEEN_NAMES.split(text) if (name := part.strip())]


def _split(name: str) -> tuple[str, Mapping[str, float | str]]:
    """(set, changed constants) of `cubic[beta=0.85]`; a plain name has none."""
    match = _CHANGED.fullmatch(name)
    if match is None:
        return name, {}
    changes: dict[str, float | str] = {}
    for text in match[2].split(","):
        constant, equals, value = (part.strip() for part in text.partition("="))
        if not (constant and equals and value):
            raise UserError(
                f"{name!r}: between brackets write CONSTANT=VALUE, such as cubic[beta=0.85]"
            )
        try:
            changes[constant] = float(value)
        except ValueError:
            changes[constant] = value
    return match[1], changes


def _unknown(constant: str, algorithm: str, names: list[str]) -> str:
    """Says that an algorithm lacks a constant, and who has it."""
    owners = [
        item["name"]
        for item in _native.cc.algorithms()
        if any(param["name"] == constant for param in item["params"])
    ]
    if owners:
        return f"{algorithm} has no constant {constant}; it is of {', '.join(owners)}"
    return f"unknown constant{_near(constant, names)}"


#: Congestion controls of Linux that are none of fullpipe's.
_OF_KERNELS = frozenset(
    (
        "bic",
        "cdg",
        "highspeed",
        "htcp",
        "hybla",
        "illinois",
        "lp",
        "nv",
        "scalable",
        "vegas",
        "veno",
        "westwood",
        "yeah",
    )
)


def _near(name: str, names: list[str]) -> str:
    import difflib  # only where a name is wrong

    if (plain := name.lower().removeprefix("tcp_")) in _OF_KERNELS:
        return f"; a kernel has it: kernel:{plain}, with --engine vm. Here are {', '.join(names)}"

    name = name.removeprefix("tcp_")
    # "BBR" may be any version of it.
    near = (
        difflib.get_close_matches(name, names, 3)
        or [candidate for candidate in names if candidate.rstrip("0123456789") == name.lower()]
        or difflib.get_close_matches(name.lower(), names, 3)
    )
    if near:
        return f"; did you mean {' or '.join(near)}? (all: {', '.join(names)})"
    return f"; known are {', '.join(names)}"
