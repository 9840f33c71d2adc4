"""The axes of a sweep's charts: what they are called, the units that people read, their ticks.

This module must not know a store.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.expr.quantities import quantity
from fullpipe.metrics.titles import title_of

_UNITS = {"bps": "bit/s", "s": "s", "bdp": "BDP", "packets": "packets", "bits": "bit"}
_AXES = {
    "cc": "congestion control",
    "loss": "random loss",
    "rate": "bottleneck rate",
    "rtt": "base RTT",
}
#: Axes in seconds that people read in milliseconds.
_SHORT = ("rtt", "delay", "jitter")
#: A written quantity with more digits than anybody reads on an axis.
_LONG = re.compile(r"(\d+\.\d+|\d{5,})([a-z%]*)", re.IGNORECASE)
#: Ticks of a linear axis are so many steps at most.
_STEPS = 6
#: An axis over more than these decades has a tick for each only.
_FINE_DECADES = 2.3


@dataclass(frozen=True)
class Scale:
    """A numeric axis: its title with the unit that is shown, what a value is divided by, and
    whether it is logarithmic."""

    title: str
    divisor: float
    is_log: bool


def axis_title(name: str) -> str:
    """An axis as people call it, with its unit in brackets."""
    head, _, unit = name.rpartition("_")
    axis, shown = (head, f" ({_UNITS[unit]})") if head and unit in _UNITS else (name, "")
    return _AXES.get(axis, axis.replace("_", " ")) + shown


def metric_title(name: str) -> str:
    """A metric or an axis with its unit in brackets."""
    title, _ = title_of(name)
    return title if title != name.replace("_", " ") else axis_title(name)


def scale_of(name: str, values: Sequence[float]) -> Scale:
    """How the axis of a column in base units is read: ms for short times, Mbit/s for rates."""
    is_log = len(values) > 2 and min(values) > 0 and max(values) / min(values) >= 20
    title = axis_title(name)
    head, _, unit = name.rpartition("_")
    if unit == "s" and head and (max(values) < 1 or any(word in head for word in _SHORT)):
        return Scale(title.replace("(s)", "(ms)"), 1e-3, is_log)
    if unit == "bps" and head:
        return Scale(title.replace("(bit/s)", "(Mbit/s)"), 1e6, is_log)
    return Scale(title, 1.0, is_log)


def ticks(low: float, high: float, is_log: bool) -> tuple[tuple[float, str], ...]:
    """Round numbers from `low` to `high`: 1, 10, 100, or 1, 2, 5 of few decades, or equal steps."""
    if is_log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        digits = (1, 2, 5) if math.log10(high / low) <= _FINE_DECADES else (1,)
        marks = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
    else:
        span = high - low or abs(high) or 1.0
        decade = 10.0 ** math.floor(math.log10(span / _STEPS))
        step = next(decade * k for k in (1, 2, 5, 10) if span / (decade * k) <= _STEPS)
        marks = [step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    edge = 1e-9 * max(abs(low), abs(high))
    inside = [value for value in marks if low - edge <= value <= high + edge]
    if len(inside) < 2:
        inside = [low, high] if high > low else [low]
    return tuple((value, f"{value:.6g}") for value in inside)


def shown(value: Any) -> str:
    """A value of an axis as text; of a written quantity three digits."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    long = _LONG.fullmatch(text) if quantity(text) is not None else None
    if long is None or len(long[1]) <= 4:
        return text
    return f"{float(f'{float(long[1]):.3g}'):g}{long[2]}"


def all_shown(values: Sequence[Any]) -> list[str]:
    """The values as texts of which no two are equal."""
    texts = [shown(value) for value in values]
    if len(set(texts)) == len(texts):
        return texts
    return [f"{value:.6g}" if isinstance(value, float) else str(value) for value in values]
