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
from fullpipe.plots.model import thin
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
    the queueing delay (RTTmin), of ping times (ms) and of the sum of the flows' goodputs in windows
    of 0.2 s (Mbit/s), and the goodput (Mbit/s) of each active flow. Of the run with seed 1 the
    queueing delay and the flows' goodputs over time, too."""
    view = View(recording)
    grid = np.linspace(0, 1, 101)
    found = {}
    _, windows = metrics.throughput_over_time(view, _WINDOW_S)
    for name, values in (
        ("queue_delay_rttmin", metrics.queue_delay_rttmin(view)),
        ("ping_ms", metrics.ping_ms(view)),
        ("total_goodput_mbps", windows.sum(axis=0) / 1e6),
    ):
        known = values[~np.isnan(values)]
        found[name] = [round(float(x), 5) for x in np.quantile(known, grid)] if known.size else []
    rates = metrics.goodput_bps(view)
    found["goodput_mbps"] = [round(float(x) / 1e6, 5) for x in rates[~np.isnan(rates)]]
    return found | (_series(view) if view.plan.get("seed") == 1 else {})


#: Flent's step: of the windows over which a sum of goodputs is taken.
_WINDOW_S = 0.2
#: At most so many points of a series over time, and so many flows.
_MOST_POINTS, _MOST_FLOWS = 600, 16


def _series(view: View) -> dict[str, list[float]]:
    """Series over time: `queue_delay_rttmin` at its samples, and `goodput_mbps`, flow after flow,
    in windows that end at `goodput_mbps_s`."""
    queue, delays = view.queue(view.main_queue), metrics.queue_delay_rttmin(view)
    times, delays = thin(queue["t_us"] / 1e6, delays, _MOST_POINTS)
    length = max(_WINDOW_S, _WINDOW_S * np.ceil((view.end_s - view.start_s) / 300 / _WINDOW_S))
    ends, rates = metrics.throughput_over_time(view, float(length))
    kept = {
        "queue_delay_rttmin_s": times, "queue_delay_rttmin": delays, "goodput_mbps_s": ends,
        "goodput_mbps": rates[:_MOST_FLOWS].ravel() / 1e6,
    }  # fmt: skip
    return {
        f"over_time_{name}": [round(float(x), 4) for x in values] for name, values in kept.items()
    }


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
