"""Axes, and the points that they span: lists, ranges, zipped axes, conditions, samples.

A point is one value for each axis. Must never know a scenario.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fullpipe.base.errors import UserError
from fullpipe.expr.conditions import Condition
from fullpipe.expr.language import ExpressionError
from fullpipe.expr.quantities import Quantity, quantity, written

MAX_VALUES = 100_000


@dataclass(frozen=True)
class Axis:
    """A name and its values, as scenarios write them; a value that is a table is shown by its
    `label`. `ends`: of a range, between which samples are drawn."""

    name: str
    values: tuple[Any, ...]
    ends: tuple[Quantity, Quantity] | None = None
    logarithmic: bool = False
    whole: bool = False

    @property
    def kind(self) -> str:
        """The kind of quantity of all values; empty if they have none in common."""
        kinds = {number.kind if (number := quantity(v)) else "" for v in self.values}
        return kinds.pop() if len(kinds) == 1 else ""

    def at(self, share: float) -> Any:
        """The value at a position from 0 to 1 on the axis: any of a range, an element of a list."""
        if self.ends is None:
            return self.values[min(int(share * len(self.values)), len(self.values) - 1)]
        return _between(self.ends, share, self.logarithmic, self.whole)


Point = dict[str, Any]


def read_axis(name: str, content: Any, where: str) -> Axis:
    """An axis from a list, or from a range: `{ from, to, count, scale = "linear" | "log" }` or
    `{ from, to, step }`.

    Raises UserError naming the key and what is allowed."""
    if isinstance(content, list):
        return _listed(name, content, where)
    if isinstance(content, Mapping):
        return _ranged(name, content, where)
    raise UserError(
        f"{where}: {content!r} is neither a list nor a range such as "
        '{ from = "10ms", to = "1s", count = 5, scale = "log" }'
    )


def grid(axes: Sequence[Axis], zipped: Sequence[Sequence[str]]) -> Iterator[Point]:
    """Every point of the grid; zipped axes advance together."""
    by_name = {axis.name: axis for axis in axes}
    member = {name: tuple(names) for names in zipped for name in names}
    groups = dict.fromkeys(member.get(axis.name, (axis.name,)) for axis in axes)
    choices = [
        list(zip(*(by_name[name].values for name in group), strict=True)) for group in groups
    ]
    names = [name for group in groups for name in group]
    for chosen in itertools.product(*choices):
        yield dict(zip(names, itertools.chain.from_iterable(chosen), strict=True))


def size_of_grid(axes: Sequence[Axis], zipped: Sequence[Sequence[str]]) -> int:
    """The number of points of `grid`, without creating them."""
    late = {name for names in zipped for name in names[1:]}
    return math.prod(len(axis.values) for axis in axes if axis.name not in late)


def samples(
    axes: Sequence[Axis], kind: Literal["sobol", "latin-hypercube"], count: int, seed: int
) -> Iterator[Point]:
    """`count` points that fill the space evenly (SciPy's `qmc`), the same for the same seed."""
    from scipy.stats import qmc  # takes a second to load

    if kind == "sobol":
        sampler: Any = qmc.Sobol(len(axes), seed=seed)
        # Sobol's sequence is balanced at powers of two: the first `count` of the next one.
        shares = sampler.random_base2(math.ceil(math.log2(max(count, 2))))[:count]
    else:
        shares = qmc.LatinHypercube(len(axes), seed=seed).random(count)
    for row in shares:
        yield {axis.name: axis.at(float(share)) for axis, share in zip(axes, row, strict=True)}


def read_condition(text: str, names: Sequence[str], where: str) -> Condition:
    """The condition. Raises UserError where it is invalid or names what is no axis."""
    try:
        condition = Condition(text)
    except ExpressionError as error:
        raise UserError(f"{where}: {error}") from None
    for name in sorted(condition.names - set(names)):
        raise UserError(f"{where}: {text!r}: {name} is no axis; axes are {', '.join(names)}")
    return condition


def _listed(name: str, values: list[Any], where: str) -> Axis:
    if not values:
        raise UserError(f"{where}: is empty; an axis needs at least one value")
    for value in values:
        if isinstance(value, Mapping):
            if not isinstance(value.get("label"), str | int | float):
                raise UserError(f"{where}: {dict(value)!r}: a table needs a label")
        elif not isinstance(value, str | int | float):
            raise UserError(f"{where}: {value!r} is no text, number or table")
    kinds = {number.kind: value for value in values if (number := quantity(value)) is not None}
    with_unit = {kind: value for kind, value in kinds.items() if kind != "plain"}
    if len(with_unit) > 1 and not set(with_unit) <= {"size", "bdp", "packets"}:
        shown = ", ".join(f"{value!r} ({kind})" for kind, value in with_unit.items())
        raise UserError(f"{where}: units of different kinds: {shown}; an axis has one kind")
    labels = [str(v["label"]) if isinstance(v, Mapping) else str(v) for v in values]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise UserError(f"{where}: {twice!r} is listed twice")
    return Axis(name, tuple(values))


def _ranged(name: str, table: Mapping[str, Any], where: str) -> Axis:
    unknown = sorted(set(table) - {"from", "to", "count", "step", "scale"})
    if unknown or "from" not in table or "to" not in table:
        raise UserError(
            f"{where}: a range has from, to, and count or step, and scale"
            + (f"; {unknown[0]!r} is unknown" if unknown else "")
        )
    ends = quantity(table["from"]), quantity(table["to"])
    low, high = ends
    if low is None or high is None:
        raise UserError(f"{where}: {table['from']!r} to {table['to']!r}: both must be quantities")
    if low.kind != high.kind:
        raise UserError(
            f"{where}: from {table['from']!r} ({low.kind}) to {table['to']!r} ({high.kind}): "
            "units of different kinds; both ends must be of one kind"
        )
    if high.value <= low.value:
        raise UserError(f"{where}: to = {table['to']!r} must be above from = {table['from']!r}")
    scale = table.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise UserError(f'{where}.scale: {scale!r} is not "linear" or "log"')
    if scale == "log" and low.value <= 0:
        raise UserError(f"{where}: a logarithmic range must begin above 0, not at {low.value:g}")
    count = _count(table, low, high, where)
    whole = all(isinstance(table[end], int) for end in ("from", "to")) and (
        scale == "log" or (high.value - low.value) % (count - 1) == 0
    )
    shares = [index / (count - 1) for index in range(count)]
    values = [_between((low, high), share, scale == "log", whole) for share in shares]
    return Axis(name, tuple(dict.fromkeys(values)), (low, high), scale == "log", whole)


def _count(table: Mapping[str, Any], low: Quantity, high: Quantity, where: str) -> int:
    if ("count" in table) == ("step" in table):
        raise UserError(f"{where}: give either count or step")
    if "count" in table:
        count = table["count"]
        if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MAX_VALUES:
            raise UserError(f"{where}.count: {count!r} must be a whole number, 2 to {MAX_VALUES}")
        return count
    step = quantity(table["step"])
    if table.get("scale", "linear") != "linear":
        raise UserError(f"{where}: step belongs to a linear range; a logarithmic one has count")
    if step is None or step.kind != low.kind or step.value <= 0:
        raise UserError(f"{where}.step: {table['step']!r} must be a {low.kind} above 0")
    steps = (high.value - low.value) / step.value
    if abs(steps - round(steps)) > 1e-6 * steps:
        raise UserError(f"{where}.step: {table['step']!r} does not divide the range evenly")
    if steps > MAX_VALUES:
        raise UserError(f"{where}.step: {table['step']!r} gives more than {MAX_VALUES} values")
    return round(steps) + 1


def _between(ends: tuple[Quantity, Quantity], share: float, logarithmic: bool, whole: bool) -> Any:
    low, high = ends
    like = high if share == 1.0 else low
    if share in (0.0, 1.0):
        value = like.value
    elif logarithmic:
        value = low.value * (high.value / low.value) ** share
    else:
        value = low.value + (high.value - low.value) * share
    if whole:
        return round(value)
    return written(float(f"{value:.6g}") if logarithmic else value, like)
