"""A subject's measures beside those of other congestion controls. It gives no marks, because
RFC 9743 has no thresholds. Must never run anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

#: A value is better or worse than all others if it differs by more than this share of theirs.
APART = 0.1

Place = Literal["better", "worse", "between", ""]


def number(value: Any) -> float:
    """A document's number: infinite for `never`, NaN for null."""
    return math.inf if value == "never" else math.nan if value is None else float(value)


def beside_others(measure: Mapping[str, Any], subject: str) -> Place:
    """Whether a subject's value is better or worse than those of all others by more than a tenth,
    or between them; empty where neither more nor less is better, or there is nothing to compare."""
    values = {name: number(interval["value"]) for name, interval in measure["subjects"].items()}
    subject_value = values.pop(subject)
    others = [value for value in values.values() if not math.isnan(value)]
    if not measure["better"] or not others or math.isnan(subject_value):
        return ""
    low, high = min(others), max(others)
    is_less, is_more = (
        subject_value < low - APART * abs(low),
        subject_value > high + APART * abs(high),
    )
    if measure["better"] == "more":
        is_less, is_more = is_more, is_less
    return "better" if is_less else "worse" if is_more else "between"
