"""Student's interval of a mean over runs, and Wilson's of a share."""

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
    from scipy.stats import t  # takes a while to load

    runs = values.shape[0]
    found: npt.NDArray[np.float64] = (
        t.ppf(0.975, runs - 1) * values.std(axis=0, ddof=1) / math.sqrt(runs)
    )
    return found


def wilson(met: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share: `met` of `count` (SciPy)."""
    from scipy.stats import binomtest

    found = binomtest(met, count).proportion_ci(method="wilson")
    return float(found.low), float(found.high)
