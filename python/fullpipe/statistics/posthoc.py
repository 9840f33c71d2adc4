"""Tukey's honestly significant difference: which pairs of groups differ."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from fullpipe.statistics.groups import Groups


@dataclass(frozen=True)
class Pair:
    """One pair: the difference of means (first minus second), its simultaneous confidence
    interval, and the p-value adjusted for all pairs."""

    first: str
    second: str
    difference: float
    low: float
    high: float
    p_value: float


def tukey_hsd(groups: Groups, confidence: float = 0.95) -> tuple[Pair, ...]:
    """All pairs, for unequal counts by Tukey and Kramer; empty if nothing varies within any
    group."""
    values = groups.values
    if all(np.ptp(numbers) == 0 for numbers in values):
        return ()
    result = stats.tukey_hsd(*values)
    interval = result.confidence_interval(confidence)
    return tuple(
        Pair(
            groups.names[first],
            groups.names[second],
            float(result.statistic[first, second]),
            float(interval.low[first, second]),
            float(interval.high[first, second]),
            float(result.pvalue[first, second]),
        )
        for first, second in combinations(range(len(values)), 2)
    )
