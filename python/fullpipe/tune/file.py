"""A search as a user writes it: `[tune]`, `[parameters]`, `[[row]]`, `[ablations]` in a TOML file.

docs/reference/tune.md says what a key means. Must never run anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from fullpipe.base.errors import UserError
from fullpipe.base.refusals import explain
from fullpipe.conformance.measured_conditions import check as check_condition
from fullpipe.congestion.registry import CcSet, Param, choose, is_kernel
from fullpipe.scenario.document import check_version, load_document
from fullpipe.scenario.fields import Section
from fullpipe.scorecard.items import Item, check_measures, items
from fullpipe.tune.objective import Objective

#: More parameters than this no search of some hundred trials can tell apart.
MAX_PARAMETERS = 20
_ROW_ID = re.compile(r"[a-z][a-z0-9_]{0,39}")
#: Keys of a row that names an item of the scorecard.
_BESIDE_ITEM = frozenset({"id", "item", "share"})
_SECTIONS = frozenset({"version", "tune", "parameters", "row", "ablations"})


class Options(Section):
    """The table `[tune]`."""

    cc: str = Field(min_length=1, description="the congestion control: a name, or a file")
    minimise: str = Field(min_length=1, description="the objective, an expression over rows")
    against: list[str] = Field(
        default_factory=list, description="measured on the held-out paths too"
    )
    seed: int = Field(1, ge=0, le=2**32 - 1, description="of the search")
    held_out_seed: int = Field(2, ge=0, le=2**32 - 1, description="of the held-out paths")
    trials: int = Field(200, ge=1, le=100_000, description="settings to try")


class Range(Section):
    """A parameter's table: its range, and the value that turns its mechanism off."""

    low: float = Field(alias="from")
    high: float = Field(alias="to")
    scale: str = Field("linear", pattern="linear|log")
    off: float | str | None = None


class Row(Item):
    """Runs that the objective uses, in the form of a scorecard's item, or one of the scorecard's
    items by its id. `share`: name -> condition on the measures; the value is the share of cells
    that meet it."""

    source: str = ""
    title: str = ""
    item: str = ""
    share: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class Parameter:
    """A constant and where the search may put it. `param` knows how values are stored."""

    param: Param
    low: float
    high: float
    logarithmic: bool
    off: float | str | None

    @property
    def name(self) -> str:
        """The constant's name."""
        return self.param.name

    def at(self, share: float) -> str:
        """The value at a position, 0 to 1, of the range, as `NAME[constant=VALUE]` takes it."""
        if self.logarithmic:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + (self.high - self.low) * share
        return self.param.shortest(self.param.stored(float(value)))

    def share(self, written: str) -> float:
        """Where a value in the form of `at` lies, from 0 to 1; the nearest end beyond the range."""
        choices = self.param.choices
        number = float(choices.index(written)) if choices else float(written)
        number = min(max(number, self.low), self.high)
        if self.logarithmic:
            return math.log(number / self.low) / math.log(self.high / self.low)
        return (number - self.low) / (self.high - self.low)

    def written(self, value: float | str) -> str:
        """Any value of the constant in the form of `at`. Raises UserError outside its range."""
        return self.param.shortest(self.param.stored(value))


@dataclass(frozen=True)
class Search:
    """A search that was read and checked. `defaults`: the values of the constants of `tune.cc`, as
    written; `shipped`: those of `base`, which differ where `tune.cc` changes some; `ablations`:
    name -> constants that replace those that were found."""

    source: str
    options: Options
    base: CcSet
    defaults: dict[str, str]
    shipped: dict[str, str]
    parameters: tuple[Parameter, ...]
    rows: tuple[Row, ...]
    ablations: dict[str, dict[str, str]]
    objective: Objective


def load_search(path: Path) -> Search:
    """The search in a TOML file. Files that it names lie beside it.

    Raises UserError naming file, key, value and what is allowed."""
    document = load_document(path, "search", "[tune], [parameters] and [[row]]")
    return read_search(document, str(path), path.parent)


def read_search(document: Mapping[str, Any], source: str, folder: Path = Path()) -> Search:
    """The search in a dictionary of the file's shape. Raises UserError as `load_search`."""
    check_version(document, source)
    unknown = sorted(set(document) - _SECTIONS)
    if unknown:
        sections = ", ".join(sorted(_SECTIONS))
        raise UserError(f"{source}: {unknown[0]}: unknown; a search has {sections}")
    options = _read(Options, document.get("tune", {}), source, "tune")
    options = options.model_copy(
        update={
            "cc": _seen_from(options.cc, folder),
            "against": [_seen_from(name, folder) for name in options.against],
        }
    )
    try:
        choice = choose(options.cc, {})
    except UserError as error:
        raise UserError(f"{source}: tune.cc: {error}") from None
    if choice.base is None:
        raise UserError(f"{source}: tune.cc: {options.cc} has no constants: it is the kernel's own")
    for name in options.against:
        _check_other(name, source)
    values = dict(zip((p.name for p in choice.base.params), choice.values, strict=True))
    parameters = _parameters(document.get("parameters"), choice.base, source)
    by_name = {param.name: param for param in choice.base.params}
    defaults = {name: by_name[name].shortest(value) for name, value in values.items()}
    of_base = zip(choice.base.params, choice.base.values, strict=True)
    shipped = {param.name: param.shortest(value) for param, value in of_base}
    rows = _rows(document.get("row"), source)
    objective = _objective(options.minimise, rows, source)
    ablations = _ablations(document.get("ablations", {}), by_name, source)
    return Search(
        source, options, choice.base, defaults, shipped, parameters, rows, ablations, objective
    )


