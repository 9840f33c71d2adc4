"""The objective of a search: an expression over `ROW.MEASURE`, such as
`own.queue + 2 * max(0, 0.97 - own.utilisation)`. This module must not know where a value came from.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fullpipe.expr.evaluator import Scalars
from fullpipe.expr.language import ExpressionError, parse, source

_FUNCTIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "abs": lambda values: abs(values[0]),
    "max": max,
    "min": min,
}


class Objective:
    """An expression, parsed once and computed for many settings."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        """Raises ExpressionError if the text is no expression over these names."""
        self.text = text
        self._tree = parse(text)
        used = {source(node) for node in ast.walk(self._tree) if isinstance(node, ast.Attribute)}
        #: Those that it uses.
        self.names = frozenset(used.intersection(names))
        self.value(dict.fromkeys(names, 1.0))

    def value(self, values: Mapping[str, float]) -> float:
        """The number to minimise; infinite where a value that it needs was not measured.

        Raises ExpressionError for an unknown name, or for what is no number."""
        measure = _Values(values, "measure of a row").value(self._tree)
        if isinstance(measure, bool) or not isinstance(measure, int | float):
            raise ExpressionError(f"{self.text!r} gives {measure!r}, no number")
        return math.inf if math.isnan(measure) else float(measure)


class _Values(Scalars):
    """Numbers, with a few functions."""

    def call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else source(node)
        if name not in _FUNCTIONS or node.keywords or not node.args:
            raise ExpressionError(f"{source(node)!r}: known functions are {', '.join(_FUNCTIONS)}")
        arguments = [self._number(self.operand(argument), node) for argument in node.args]
        if any(math.isnan(argument) for argument in arguments):
            return math.nan
        return _FUNCTIONS[name](arguments)
