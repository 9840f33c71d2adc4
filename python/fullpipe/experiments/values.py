"""Claims' expressions over the cells of a grid: `all(ratio[buffer <= 1] < 0.5)`.

A metric's name stands for its value in every cell; brackets keep the cells for which a condition
on axes holds; arithmetic and comparisons pair cells. Every value carries a dimension of resamples,
so that one evaluation gives a bootstrap. Knows nothing of files or runs.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fullpipe.expr.conditions import holds
from fullpipe.expr.evaluator import Evaluator, Operator
from fullpipe.expr.language import ExpressionError, Scalar, literal, parse, source

Array = npt.NDArray[Any]


class UntestableError(Exception):
    """The expression uses values that are missing; the message names them."""


class NotRunError(UntestableError):
    """The expression uses cells without runs."""


@dataclass(frozen=True)
class Point:
    """A cell, and the engine where engines are compared."""

    axes: dict[str, Any]
    fields: dict[str, Any]

    @property
    def label(self) -> str:
        """The values of its axes."""
        return ", ".join(f"{name} {value}" for name, value in self.axes.items()) or "the only one"


@dataclass(frozen=True)
class Value:
    """Numbers or truths [resample, cell]; `cells` are indices of points, None for one number."""

    data: Array
    cells: tuple[int, ...] | None = None


@dataclass
class Table:
    """The values that expressions use. `metrics`: name -> [resample, point]; `beside`: (kind,
    metric, model) -> point -> value, with kind published, observed or predicted; `missing`: points
    without runs."""

    points: Sequence[Point]
    metrics: Mapping[str, Array]
    numbers: Mapping[str, float] = field(default_factory=dict)
    beside: Mapping[tuple[str, str, str], Mapping[int, float]] = field(default_factory=dict)
    missing: frozenset[int] = frozenset()


def evaluate(expression: str | ast.expr, table: Table) -> Value:
    """The value of an expression.

    Raises ExpressionError for one that is wrong, UntestableError where runs or values are
    missing."""
    node = parse(expression) if isinstance(expression, str) else expression
    with np.errstate(all="ignore"):
        return Cells(table).operand(node)


def single(value: Value, text: str) -> Array:
    """The one number or truth of a value, [resample]. Raises ExpressionError for several."""
    if value.data.shape[1] != 1:
        raise ExpressionError(
            f"{text!r} gives {value.data.shape[1]} values, one a cell; say all(...), any(...), "
            "mean(...) or pick a cell with [...]"
        )
    return np.asarray(value.data[:, 0])


def shown(node: ast.expr) -> ast.expr | None:
    """The number to print for a check: the left side of a comparison, the worst cell of `all`."""
    if isinstance(node, ast.BoolOp):
        return next((number for value in node.values if (number := shown(value)) is not None), None)
    if isinstance(node, ast.UnaryOp):
        return shown(node.operand)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = node.left, node.comparators[0]
        return right if isinstance(left, ast.Constant) else left
    if isinstance(node, ast.Call) and source(node.func) in ("all", "any"):
        inner = node.args[0] if node.args else None
        if isinstance(inner, ast.Compare) and len(inner.ops) == 1:
            below = isinstance(inner.ops[0], ast.Lt | ast.LtE)
            worst = "max" if below == (source(node.func) == "all") else "min"
            return ast.Call(ast.Name(worst, ast.Load()), [inner.left], [])
    return None


def thresholds(check: ast.expr, node: ast.expr | None, table: Table) -> tuple[float, ...]:
    """What a check compares the shown number with, where that is one number or two."""
    numbers: list[float] = []
    wanted = {source(node)} if node is not None else set()
    if isinstance(node, ast.Call) and source(node.func) in _WORST and node.args:
        wanted.add(source(node.args[0]))
    for compared in ast.walk(check):
        if not isinstance(compared, ast.Compare):
            continue
        operands = [compared.left, *compared.comparators]
        for operand, bound in [*itertools.pairwise(operands), *itertools.pairwise(operands[::-1])]:
            if source(operand) in wanted:
                try:
                    value = evaluate(bound, table)
                except (UntestableError, ExpressionError):
                    continue
                if value.cells is None and np.isfinite(value.data).all():
                    numbers.append(float(value.data[0, 0]))
    return tuple(dict.fromkeys(numbers))


class Cells(Evaluator[Value]):
    """Expressions over the cells of a table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.everything = tuple(range(len(table.points)))
        self.axes = set(table.points[0].fields) if table.points else set()

    def operand(self, node: ast.expr) -> Value:
        """The value of a node; raises UntestableError if a part of it is missing."""
        value = self.value(node)
        gone = self.table.missing.intersection(value.cells or ())
        if gone:
            first = self.table.points[min(gone)].label
            raise NotRunError(f"{len(gone)} of {len(value.cells or ())} cells ({first})")
        if value.data.dtype.kind == "f" and np.isnan(value.data).any():
            raise UntestableError(f"nothing to measure in some cells of {source(node)}")
        return value

    def boolean(self, is_and: bool, parts: Iterator[Value], node: ast.expr) -> Value:
        combine = np.logical_and if is_and else np.logical_or
        return functools.reduce(lambda left, right: self._pair(combine, left, right, node), parts)

    def inverse(self, value: Value, node: ast.expr) -> Value:
        return Value(~value.data.astype(bool), value.cells)

    def negative(self, value: Value, node: ast.expr) -> Value:
        return Value(-value.data, value.cells)

    def arithmetic(self, operator: Operator, left: Value, right: Value, node: ast.expr) -> Value:
        return self._pair(operator, left, right, node)

    compare = arithmetic

    def constant(self, value: Scalar) -> Value:
        return Value(np.array([[value]]))

    def name(self, name: str) -> Value:
        if name in self.table.metrics:
            return Value(self.table.metrics[name], self.everything)
        if name in self.table.numbers:
            return Value(np.array([[self.table.numbers[name]]]))
        if name in self.axes:
            values = [point.fields[name] for point in self.table.points]
            if all(isinstance(value, int | float) for value in values):
                return Value(np.array([values], dtype=float), self.everything)
        names = ", ".join([*self.table.metrics, *self.table.numbers, *sorted(self.axes)])
        raise ExpressionError(f"{name!r} is no metric, number or axis of numbers; known: {names}")

    def member(self, left: Value, items: ast.expr, is_in: bool, node: ast.expr) -> Value:
        raise ExpressionError(f"{source(node)!r}: `in` is for conditions in brackets")

    def subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        if base.cells is None:
            raise ExpressionError(f"{source(node)!r}: a single number has no cells to pick")
        conditions = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        keep = [
            position
            for position, cell in enumerate(base.cells)
            if all(holds(condition, self.table.points[cell].fields) for condition in conditions)
        ]
        if not keep:
            raise UntestableError(f"no cell of this size fits {source(node)}")
        return Value(base.data[:, keep], tuple(base.cells[position] for position in keep))

    def _pair(self, operator: Operator, left: Value, right: Value, node: ast.expr) -> Value:
        left, right = self._aligned(left, right, source(node))
        data = operator(left.data, right.data)
        return Value(np.asarray(data), left.cells if left.cells is not None else right.cells)

    def _aligned(self, left: Value, right: Value, text: str) -> tuple[Value, Value]:
        """Both with the same cells: the smaller set if it is part of the other, else paired by the
        axes that vary within either."""
        if left.cells is None or right.cells is None or left.cells == right.cells:
            return left, right
        if set(left.cells) <= set(right.cells):
            return left, _at(right, left.cells)
        if set(right.cells) <= set(left.cells):
            return _at(left, right.cells), right
        names = [name for name in self.table.points[0].axes if self._varies(name, left, right)]
        keys_left, keys_right = self._keys(names, left), self._keys(names, right)
        if sorted(keys_left) != sorted(keys_right) or len(set(keys_left)) < len(keys_left):
            raise ExpressionError(
                f"{text}: their cells do not pair ({len(keys_left)} and {len(keys_right)})"
            )
        order = [keys_right.index(key) for key in keys_left]
        return left, Value(right.data[:, order], left.cells)

    def _varies(self, name: str, *values: Value) -> bool:
        return any(
            len({str(self.table.points[cell].axes[name]) for cell in value.cells or ()}) > 1
            for value in values
        )

    def _keys(self, names: list[str], value: Value) -> list[tuple[str, ...]]:
        points = self.table.points
        return [tuple(str(points[cell].axes[name]) for name in names) for cell in value.cells or ()]

    def call(self, node: ast.Call) -> Value:
        name = source(node.func)
        if node.keywords:
            raise ExpressionError(f"{source(node)!r}: arguments have no names here")
        if name in _BESIDE:
            return self._beside(name, node)
        if name == "monotone":
            held, _ = self.monotone(node)
            return Value(np.asarray(held.all(axis=1, keepdims=True)))
        if name in _AGGREGATES:
            self._arity(node, 1)
            inner = self.operand(node.args[0])
            return Value(_AGGREGATES[name](inner.data, axis=1, keepdims=True))
        if name in _EACH:
            self._arity(node, 1)
            inner = self.operand(node.args[0])
            return Value(_EACH[name](inner.data), inner.cells)
        if name in _ERRORS:
            self._arity(node, 2)
            left, right = (self.operand(argument) for argument in node.args)
            difference = self._pair(np.subtract, left, right, node)
            return Value(_ERRORS[name](difference.data).mean(axis=1, keepdims=True))
        names = [*_BESIDE, "monotone", *_AGGREGATES, *_EACH, *_ERRORS]
        raise ExpressionError(f"{name!r} is no function; known are {', '.join(sorted(names))}")

    def _arity(self, node: ast.Call, count: int) -> None:
        if len(node.args) != count:
            raise ExpressionError(f"{source(node)!r}: takes {count} arguments")

    def _beside(self, kind: str, node: ast.Call) -> Value:
        takes = 2 if kind == "predicted" else 1
        self._arity(node, takes)
        metric = source(node.args[0])
        if metric not in self.table.metrics:
            raise ExpressionError(f"{source(node)!r}: {metric!r} is no metric")
        model = str(literal(node.args[1])) if takes == 2 else ""
        values = self.table.beside.get((kind, metric, model), {})
        if not values:
            raise UntestableError(_BESIDE[kind])
        cells = tuple(sorted(values))
        return Value(np.array([[values[cell] for cell in cells]]), cells)

    def monotone(self, node: ast.Call) -> tuple[Array, list[tuple[int, ...]]]:
        """monotone(metric, "axis", "up" or "down"[, slack]): whether no step along the axis, all
        others equal, goes against it by more than the slack: [resample, group], the groups."""
        if len(node.args) not in (3, 4):
            raise ExpressionError(f"{source(node)!r}: takes a value, an axis, up or down, a slack")
        inner = self.operand(node.args[0])
        axis, direction = str(literal(node.args[1])), literal(node.args[2])
        slack = float(literal(node.args[3])) if len(node.args) == 4 else 0.0
        points = self.table.points
        if direction not in ("up", "down") or axis not in (points[0].axes if points else {}):
            raise ExpressionError(
                f"{source(node)!r}: {axis!r} must be an axis, {direction!r} up or down"
            )
        groups: dict[tuple[str, ...], list[int]] = {}
        cells = inner.cells or ()
        for position, cell in enumerate(cells):
            others = (str(value) for name, value in points[cell].axes.items() if name != axis)
            groups.setdefault(tuple(others), []).append(position)
        sign = 1 if direction == "up" else -1
        held = [
            (np.diff(inner.data[:, positions], axis=1) * sign >= -slack).all(axis=1)
            for positions in groups.values()
        ]
        group_cells = [tuple(cells[position] for position in group) for group in groups.values()]
        return np.array(held, dtype=bool).T.reshape(inner.data.shape[0], len(held)), group_cells


def _at(value: Value, cells: tuple[int, ...]) -> Value:
    assert value.cells is not None
    return Value(value.data[:, [value.cells.index(cell) for cell in cells]], cells)


_BESIDE = {
    "published": "the paper prints no value for these cells",
    "observed": "needs the observed points: --observed FILE.csv",
    "predicted": "no prediction of that model for these cells",
}
_AGGREGATES: dict[str, Callable[..., Array]] = {
    "all": np.all,
    "any": np.any,
    "count": np.sum,
    "fraction": np.mean,
    "mean": np.mean,
    "median": np.median,
    "min": np.min,
    "max": np.max,
    "sum": np.sum,
}
_EACH: dict[str, Callable[..., Array]] = {"abs": np.abs, "sqrt": np.sqrt, "log2": np.log2}
#: Aggregates that pick the worst cell of what a check compares in each.
_WORST = ("min", "max")
_ERRORS: dict[str, Callable[..., Array]] = {"mse": np.square, "mae": np.abs}
