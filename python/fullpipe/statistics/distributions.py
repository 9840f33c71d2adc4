"""Tests in many cells at once whether two samples come from one distribution.

The energy distance (Székely and Rizzo 2013) sees differences of any kind, not only of means; its
significance is found by permutation, which assumes nothing but that runs are exchangeable where the
distributions are equal. Over many cells the false discovery rate is controlled (Benjamini and
Hochberg 1995, by SciPy).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from fullpipe.statistics.groups import StatisticsError


@dataclass(frozen=True)
class Equality:
    """Two samples compared. `distance`: their energy distance 2 E|X-Y| - E|X-X'| - E|Y-Y'|, in the
    samples' unit; `p`: how often a random division of all values into two such samples is as far
    apart; `difference`: of the means, second less first."""

    distance: float
    p: float
    difference: float


def equality(
    first: Sequence[float], second: Sequence[float], seed: int, permutations: int = 9999
) -> Equality:
    """Tests that both samples come from one distribution.

    Raises StatisticsError for fewer than two values in either, and for values that are not
    finite."""
    values = np.concatenate([np.asarray(first, float), np.asarray(second, float)])
    if min(len(first), len(second)) < 2 or not np.isfinite(values).all():
        raise StatisticsError("equality of distributions: two finite values each, at least")
    apart = np.abs(values[:, None] - values[None, :])
    weights = np.concatenate(
        [np.full(len(first), 1 / len(first)), np.full(len(second), -1 / len(second))]
    )
    rng = np.random.default_rng(seed)
    drawn = rng.permuted(np.tile(weights, (permutations, 1)), axis=1)
    distance = _energy(weights[None, :], apart)[0]
    # Sums in another order differ in the last digits.
    as_far = _energy(drawn, apart) >= distance - 1e-12 * max(1.0, distance)
    return Equality(
        distance=float(distance),
        p=float((as_far.sum() + 1) / (permutations + 1)),
        difference=float(np.mean(second) - np.mean(first)),
    )


def rejected(p_values: Sequence[float], rate: float = 0.05) -> NDArray[np.bool_]:
    """Which hypotheses are rejected so that of those rejected at most this part is expected to be
    true (Benjamini and Hochberg's step-up procedure)."""
    if not p_values:
        return np.zeros(0, dtype=bool)
    return np.asarray(false_discovery_control(p_values) <= rate)


def _energy(weights: NDArray[np.float64], apart: NDArray[np.float64]) -> NDArray[np.float64]:
    """With weights 1/n and -1/m the quadratic form is minus the energy distance."""
    form: NDArray[np.float64] = np.einsum("ij,jk,ik->i", weights, apart, weights, optimize=True)
    return -form
