"""Splits the check of a claim into one condition for each cell, so that a verdict can name the
cells in which it holds.

`all(x < 1)` is one condition in each cell, and so is `max(x) < 1`; a cell holds conditions joined
by `and` if it holds each of them. A check that does not split is one condition on all of its cells.
This module knows expressions and cells; it must not know runs.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fullpipe.experiments.values import Array, Cells, Point, Table, evaluate
from fullpipe.expr.language import source


@dataclass(frozen=True)
class Condition:
    """One condition of a check. `holds` [resample]: whether it holds; `cells`: the points that it
    uses, first the one that gives the label; `whole`: the expression, if it does not split into
    cells."""

    label: str
    holds: Array
    cells: tuple[int, ...]
    whole: ast.expr | None = None


def conditions_of(check: ast.expr, table: Table) -> list[Condition]:
    """The conditions that must all hold for a check to hold.

    Raises what `evaluate` does."""
    names = varying(table.points, touched(check, table))
    whole: list[Condition] = []
    single: dict[int, Condition] = {}
    for expression in _conjuncts(check):
        by_cell = _by_cell(expression, table)
        if by_cell is None:
            holds = np.asarray(evaluate(expression, table).data[:, 0], dtype=bool)
            cells = tuple(touched(expression, table))
            whole.append(Condition(source(expression), holds, cells, expression))
            continue
        for condition in by_cell:
            cell = condition.cells[0]
            label = ", ".join(f"{name} {table.points[cell].axes[name]}" for name in names)
            earlier = single.get(cell)
            if earlier is None:
                single[cell] = replace(condition, label=label or "the only cell")
            else:
                cells = tuple(dict.fromkeys((*earlier.cells, *condition.cells)))
                holds = earlier.holds & condition.holds
                single[cell] = Condition(earlier.label, holds, cells)
    return [*(single[cell] for cell in sorted(single)), *whole]


def touched(node: ast.expr, table: Table) -> list[int]:
    """The points whose runs an expression uses."""
    return sorted({cell for leaf in _leaves(node, table) for cell in leaf})


def partners(node: ast.expr, table: Table, cells: Collection[int]) -> set[int]:
    """The points with which an expression compares those of `cells` that it uses."""
    leaves = _leaves(node, table)
    used = {cell for leaf in leaves for cell in leaf}.intersection(cells)
    return {partner for cell in used for partner in _paired(cell, leaves, table.points)}


def averages(node: ast.expr) -> bool:
    """Whether an expression averages over its cells, so that no single cell decides it."""
    calls = [source(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)]
    return not {"min", "max", "all", "any", "count", "fraction", "monotone"}.intersection(calls)


def _conjuncts(check: ast.expr) -> list[ast.expr]:
    if isinstance(check, ast.BoolOp) and isinstance(check.op, ast.And):
        return [conjunct for value in check.values for conjunct in _conjuncts(value)]
    return [check]


def _by_cell(node: ast.expr, table: Table) -> list[Condition] | None:
    """The condition in each cell, without labels; None if it does not split."""
    if isinstance(node, ast.Call) and source(node.func) == "monotone":
        held, groups = Cells(table).monotone(node)
        return [Condition("", held[:, i], cells) for i, cells in enumerate(groups)]
    inner = _inside(node)
    if inner is None:
        return None
    if isinstance(inner, ast.Compare) and inner is not node:
        bound = inner.comparators[0]
        if source(node)[:4] != "all(" and evaluate(bound, table).cells is not None:
            return None
    value = evaluate(inner, table)
    if value.cells is None:
        return None
    leaves = _leaves(inner, table)
    pooled = _pooled(inner, table)
    data = np.asarray(value.data, dtype=bool)
    return [
        Condition("", data[:, column], tuple(dict.fromkeys((*paired, *pooled))))
        for column, cell in enumerate(value.cells)
        for paired in [_paired(cell, leaves, table.points)]
    ]


def _pooled(node: ast.expr, table: Table) -> list[int]:
    """The points of which an expression takes one number for all cells, such as a mean."""
    calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
    numbers = [call for call in calls if Cells(table).value(call).cells is None]
    return sorted({cell for number in numbers for leaf in _leaves(number, table) for cell in leaf})


def _inside(node: ast.expr) -> ast.expr | None:
    """The comparison within each cell: x < s of `all(x < s)`, `max(x) < s` and `s > max(x)`."""
    if isinstance(node, ast.Call) and source(node.func) == "all":
        return node.args[0]
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    left, operator, right = node.left, node.ops[0], node.comparators[0]
    if _is(right, "min", "max"):
        swapped = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
        if type(operator) not in swapped or _is(left, "min", "max"):
            return None
        left, operator, right = right, swapped[type(operator)](), left
    below = isinstance(operator, ast.Lt | ast.LtE) and _is(left, "max")
    above = isinstance(operator, ast.Gt | ast.GtE) and _is(left, "min")
    if not (below or above):
        return None
    assert isinstance(left, ast.Call)
    return ast.Compare(left.args[0], [operator], [right])


def _is(node: ast.expr, *names: str) -> bool:
    return isinstance(node, ast.Call) and source(node.func) in names and len(node.args) == 1


def metric_uses(node: ast.expr, table: Table) -> list[ast.expr]:
    """The parts of an expression that are a metric, or a metric of some cells."""
    if isinstance(node, ast.Subscript):
        return [node] if metric_uses(node.value, table) else []
    if isinstance(node, ast.Name):
        return [node] if node.id in table.metrics else []
    if isinstance(node, ast.Call) and source(node.func) in ("published", "observed", "predicted"):
        return []
    # A function's name may be a metric's too.
    children = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    expressions = (child for child in children if isinstance(child, ast.expr))
    return [use for child in expressions for use in metric_uses(child, table)]


def _leaves(node: ast.expr, table: Table) -> list[tuple[int, ...]]:
    """The points that each metric in an expression selects."""
    values = (Cells(table).value(use).cells for use in metric_uses(node, table))
    return list(dict.fromkeys(cells for cells in values if cells))


def _paired(
    cell: int, leaves: Sequence[tuple[int, ...]], points: Sequence[Point]
) -> tuple[int, ...]:
    """The cell, and the cells of the other leaves that it is compared with: those equal to it in
    all axes that vary within a leaf."""
    paired = [cell]
    for leaf in leaves:
        if cell in leaf:
            continue
        names = varying(points, leaf)
        paired += [
            partner
            for partner in leaf
            if all(points[partner].axes[name] == points[cell].axes[name] for name in names)
        ]
    return tuple(dict.fromkeys(paired))


def varying(points: Sequence[Point], cells: Sequence[int]) -> list[str]:
    """The axes in which these points differ."""
    if not cells:
        return []
    names = points[cells[0]].axes
    return [n for n in names if len({str(points[cell].axes[n]) for cell in cells}) > 1]
