"""A check taken apart: what it says of each cell, so that a verdict can tell where it holds.

`all(x < 1)` is one condition in each of its cells, `max(x) < 1` the same one; conditions joined by
`and` are held by a cell where it holds each. What cannot be taken apart is one condition of all
of its cells together. Knows expressions and cells, never runs.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fullpipe.expr.language import source
from fullpipe.papers.values import Array, Cells, Point, Table, evaluate


@dataclass(frozen=True)
class Part:
    """One condition: `holds` [resample]; `cells`: the points that it is about, first the one that
    it is named after; `whole`: the condition, where it is about all of its cells together."""

    label: str
    holds: Array
    cells: tuple[int, ...]
    whole: ast.expr | None = None


def parts_of(check: ast.expr, table: Table) -> list[Part]:
    """The conditions that must all hold for a check to hold.

    Raises what `evaluate` does."""
    names = _varying(table.points, touched(check, table))
    whole: list[Part] = []
    single: dict[int, Part] = {}
    for condition in _conditions(check):
        found = _by_cell(condition, table)
        if found is None:
            holds = np.asarray(evaluate(condition, table).data[:, 0], dtype=bool)
            cells = tuple(touched(condition, table))
            whole.append(Part(source(condition), holds, cells, condition))
            continue
        for part in found:
            cell = part.cells[0]
            label = ", ".join(f"{name} {table.points[cell].axes[name]}" for name in names)
            known = single.get(cell)
            if known is None:
                single[cell] = Part(label or "the only cell", part.holds, part.cells)
            else:
                cells = tuple(dict.fromkeys((*known.cells, *part.cells)))
                single[cell] = Part(known.label, known.holds & part.holds, cells)
    return [*(single[cell] for cell in sorted(single)), *whole]


def touched(node: ast.expr, table: Table) -> list[int]:
    """The points whose runs an expression uses."""
    return sorted({cell for leaf in _leaves(node, table) for cell in leaf})


def averages(node: ast.expr) -> bool:
    """Whether an expression pools its cells: none alone decides it, as the worst of them would."""
    calls = [source(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)]
    return not {"min", "max", "all", "any", "count", "fraction", "monotone"}.intersection(calls)


def _conditions(check: ast.expr) -> list[ast.expr]:
    if isinstance(check, ast.BoolOp) and isinstance(check.op, ast.And):
        return [one for value in check.values for one in _conditions(value)]
    return [check]


def _by_cell(node: ast.expr, table: Table) -> list[Part] | None:
    """What a condition says of each cell; None where it cannot be said."""
    if isinstance(node, ast.Call) and source(node.func) == "monotone":
        held, groups = Cells(table).monotone(node)
        return [Part("", held[:, i], cells) for i, cells in enumerate(groups)]
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
    data = np.asarray(value.data, dtype=bool)
    return [
        Part("", data[:, place], _paired(cell, leaves, table.points))
        for place, cell in enumerate(value.cells)
    ]


def _inside(node: ast.expr) -> ast.expr | None:
    """The condition of each cell: x < s of `all(x < s)`, of `max(x) < s` and of `s > max(x)`."""
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


def _leaves(node: ast.expr, table: Table) -> list[tuple[int, ...]]:
    """The sets of points that metrics in an expression stand for."""
    if isinstance(node, ast.Subscript):
        inner = _leaves(node.value, table)
        cells = Cells(table).value(node).cells
        return [cells] if inner and cells else []
    if isinstance(node, ast.Name):
        return [tuple(range(len(table.points)))] if node.id in table.metrics else []
    if isinstance(node, ast.Call) and source(node.func) in ("published", "observed", "predicted"):
        return []
    found = [
        leaf
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.expr)
        for leaf in _leaves(child, table)
    ]
    return list(dict.fromkeys(found))


def _paired(
    cell: int, leaves: Sequence[tuple[int, ...]], points: Sequence[Point]
) -> tuple[int, ...]:
    """The cell, and those of other leaves that it is compared with: alike in all axes that vary
    within a leaf."""
    found = [cell]
    for leaf in leaves:
        if cell in leaf:
            continue
        names = _varying(points, leaf)
        found += [
            other
            for other in leaf
            if all(points[other].axes[name] == points[cell].axes[name] for name in names)
        ]
    return tuple(dict.fromkeys(found))


def _varying(points: Sequence[Point], cells: Sequence[int]) -> list[str]:
    if not cells:
        return []
    names = points[cells[0]].axes
    return [n for n in names if len({str(points[cell].axes[n]) for cell in cells}) > 1]
