"""Evaluates expressions of the metric language, such as `share('jitter') / utilisation()`, for one
run.

`metric_functions` defines the names in them. This module must not know engines.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping

import numpy as np

from fullpipe import metrics
from fullpipe.experiments.metric_functions import FUNCTIONS, PHASES, Measure
from fullpipe.expr.evaluator import Scalars
from fullpipe.expr.language import ExpressionError, literal, parse
from fullpipe.metrics import View
from fullpipe.recording.recording import Recording


def measure(expressions: Mapping[str, str], recording: Recording) -> dict[str, float]:
    """The value of each expression (keys as given) for this run; NaN if there is nothing to
    measure. Raises ExpressionError if a group has no flow."""
    view = View(recording)
    return {key: float(_Run(view).value(parse(text))) for key, text in expressions.items()}


def check(text: str) -> None:
    """Raises ExpressionError unless this is an expression of known functions with valid
    arguments."""
    _check(parse(text))


def distributions(recording: Recording) -> dict[str, list[float]]:
    """The data of a run that plots need, since its recording is deleted: percentiles 0 to 100 of
    the queueing delay (RTTmin) and of ping times (ms), and the goodput (Mbit/s) of each active
    flow."""
    view = View(recording)
    grid = np.linspace(0, 1, 101)
    found = {}
    for name, values in (
        ("queue_delay_rttmin", metrics.queue_delay_rttmin(view)),
        ("ping_ms", metrics.ping_ms(view)),
    ):
        known = values[~np.isnan(values)]
        found[name] = [round(float(x), 5) for x in np.quantile(known, grid)] if known.size else []
    rates = metrics.goodput_bps(view)
    found["goodput_mbps"] = [round(float(x) / 1e6, 5) for x in rates[~np.isnan(rates)]]
    return found


def _check(node: ast.expr) -> None:
    if isinstance(node, ast.BinOp):
        _check(node.left)
        _check(node.right)
    elif isinstance(node, ast.Call):
        function, arguments, named = _call(node)
        try:
            given = inspect.signature(function).bind(None, *arguments, **named).arguments
        except TypeError as error:
            name = ast.unparse(node.func)
            raise ExpressionError(
                f"{ast.unparse(node)}: {error}; {name}{_signature(function)}"
            ) from None
        phase = given.get("phase", PHASES[0])
        if phase not in PHASES:
            raise ExpressionError(f"{phase!r} is no phase; known are {', '.join(PHASES)}")
    else:
        literal(node)


class _Run(Scalars):
    """Expressions over one run: calls of the metric functions, and numbers."""

    def __init__(self, view: View) -> None:
        super().__init__({}, "metric without parentheses")
        self.view = view

    def call(self, node: ast.Call) -> float:
        function, arguments, named = _call(node)
        return function(self.view, *arguments, **named)


def _call(node: ast.Call) -> tuple[Measure, list[object], dict[str, object]]:
    name = ast.unparse(node.func)
    function = FUNCTIONS.get(name)
    if function is None:
        raise ExpressionError(f"{name!r} is no metric; known are {', '.join(sorted(FUNCTIONS))}")
    arguments: list[object] = [literal(argument) for argument in node.args]
    return function, arguments, {word.arg or "**": literal(word.value) for word in node.keywords}


def _signature(function: Measure) -> str:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return "(" + ", ".join(str(p).split(":")[0].strip() for p in parameters) + ")"