def _read(model: Any, data: Any, source: str, where: str) -> Any:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise UserError(f"{source}: {explain(error, model, below=where)}") from None


def _check_other(name: str, source: str) -> None:
    """Raises UserError for a congestion control of `tune.against` that cannot be measured."""
    if is_kernel(name):
        raise UserError(
            f"{source}: tune.against: {name} runs in a kernel; searches use simulations"
        )
    try:
        choose(name, {})
    except UserError as error:
        raise UserError(f"{source}: tune.against: {error}") from None


def _seen_from(cc: str, folder: Path) -> str:
    """The name, with a file's path relative to the search's folder made one that can be opened."""
    from fullpipe.congestion.registry import is_external_name

    if not is_external_name(cc) or Path(cc).is_absolute():
        return cc
    return str(folder.resolve() / cc)


def _parameters(table: Any, base: CcSet, source: str) -> tuple[Parameter, ...]:
    if not isinstance(table, Mapping) or not 1 <= len(table) <= MAX_PARAMETERS:
        raise UserError(f"{source}: parameters: 1 to {MAX_PARAMETERS} constants are needed")
    constants = {param.name: param for param in base.params}
    parameters = []
    for name, value in table.items():
        where = f"parameters.{name}"
        if name not in constants:
            names = ", ".join(constants)
            raise UserError(f"{source}: {where}: {base.name} has no such constant; it has {names}")
        written: Range = _read(Range, value, source, where)
        if not written.low < written.high:
            raise UserError(f"{source}: {where}: from {written.low:g} must be below to")
        if written.scale == "log" and written.low <= 0:
            raise UserError(f"{source}: {where}.from: a logarithmic range begins above 0")
        ends = [written.low, written.high, *([] if written.off is None else [written.off])]
        for end in ends:
            try:
                constants[name].stored(end)
            except UserError as error:
                raise UserError(f"{source}: {where}: {error}") from None
        logarithmic = written.scale == "log"
        parameters.append(
            Parameter(constants[name], written.low, written.high, logarithmic, written.off)
        )
    return tuple(parameters)


def _rows(tables: Any, source: str) -> tuple[Row, ...]:
    if not isinstance(tables, list) or not tables:
        raise UserError(f"{source}: row: is missing; a search needs at least one [[row]]")
    shipped = {item.id: item for item in items()}
    rows: list[Row] = []
    for index, table in enumerate(tables):
        where = f"row.{index}"
        row: Row = _read(Row, table, source, where)
        if row.item:
            if row.item not in shipped:
                raise UserError(f"{source}: {where}.item: {row.item!r} is no item of the scorecard")
            if keys := sorted(row.model_fields_set - _BESIDE_ITEM):
                raise UserError(
                    f"{source}: {where}.{keys[0]}: {row.item} has its own; leave out one of the two"
                )
            item = shipped[row.item].model_dump(exclude={"id"})
            row = Row.model_validate({**item, "id": row.id, "item": row.item, "share": row.share})
        if not _ROW_ID.fullmatch(row.id) or row.id in {earlier.id for earlier in rows}:
            raise UserError(
                f"{source}: {where}.id: {row.id!r} must be lower-case letters, digits and _, and "
                "not be there twice"
            )
        if not row.measure:
            raise UserError(f"{source}: {where}.measure: is missing; the objective needs numbers")
        check_measures(row.measure, f"{source}: {where}.measure")
        measured = [measure.id for measure in row.measure]
        for name, condition in row.share.items():
            try:
                check_condition(condition, measured)
            except UserError as error:
                raise UserError(f"{source}: {where}.share.{name}: {error}") from None
        rows.append(row)
    return tuple(rows)


def _objective(text: str, rows: tuple[Row, ...], source: str) -> Objective:
    names = [
        f"{row.id}.{name}"
        for row in rows
        for name in [*(measure.id for measure in row.measure), *row.share]
    ]
    try:
        return Objective(text, names)
    except UserError as error:
        raise UserError(f"{source}: tune.minimise: {error}") from None


def _ablations(
    tables: Any, constants: Mapping[str, Param], source: str
) -> dict[str, dict[str, str]]:
    ablations: dict[str, dict[str, str]] = {}
    for name, changes in tables.items() if isinstance(tables, Mapping) else ():
        where = f"{source}: ablations.{name}"
        if not isinstance(changes, Mapping) or not changes:
            raise UserError(f"{where}: must be a table of constants, such as {{ gain = 1.0 }}")
        ablations[name] = {}
        for constant, value in changes.items():
            if constant not in constants:
                names = ", ".join(constants)
                raise UserError(f"{where}: unknown constant {constant}; constants: {names}")
            try:
                param = constants[constant]
                ablations[name][constant] = param.shortest(param.stored(value))
            except UserError as error:
                raise UserError(f"{where}.{constant}: {error}") from None
    return ablations
