"""What an item is held against: conditions over measured names, such as
`0.98 <= estimate_over_rate <= 1.02 and next == 'drain'`. Must never know where a value came from.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from fullpipe.expr.language import BINARY, COMPARE, ExpressionError, Scalar, parse, source


def holds(text: str, values: Mapping[str, Scalar]) -> bool:
    """Whether a condition holds. A number that was not measured (NaN) holds nothing.

    Raises ExpressionError for what is no condition or names what is not there."""
    found = _value(parse(text), values)
    if not isinstance(found, bool):
        raise ExpressionError(f"{text!r} is no condition")
    return found


def check(text: str) -> None:
    """Raises ExpressionError for what is no condition, whatever is measured."""
    node = parse(text)
    if not isinstance(node, ast.Compare | ast.BoolOp):
        raise ExpressionError(f"{text!r} is no condition")


def _value(node: ast.expr, values: Mapping[str, Scalar]) -> Scalar:
    if isinstance(node, ast.BoolOp):
        found = [_value(part, values) for part in node.values]
        return all(found) if isinstance(node.op, ast.And) else any(found)
    if isinstance(node, ast.Compare):
        sides = [_value(side, values) for side in (node.left, *node.comparators)]
        return all(
            _compared(operator, left, right)
            for operator, left, right in zip(node.ops, sides, sides[1:], strict=False)
        )
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, values), _number(node.right, values)
        if isinstance(node.op, ast.Div) and right == 0:
            return math.nan
        return float(BINARY[type(node.op)](left, right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, values)
    if isinstance(node, ast.Name):
        if node.id not in values:
            raise ExpressionError(f"{node.id!r} is not measured; known are {', '.join(values)}")
        return values[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool):
        return node.value
    raise ExpressionError(f"{source(node)!r} is no part of a condition")


def _compared(operator: ast.cmpop, left: Scalar, right: Scalar) -> bool:
    if isinstance(left, str) != isinstance(right, str):
        return False
    return bool(COMPARE[type(operator)](left, right))


def _number(node: ast.expr, values: Mapping[str, Scalar]) -> float:
    found = _value(node, values)
    if isinstance(found, str):
        raise ExpressionError(f"{source(node)!r} is text, not a number")
    return float(found)
