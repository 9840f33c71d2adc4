"""Conditions on axes, such as `buffer * rate < 1GB` or `cc in ['bbr3', 'cubic'] and rtt <= 50ms`.

Names are axes; a number with a unit is a quantity (quantities.py). Nothing is evaluated as Python.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from fullpipe.expr.language import BINARY, COMPARE, ExpressionError, literal, parse, source
from fullpipe.sweep.quantities import quantity

_QUANTITY = re.compile(r"(?<![\w.'\"])([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s?([a-zA-Z%]+)(?![\w'\"])")


class Condition:
    """A condition, read once and asked for many cells."""

    def __init__(self, text: str) -> None:
        """Raises ExpressionError where the text is no condition."""
        self.text = text
        self._tree = parse(_QUANTITY.sub(_number, text))

    @property
    def names(self) -> set[str]:
        """The axes that it asks about."""
        return {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}

    def holds(self, fields: Mapping[str, Any]) -> bool:
        """Whether it holds where axes have these values, as scenarios write them.

        Raises ExpressionError naming an unknown axis, or values that do not compare."""
        value = self._value(self._tree, fields)
        if not isinstance(value, bool):
            raise ExpressionError(f"{self.text!r} gives {value!r}, neither true nor false")
        return value

    def _value(self, node: ast.expr, fields: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.BoolOp):
            parts = (bool(self._value(value, fields)) for value in node.values)
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self._value(node.operand, fields)
        if isinstance(node, ast.BinOp):
            pair = (self._value(node.left, fields), self._value(node.right, fields))
            if not all(isinstance(one, int | float) for one in pair):
                raise ExpressionError(f"{source(node)!r}: only numbers can be computed with")
            try:
                return BINARY[type(node.op)](*pair)
            except ZeroDivisionError:
                raise ExpressionError(f"{source(node)!r}: divides by zero") from None
        if isinstance(node, ast.Compare):
            return self._comparison(node, fields)
        if isinstance(node, ast.Tuple | ast.List):
            return [_base(literal(item)) for item in node.elts]
        if isinstance(node, ast.Name | ast.Attribute):
            name = source(node)
            if name not in fields:
                raise ExpressionError(f"{name!r} is no axis; axes are {', '.join(fields)}")
            return _base(fields[name])
        return _base(literal(node))

    def _comparison(self, node: ast.Compare, fields: Mapping[str, Any]) -> bool:
        left = self._value(node.left, fields)
        for operator, other in zip(node.ops, node.comparators, strict=True):
            right = self._value(other, fields)
            if isinstance(operator, ast.In | ast.NotIn):
                if not isinstance(right, list):
                    raise ExpressionError(f"{source(node)!r}: `in` needs a list, ['a', 'b']")
                held = (left in right) == isinstance(operator, ast.In)
            else:
                try:
                    held = bool(COMPARE[type(operator)](left, right))
                except TypeError:
                    raise ExpressionError(f"{left!r} and {right!r} cannot be compared") from None
            if not held:
                return False
            left = right
        return True


def _base(value: Any) -> Any:
    found = quantity(value)
    return value if found is None else found.value


def _number(match: re.Match[str]) -> str:
    found = quantity(match[1] + match[2])
    return match[0] if found is None else repr(found.value)
