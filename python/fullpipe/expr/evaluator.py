"""The one evaluator of the expression language: a walk over the tree that `parse` returns.

`Evaluator` decides what each construct of the language means and leaves the arithmetic of its
values to a subclass; `Scalars` computes with numbers, text and truth values. This module must not
know what a name stands for.
"""

from __future__ import annotations

import ast
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from fullpipe.expr.language import BINARY, COMPARE, ExpressionError, Scalar, source

V = TypeVar("V")
Operator = Callable[[Any, Any], Any]


class Evaluator(ABC, Generic[V]):
    """Evaluates trees to values of one type. Subclasses define the operations."""

    def operand(self, node: ast.expr) -> V:
        """The value of a node inside a larger expression. Raises ExpressionError."""
        return self.value(node)

    def value(self, node: ast.expr) -> V:
        """The value of a node. Raises ExpressionError for a construct that is not allowed here."""
        match node:
            case ast.BoolOp():
                parts = (self.operand(part) for part in node.values)
                return self.boolean(isinstance(node.op, ast.And), parts, node)
            case ast.UnaryOp(op=ast.Not()):
                return self.inverse(self.operand(node.operand), node)
            case ast.UnaryOp():
                return self.negative(self.operand(node.operand), node)
            case ast.BinOp():
                left, right = self.operand(node.left), self.operand(node.right)
                return self.arithmetic(BINARY[type(node.op)], left, right, node)
            case ast.Compare():
                return self.boolean(True, self._comparisons(node), node)
            case ast.Constant(value=str() | int() | float() as constant):
                return self.constant(constant)
            case ast.Name() | ast.Attribute():
                return self.name(source(node))
            case ast.Call():
                return self.call(node)
            case ast.Subscript():
                return self.subscript(node)
            case _:
                raise self.refused(node)

    def _comparisons(self, node: ast.Compare) -> Iterator[V]:
        left = self.operand(node.left)
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                yield self.member(left, comparator, isinstance(operator, ast.In), node)
                continue
            right = self.operand(comparator)
            yield self.compare(COMPARE[type(operator)], left, right, node)
            left = right

    @abstractmethod
    def boolean(self, is_and: bool, parts: Iterator[V], node: ast.expr) -> V:
        """The conjunction or disjunction of the parts, which are evaluated as they are read."""

    @abstractmethod
    def inverse(self, value: V, node: ast.expr) -> V:
        """The logical negation."""

    @abstractmethod
    def negative(self, value: V, node: ast.expr) -> V:
        """The value with the opposite sign."""

    @abstractmethod
    def arithmetic(self, operator: Operator, left: V, right: V, node: ast.expr) -> V:
        """One of `BINARY` applied to two values."""

    @abstractmethod
    def compare(self, operator: Operator, left: V, right: V, node: ast.expr) -> V:
        """One of `COMPARE` applied to two values."""

    @abstractmethod
    def constant(self, value: Scalar) -> V:
        """The value of a literal."""

    @abstractmethod
    def name(self, name: str) -> V:
        """The value of a name."""

    def member(self, left: V, items: ast.expr, is_in: bool, node: ast.expr) -> V:
        """Whether a value is (or is not) in a list of literals; refused unless overridden."""
        raise self.refused(node)

    def call(self, node: ast.Call) -> V:
        """The value of a call; refused unless overridden."""
        raise self.refused(node)

    def subscript(self, node: ast.Subscript) -> V:
        """The value of `a[b]`; refused unless overridden."""
        raise self.refused(node)

    @staticmethod
    def refused(node: ast.expr) -> ExpressionError:
        """The error for a construct that is not allowed in this place."""
        return ExpressionError(f"{source(node)!r} is not allowed here")


class Scalars(Evaluator[Any]):
    """Values are numbers, text and truth values; `names` maps names to them.

    `kind` is what a name is called in messages, such as "axis". A division by zero gives NaN, which
    makes every comparison false."""

    def __init__(self, names: Mapping[str, Any], kind: str) -> None:
        self.names = names
        self.kind = kind

    def truth(self, node: ast.expr) -> bool:
        """The truth value of a node. Raises ExpressionError for any other value."""
        truth = self.value(node)
        if not isinstance(truth, bool):
            raise ExpressionError(f"{source(node)!r} gives {truth!r}, neither true nor false")
        return truth

    def boolean(self, is_and: bool, parts: Iterator[Any], node: ast.expr) -> bool:
        return all(parts) if is_and else any(parts)

    def inverse(self, value: Any, node: ast.expr) -> bool:
        return not value

    def negative(self, value: Any, node: ast.expr) -> Any:
        return -self._number(value, node)

    def arithmetic(self, operator: Operator, left: Any, right: Any, node: ast.expr) -> Any:
        pair = self._number(left, node), self._number(right, node)
        try:
            return operator(*pair)
        except ZeroDivisionError:
            return math.nan

    def compare(self, operator: Operator, left: Any, right: Any, node: ast.expr) -> bool:
        try:
            return bool(operator(left, right))
        except TypeError:
            raise ExpressionError(
                f"{source(node)!r}: {left!r} and {right!r} cannot be compared"
            ) from None

    def member(self, left: Any, items: ast.expr, is_in: bool, node: ast.expr) -> bool:
        if not isinstance(items, ast.Tuple | ast.List):
            raise ExpressionError(f"{source(node)!r}: `in` needs a list, ['a', 'b']")
        return (left in [self.operand(item) for item in items.elts]) == is_in

    def constant(self, value: Scalar) -> Any:
        return value

    def name(self, name: str) -> Any:
        if name not in self.names:
            names = ", ".join(self.names)
            raise ExpressionError(f"{name!r} is no {self.kind}; known: {names}")
        return self.names[name]

    @staticmethod
    def _number(value: Any, node: ast.expr) -> int | float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ExpressionError(f"{source(node)!r}: {value!r} is not a number")
        return value
