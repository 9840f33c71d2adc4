"""Statements about tcp_info, in a part of Python. They are worked out here, never executed: a file
may come from anybody.
"""

from __future__ import annotations

import ast
import operator
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from fullpipe.packetdrill.script import NotSupportedError, ScriptError

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.RShift: operator.rshift,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "int": int,
    "float": float,
    "round": round,
    "len": len,
}
#: Names of linux/tcp.h that scripts use.
CONSTANTS = {
    "TCP_CA_Open": 0,
    "TCP_CA_Disorder": 1,
    "TCP_CA_CWR": 2,
    "TCP_CA_Recovery": 3,
    "TCP_CA_Loss": 4,
    "TCPI_OPT_TIMESTAMPS": 1,
    "TCPI_OPT_SACK": 2,
    "TCPI_OPT_WSCALE": 4,
    "TCPI_OPT_ECN": 8,
    "TCPI_OPT_ECN_SEEN": 16,
    "TCPI_OPT_SYN_DATA": 32,
    "TCP_ESTABLISHED": 1,
    "TCP_SYN_SENT": 2,
    "TCP_SYN_RECV": 3,
    "TCP_FIN_WAIT1": 4,
    "TCP_FIN_WAIT2": 5,
    "TCP_TIME_WAIT": 6,
    "TCP_CLOSE": 7,
    "TCP_CLOSE_WAIT": 8,
    "TCP_LAST_ACK": 9,
    "TCP_LISTEN": 10,
    "TCP_CLOSING": 11,
    "TCP_INFINITE_SSTHRESH": 0x7FFFFFFF,
}
_FIELD = "tcpi_"
#: A width in a format.
_WIDE = re.compile(r"%[^a-zA-Z]*(?:\d{3}|\*)")
_MOST_NODES = 400
#: Numbers and texts above this size are no statement about a field.
_HIGHEST = 1 << 80
_LONGEST = 2_000


class AssertionFailedError(ScriptError):
    """An `assert` that is false."""


def parse(text: str, line: int) -> list[ast.stmt]:
    """The statements. Raises ScriptError or NotSupportedError."""
    try:
        tree = _tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "is too deep"
        raise ScriptError(line, f"code: {reason}") from None
    for count, node in enumerate(ast.walk(tree)):
        if count > _MOST_NODES:
            raise NotSupportedError(line, "code this long")
        _check(node, line)
    return tree.body


def _tree(text: str) -> ast.Module:
    joined = text.replace("\\\n", " ")
    try:
        return ast.parse(textwrap.dedent(joined).strip())
    except IndentationError:
        # The first statement follows `%{` on its line; the others are below.
        return ast.parse("\n".join(line.strip() for line in joined.splitlines()))


_ALLOWED = (
    ast.Module,
    ast.Assert,
    ast.Expr,
    ast.Assign,
    ast.AugAssign,
    ast.If,
    ast.Pass,
    ast.Name,
    ast.Load,
    ast.Store,
    ast.Constant,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.IfExp,
    ast.Call,
    ast.Tuple,
    ast.List,
)


def _check(node: ast.AST, line: int) -> None:
    if isinstance(node, _ALLOWED) or type(node) in _OPERATORS:
        return
    raise NotSupportedError(line, f"code with {type(node).__name__}")


class Evaluator:
    """Keeps what statements assign, from one block of code to the next."""

    def __init__(self) -> None:
        self._variables: dict[str, Any] = {}
        self._info: Mapping[str, int] = {}
        self._line = 0

    def run(self, text: str, info: Mapping[str, int], line: int) -> None:
        """Works the statements out. Raises AssertionFailedError, or NotSupportedError for a field
        that the engine has not."""
        self._info, self._line = info, line
        try:
            self._statements(parse(text, line))
        except (ArithmeticError, TypeError, ValueError, IndexError, RecursionError) as error:
            raise ScriptError(line, f"code: {error}") from None

    def _statements(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assert(test=test, msg=message):
                if not self._value(test):
                    self._fail(test, message)
            case ast.Expr(value=value):
                self._value(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._variables[name] = self._value(value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                pair = self._name(name), self._value(value)
                self._variables[name] = self._calculated(op, *pair)
            case ast.If(test=test, body=body, orelse=orelse):
                self._statements(body if self._value(test) else orelse)
            case ast.Pass():
                pass
            case _:
                raise NotSupportedError(self._line, f"code with {type(statement).__name__}")

    def _fail(self, test: ast.expr, message: ast.expr | None) -> None:
        names = sorted({node.id for node in ast.walk(test) if isinstance(node, ast.Name)})
        values = ", ".join(
            f"{name} = {self._name(name)}" for name in names if name not in _FUNCTIONS
        )
        explanation = f" ({self._value(message)})" if message is not None else ""
        raise AssertionFailedError(self._line, f"assert {ast.unparse(test)}: {values}{explanation}")

    def _name(self, name: str) -> Any:
        if name in self._variables:
            return self._variables[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name.startswith(_FIELD):
            if name.removeprefix(_FIELD) in self._info:
                return self._info[name.removeprefix(_FIELD)]
            raise NotSupportedError(self._line, f"field {name}")
        raise ScriptError(self._line, f"code: {name} is not defined")

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._name(name)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return tuple(map(self._value, elements))
            case ast.UnaryOp(op=op, operand=operand):
                return _OPERATORS[type(op)](self._value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self._calculated(op, self._value(left), self._value(right))
            case ast.BoolOp(op=ast.And(), values=values):
                return all(map(self._value, values))
            case ast.BoolOp(values=values):
                return any(map(self._value, values))
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._value(body if self._value(test) else orelse)
            case ast.Call(func=ast.Name(id="print"), args=arguments, keywords=[]):
                return tuple(map(self._value, arguments))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                if name in _FUNCTIONS:
                    return self._bounded(_FUNCTIONS[name](*map(self._value, arguments)))
        raise NotSupportedError(self._line, f"code with {type(node).__name__}")

    def _compare(self, node: ast.Compare) -> bool:
        left = self._value(node.left)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self._value(comparator)
            if not _OPERATORS[type(op)](left, right):
                return False
            left = right
        return True

    def _calculated(self, op: ast.operator, left: Any, right: Any) -> Any:
        # A short text could ask for a long one.
        is_format = isinstance(op, ast.Mod) and isinstance(left, str)
        are_numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if not are_numbers and not (is_format and not _WIDE.search(left)):
            raise NotSupportedError(self._line, f"code with {type(op).__name__} of texts")
        return self._bounded(_OPERATORS[type(op)](left, right))

    def _bounded(self, value: Any) -> Any:
        is_large = isinstance(value, int) and abs(value) > _HIGHEST
        if is_large or (isinstance(value, str | tuple) and len(value) > _LONGEST):
            raise ScriptError(self._line, "code: a value is too large")
        return value
