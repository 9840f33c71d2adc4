"""A sweep as a user writes it: `[scenario]`, `[axis]`, `[sweep]` in a TOML file.

docs/reference/sweeps.md says what a key means. Must never run anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, field_validator

from fullpipe.base.errors import UserError
from fullpipe.base.overrides import apply_changes
from fullpipe.base.refusals import explain
from fullpipe.expr.conditions import Condition
from fullpipe.expr.language import ExpressionError
from fullpipe.scenario.document import check_version, load_document
from fullpipe.scenario.fields import Section, release_name
from fullpipe.sweep.axes import Axis, Point, grid, read_axis, read_condition, samples, size_of_grid
from fullpipe.sweep.templates import fields_of, holes

#: Beyond these a sweep is a slip of the pen.
MAX_POINTS = 2_000_000
MAX_SEEDS = 10_000

_UNTIL = re.compile(r"([a-z][a-z0-9_]*)(?:'s 95 ?% interval)?\s*<\s*([0-9.eE+-]+)")
_AXIS_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
#: Columns that every view has to say which run a row is of.
RESERVED = frozenset({"sweep", "cell", "key", "seed"})


class Seeds(Section):
    """How many seeds a cell gets: `least`, and then more, `most` at most, until a rule holds."""

    least: int = Field(1, ge=1, le=MAX_SEEDS)
    most: int | None = Field(None, ge=1, le=MAX_SEEDS)
    until: str | None = Field(None, description="such as `share's 95 % interval < 0.02`")

    @field_validator("until")
    @classmethod
    def _readable(cls, value: str | None) -> str | None:
        if value is not None and not _UNTIL.fullmatch(value.strip()):
            raise ValueError("must read like `share's 95 % interval < 0.02`")
        return value

    @property
    def rule(self) -> tuple[str, float] | None:
        """The metric and the width that its 95 % interval must fall below; None: no rule."""
        match = _UNTIL.fullmatch((self.until or "").strip())
        return (match[1], float(match[2])) if match else None


def _as_seeds(seeds: object) -> object:
    """A plain number is that many seeds."""
    plain = isinstance(seeds, int) and not isinstance(seeds, bool)
    return {"least": seeds} if plain else seeds


class Sample(Section):
    """Points that fill the space instead of the whole grid."""

    kind: Literal["sobol", "latin-hypercube"]
    cells: int = Field(ge=1, le=MAX_POINTS)
    seed: int = Field(1, ge=0, le=2**63 - 1)


class Options(Section):
    """The table `[sweep]`."""

    name: str = Field("", max_length=200)
    seeds: Annotated[Seeds, BeforeValidator(_as_seeds)] = Field(default_factory=Seeds)
    until_settled: bool = Field(
        False, description="runs of a cell that had not settled again, twice as long"
    )
    sample: Literal["grid"] | Sample = "grid"
    keep: Literal["metrics", "recordings"] = "metrics"
    zip: list[list[str]] = Field(default_factory=list)
    where: str | list[str] = Field(default_factory=list)
    engine: Literal["sim", "vm", "live"] = "sim"
    machine: Literal["qemu", "uml"] | None = None
    kernel: Annotated[str | None, BeforeValidator(release_name)] = None

    def engine_options(self) -> dict[str, str]:
        """Options of the engine that change results."""
        options = {"machine": self.machine, "kernel": self.kernel}
        return {name: value for name, value in options.items() if value is not None}

    def deciding(self) -> dict[str, Any]:
        """What decides which cells there are and what a run of them is."""
        sample = vars(self.sample) if isinstance(self.sample, Sample) else self.sample
        settings = {key: getattr(self, key) for key in ("zip", "where", "engine", "kernel")}
        # Sweeps from before there was the key keep their place in a store.
        machine = {"machine": self.machine} if self.machine else {}
        return {"sample": sample, **settings, **machine}


@dataclass(frozen=True)
class Sweep:
    """A sweep that was read and checked."""

    source: str
    document: dict[str, Any]
    options: Options
    template: dict[str, Any]
    axes: tuple[Axis, ...]
    conditions: tuple[Condition, ...]
    #: Where the files lie that its scenarios name.
    folder: Path = Path()

    @property
    def title(self) -> str:
        """What its user calls it: the name that it gives itself, or its file's."""
        return self.options.name or Path(self.source).stem

    @property
    def seeds(self) -> Seeds:
        """How many seeds its cells get."""
        return self.options.seeds

    def points(self) -> Iterator[Point]:
        """Every point for which the conditions hold.

        Raises UserError where a condition cannot be computed."""
        made = self.options.sample
        if isinstance(made, Sample):
            points = samples(self.axes, made.kind, made.cells, made.seed)
        else:
            points = grid(self.axes, self.options.zip)
        if not self.conditions:
            yield from points
            return
        for point in points:
            try:
                fields = fields_of(point)
                if all(condition.holds(fields) for condition in self.conditions):
                    yield point
            except ExpressionError as error:
                raise UserError(f"{self.source}: sweep.where: {error}") from None


