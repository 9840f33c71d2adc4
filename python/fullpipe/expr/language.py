"""The small language of metrics and claims: arithmetic, comparisons, calls of listed functions.

Python's parser reads it, so its grammar is known; `parse` refuses every construct that is not
listed, and `evaluator` computes. Nothing is ever evaluated as Python.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from fullpipe.base.errors import UserError

MAX_CHARACTERS = 1000
MAX_NODES = 300

Scalar = str | int | float | bool

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ALLOWED = (
    ast.Expression,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.Not,
    ast.USub,
    ast.BinOp,
    ast.Compare,
    ast.In,
    ast.NotIn,
    ast.Call,
    ast.keyword,
    ast.Name,
    ast.Attribute,
    ast.Load,
    ast.Constant,
    ast.Subscript,
    ast.Tuple,
    ast.List,
    *BINARY,
    *COMPARE,
)


class ExpressionError(UserError):
    """An expression that cannot be read or computed; the message says why."""


def parse(text: str) -> ast.expr:
    """The expression as a tree of allowed nodes only.

    Raises ExpressionError naming what is not allowed."""
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(f"longer than {MAX_CHARACTERS} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or type(error).__name__
        raise ExpressionError(f"{text!r} is not an expression: {reason}") from None
    for count, node in enumerate(ast.walk(tree)):
        if count > MAX_NODES:
            raise ExpressionError("too long an expression")
        if not isinstance(node, _ALLOWED):
            raise ExpressionError(f"{text!r}: {type(node).__name__} is not part of the language")
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
            raise ExpressionError(f"{text!r}: only the listed functions can be called")
        if isinstance(node, ast.Constant) and not isinstance(node.value, str | int | float | bool):
            raise ExpressionError(f"{text!r}: {node.value!r} is neither number nor text")
    return tree.body


def literal(node: ast.expr) -> Scalar:
    """The constant of a node, a minus sign allowed. Raises ExpressionError for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal(node.operand)
        if not isinstance(value, str):
            return -value
    raise ExpressionError(f"{ast.unparse(node)!r} is not a plain number or text")


def source(node: ast.expr) -> str:
    """The expression as text."""
    return ast.unparse(node)
