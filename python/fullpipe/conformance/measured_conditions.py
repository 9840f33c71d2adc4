"""The conditions of scorecard items over measured names, such as
`0.98 <= estimate_over_rate <= 1.02 and next == 'drain'`. This module must not know where a value
came from.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fullpipe.expr.evaluator import Operator, Scalars
from fullpipe.expr.language import ExpressionError, Scalar, parse


def holds(text: str, values: Mapping[str, Scalar]) -> bool:
    """Whether a condition holds. Comparisons with a value that was not measured (NaN) are false.

    Raises ExpressionError for a text that is not a condition, or names an unknown value."""
    return _Measured(values, "measured value").truth(parse(text))


def check(text: str, names: Sequence[str] | None = None) -> None:
    """Raises ExpressionError for a text that is not a condition, or that names a value that is not
    in `names`, where that is given."""
    tree = parse(text)
    if not isinstance(tree, ast.Compare | ast.BoolOp):
        raise ExpressionError(f"{text!r} is no condition")
    if names is not None:
        _Whole(dict.fromkeys(names, 1.0), "measured value").truth(tree)


def figures(text: str, values: Mapping[str, Scalar]) -> str:
    """The values that a condition names, such as `estimate 0.913, rtt_ms 40`."""
    names = dict.fromkeys(n.id for n in ast.walk(parse(text)) if isinstance(n, ast.Name))
    shown = []
    for name in names:
        value = values.get(name, math.nan)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        shown.append(f"{name} {value:.4g}" if is_number else f"{name} {value or '-'}")
    return ", ".join(shown)


class _Measured(Scalars):
    """Comparisons with something that did not happen ("" for a number, NaN) are false."""

    def compare(self, operator: Operator, left: Scalar, right: Scalar, node: ast.expr) -> bool:
        if isinstance(left, str) != isinstance(right, str):
            return False
        if any(isinstance(side, float) and math.isnan(side) for side in (left, right)):
            return False
        return super().compare(operator, left, right, node)


class _Whole(_Measured):
    """Computes every part of a condition, also behind one that decides it."""

    def boolean(self, is_and: bool, parts: Iterator[Any], node: ast.expr) -> bool:
        return super().boolean(is_and, iter(list(parts)), node)