def load_sweep(path: Path | str, changes: list[str] | None = None) -> Sweep:
    """The sweep in a TOML file, with `key=value` changes applied.

    Raises UserError naming file, key, value and what is allowed."""
    path = Path(path)
    document = load_document(path, "sweep", "[scenario] and [axis]")
    return read_sweep(apply_changes(document, changes or []), str(path), path.parent)


def read_sweep(document: Mapping[str, Any], source: str, folder: Path = Path()) -> Sweep:
    """The sweep in a dictionary of the file's shape; files that it names lie in `folder`. Raises
    UserError as `load_sweep`."""
    check_version(document, source)
    unknown = sorted(set(document) - {"version", "scenario", "axis", "sweep"})
    if unknown:
        raise UserError(f"{source}: {unknown[0]}: unknown; a sweep has scenario, axis and sweep")
    for key in ("scenario", "axis"):
        if not isinstance(document.get(key), Mapping) or not document[key]:
            raise UserError(f"{source}: {key}: is missing or empty; a sweep needs [{key}]")
    try:
        options = Options.model_validate(document.get("sweep", {}))
    except ValidationError as error:
        raise UserError(f"{source}: {explain(error, Options, below='sweep')}") from None
    axes = tuple(_axes(document["axis"], source))
    template = dict(document["scenario"])
    _check_axes(axes, template, options, source)
    names = [axis.name for axis in axes]
    texts = [options.where] if isinstance(options.where, str) else options.where
    fields = _fields(axes)
    conditions = tuple(read_condition(t, fields, f"{source}: sweep.where") for t in texts)
    sweep = Sweep(source, dict(document), options, template, axes, conditions, folder)
    _check_size(sweep, names)
    return sweep


def _axes(tables: Mapping[str, Any], source: str) -> Iterator[Axis]:
    for name, values in tables.items():
        where = f"{source}: axis.{name}"
        if not _AXIS_NAME.fullmatch(name):
            raise UserError(f"{where}: a name has lower-case letters, digits and _, 40 at most")
        if name in RESERVED:
            raise UserError(f"{where}: is a column's name; call it {name}_axis, for example")
        yield read_axis(name, values, where)


def _fields(axes: tuple[Axis, ...]) -> list[str]:
    return [field for axis in axes for field in fields_of({axis.name: axis.values[0]})]


def _check_axes(
    axes: tuple[Axis, ...], template: Mapping[str, Any], options: Options, source: str
) -> None:
    used = holes(template)
    fields = set(_fields(axes))
    for hole in sorted(used - fields):
        names = ", ".join(sorted(fields))
        raise UserError(f"{source}: scenario: {{{hole}}} is no axis; axes are {names}")
    for axis in axes:
        if not any(hole == axis.name or hole.startswith(f"{axis.name}.") for hole in used):
            raise UserError(
                f"{source}: axis.{axis.name}: names no key of the scenario; write "
                f'"{{{axis.name}}}" where its value belongs'
            )
    sizes = {axis.name: len(axis.values) for axis in axes}
    zipped: set[str] = set()
    for names_together in options.zip:
        for name in names_together:
            if name not in sizes or name in zipped:
                why = "is zipped twice" if name in zipped else "is no axis"
                raise UserError(f"{source}: sweep.zip: {name!r} {why}; axes are {', '.join(sizes)}")
            zipped.add(name)
        lengths = {name: sizes[name] for name in names_together}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} has {count}" for name, count in lengths.items())
            raise UserError(f"{source}: sweep.zip: axes of different lengths: {shown}")
    if options.zip and isinstance(options.sample, Sample):
        raise UserError(f"{source}: sweep.zip: belongs to a grid; sample draws axes one by one")


def _check_size(sweep: Sweep, names: list[str]) -> None:
    seeds = sweep.seeds
    if seeds.most is not None and seeds.most < seeds.least:
        raise UserError(f"{sweep.source}: sweep.seeds.most: is below least, {seeds.least}")
    if (seeds.most is None) != (seeds.until is None):
        raise UserError(f"{sweep.source}: sweep.seeds: until and most belong together")
    made = sweep.options.sample
    count = made.cells if isinstance(made, Sample) else size_of_grid(sweep.axes, sweep.options.zip)
    if count > MAX_POINTS:
        raise UserError(
            f"{sweep.source}: axis: {count} points of {', '.join(names)}; at most {MAX_POINTS}. "
            'Shorten axes, or draw some: sample = { kind = "sobol", cells = 1024 }'
        )
    if next(sweep.points(), None) is None:
        raise UserError(f"{sweep.source}: sweep.where: no point fits; the grid is empty")
