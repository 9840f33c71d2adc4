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
from fullpipe.experiments import series
from fullpipe.experiments.metric_functions import FUNCTIONS, PHASES, Measure
from fullpipe.expr.evaluator import Scalars
from fullpipe.expr.language import ExpressionError, literal, parse
from fullpipe.metrics import View
from fullpipe.metrics.view import Floats
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
    the queueing delay (RTTmin), of ping times (ms), of pages' loads (s), of the sum of the flows'
    goodputs in windows of 0.2 s (Mbit/s), and of the sizes of traffic's flows, as a random flow and
    as a random byte has them; and the goodput (Mbit/s) of each active flow. Beside them the series
    over time that are kept of several runs, and of the run with seed 1."""
    view = View(recording)
    data = {}
    _, windows = metrics.throughput_over_time(view, series.WINDOW_S)
    by_flow, by_byte = _sizes(view)
    pages = [loads.time_s for loads in metrics.page_loads(view)]
    for name, values in (
        ("queue_delay_rttmin", metrics.queue_delay_rttmin(view)),
        ("ping_ms", metrics.ping_ms(view)),
        ("page_s", np.concatenate(pages) if pages else np.empty(0)),
        ("total_goodput_mbps", windows.sum(axis=0) / 1e6),
        ("flow_bytes", by_flow),
        ("flow_bytes_by_byte", by_byte),
    ):
        data[name] = series.percentiles(values)
    rates = metrics.goodput_bps(view)
    data["goodput_mbps"] = [round(float(x) / 1e6, 5) for x in rates[~np.isnan(rates)]]
    seed = view.plan.get("seed", 0)
    data |= series.repeated(view, seed)
    return data | (series.series_of(view) if seed == 1 else {})


def _sizes(view: View) -> tuple[Floats, Floats]:
    """Percentiles 0 to 100 of the sizes of traffic's flows, in bytes: of a random flow, and of the
    flow of a random byte."""
    sizes = np.concatenate(
        [np.empty(0), *(group.size_bytes for group in metrics.traffic_flows(view))]
    )
    if not sizes.size:
        return sizes, sizes
    ordered = np.sort(sizes)
    carried = np.cumsum(ordered) / ordered.sum()
    indices = np.searchsorted(carried, np.linspace(0, 1, 101)).clip(max=ordered.size - 1)
    return ordered, ordered[indices]


def _check(node: ast.expr) -> None:
    if isinstance(node, ast.BinOp):
        _check(node.left)
        _check(node.right)
    elif isinstance(node, ast.Call):
        function, arguments, named = _call(node)
        try:
            bound = inspect.signature(function).bind(None, *arguments, **named).arguments
        except TypeError as error:
            name = ast.unparse(node.func)
            raise ExpressionError(
                f"{ast.unparse(node)}: {error}; {name}{_signature(function)}"
            ) from None
        phase = bound.get("phase", PHASES[0])
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
