"""Intervals without a distribution assumed: the bootstrap over runs (Efron, JASA 82, 1987: BCa)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from fullpipe.statistics.groups import Floats, StatisticsError

#: A statistic over an axis, as numpy.mean and numpy.median are.
Statistic = Callable[..., Any]


@dataclass(frozen=True)
class Interval:
    """A confidence interval; `method` is "BCa", "percentile" where BCa does not exist, or
    "constant" where all numbers are equal."""

    estimate: float
    low: float
    high: float
    confidence: float
    method: str
    resamples: int


def bootstrap_interval(
    runs: Sequence[float],
    seed: int,
    statistic: Statistic = np.mean,
    confidence: float = 0.95,
    resamples: int = 9999,
) -> Interval | None:
    """The interval of a statistic of these runs; None for fewer than 3. The same seed gives the
    same interval. Raises StatisticsError for a number that is not finite."""
    return _interval((_finite(runs),), statistic, seed, confidence, resamples)


def bootstrap_difference(
    first: Sequence[float],
    second: Sequence[float],
    seed: int,
    statistic: Statistic = np.mean,
    confidence: float = 0.95,
    resamples: int = 9999,
) -> Interval | None:
    """The interval of the difference (first minus second) of a statistic of two independent sets
    of runs; None if one has fewer than 3."""

    def difference(first: Floats, second: Floats, axis: int = -1) -> Any:
        return statistic(first, axis=axis) - statistic(second, axis=axis)

    return _interval((_finite(first), _finite(second)), difference, seed, confidence, resamples)


def _interval(
    samples: tuple[Floats, ...],
    statistic: Statistic,
    seed: int,
    confidence: float,
    resamples: int,
) -> Interval | None:
    if min(sample.size for sample in samples) < 3:
        return None
    estimate = float(statistic(*samples, axis=-1))
    if all(np.ptp(sample) == 0 for sample in samples):
        return Interval(estimate, estimate, estimate, confidence, "constant", resamples)
    for method in ("BCa", "percentile"):
        with np.errstate(divide="ignore", invalid="ignore"):
            interval = stats.bootstrap(
                samples,
                statistic,
                n_resamples=resamples,
                confidence_level=confidence,
                method=method,
                rng=np.random.default_rng(seed),
                vectorized=True,
            ).confidence_interval
        low, high = float(interval.low), float(interval.high)
        if np.isfinite([low, high]).all():
            return Interval(estimate, low, high, confidence, method, resamples)
    return None


def _finite(runs: Sequence[float]) -> Floats:
    numbers = np.asarray(runs, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise StatisticsError("bootstrap: a run's number is not finite")
    return numbers
