"""Conditions on axes, such as `buffer * rate < 1GB` or `cc in ['bbr3', 'cubic'] and rtt <= 50ms`.

Names are axes; a number with a unit is a quantity (quantities.py).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from typing import Any

from fullpipe.expr.evaluator import Operator, Scalars
from fullpipe.expr.language import ExpressionError, Scalar, parse, source
from fullpipe.expr.quantities import quantity

#: A text in quotes, which stays as it is, or a number with its unit.
_QUANTITY = re.compile(
    r"""'[^']*'|"[^"]*"|(?<![\w.])([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s?([a-zA-Z%]+)(?!\w)"""
)


class Condition:
    """A condition, parsed once and evaluated for many cells. `kind` is what a name is called in
    messages."""

    def __init__(self, text: str, kind: str = "axis") -> None:
        """Raises ExpressionError if the text is not an expression."""
        self.text = text
        self._kind = kind
        self._tree = parse(_QUANTITY.sub(_number, text))

    @property
    def names(self) -> set[str]:
        """The axes that it names."""
        return {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}

    @property
    def full_names(self) -> set[str]:
        """What it names, with fields: `buffer`, `cc.n`."""
        tree = list(ast.walk(self._tree))
        inner = {id(node.value) for node in tree if isinstance(node, ast.Attribute)}
        return {
            source(node)
            for node in tree
            if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner
        }

    def holds(self, fields: Mapping[str, Any]) -> bool:
        """Whether it holds for these values of the axes, as scenarios write them.

        Raises ExpressionError naming an unknown axis, or values that do not compare."""
        return _Axes(fields, self._kind).truth(self._tree)


def holds(node: ast.expr, fields: Mapping[str, Any]) -> bool:
    """Whether a parsed condition holds for these values of the axes, as scenarios write them.

    Raises ExpressionError naming an unknown axis, or values that do not compare."""
    return _Axes(fields, "axis").truth(node)


class _Axes(Scalars):
    """Computes with quantities in their base units."""

    def constant(self, value: Scalar) -> Any:
        return _base(value)

    def name(self, name: str) -> Any:
        return _base(super().name(name))

    def arithmetic(self, operator: Operator, left: Any, right: Any, node: ast.expr) -> Any:
        result = super().arithmetic(operator, left, right, node)
        if math.isnan(result):
            raise ExpressionError(f"{source(node)!r}: divides by zero")
        return result


def _base(value: Any) -> Any:
    number = quantity(value)
    return value if number is None else number.value


def _number(match: re.Match[str]) -> str:
    number = quantity(match[1] + match[2]) if match[1] else None
    return match[0] if number is None else repr(number.value)
