"""Student's interval of a mean over runs, Welch's of a difference, and Wilson's of a share."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def half_width(values: npt.ArrayLike) -> float:
    """Half the width of the 95 % interval of the mean of these runs (Student's t); infinite below
    two."""
    runs = np.asarray(values, dtype=np.float64)
    if runs.size < 2:
        return math.inf
    return float(half_widths(runs[:, None])[0])


def half_widths(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """`half_width` of each column of `values` [run, column], for two runs or more."""
    from scipy.special import stdtrit  # what scipy.stats.t.ppf() calls, without its second to load

    runs = values.shape[0]
    widths: npt.NDArray[np.float64] = (
        stdtrit(runs - 1, 0.975) * values.std(axis=0, ddof=1) / math.sqrt(runs)
    )
    return widths


def welch_interval(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[float, float] | None:
    """The 95 % interval of how much larger the mean of `other` is, for unequal variances; None
    below two runs of each, and where neither varies.

    Source: B. L. Welch, "The generalization of Student's problem", Biometrika 34 (1947)."""
    from scipy.stats import t

    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if min(x.size, y.size) < 2:
        return None
    parts = [float(runs.var(ddof=1)) / runs.size for runs in (x, y)]
    variance = sum(parts)
    if not variance:
        return None
    freedom = variance**2 / sum(
        part**2 / (runs.size - 1) for part, runs in zip(parts, (x, y), strict=True)
    )
    half = float(t.ppf(0.975, freedom)) * math.sqrt(variance)
    mean = float(y.mean() - x.mean())
    return mean - half, mean + half


def wilson(met: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share: `met` of `count` (SciPy)."""
    from scipy.stats import binomtest

    interval = binomtest(met, count).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)
