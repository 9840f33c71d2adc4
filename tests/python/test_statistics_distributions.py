"""Equality of distributions, against SciPy's own distance, closed cases, and what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import energy_distance

from fullpipe.statistics.distributions import equality, rejected
from fullpipe.statistics.groups import StatisticsError


def test_the_distance_is_the_square_of_scipys() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=9), rng.normal(0.5, 2, size=14)
    found = equality(list(first), list(second), seed=1, permutations=99)
    assert found.distance == pytest.approx(energy_distance(first, second) ** 2)
    assert found.difference == pytest.approx(second.mean() - first.mean())


def test_separate_samples_are_as_far_apart_as_permutations_can_tell() -> None:
    # Ten and ten: 2 of 184,756 divisions are as far apart.
    found = equality([0.0, 0.1] * 5, [5.0, 5.1] * 5, seed=1, permutations=999)
    assert found.p == pytest.approx(1 / 1000)


def test_equal_constants_are_equal() -> None:
    assert equality([0.5] * 10, [0.5] * 10, seed=1).p == 1


def test_a_difference_of_spread_alone_is_seen() -> None:
    rng = np.random.default_rng(2)
    narrow, wide = rng.normal(0, 0.1, 40), rng.normal(0, 3, 40)
    assert equality(list(narrow), list(wide), seed=1, permutations=999).p < 0.01


def test_equal_distributions_are_rejected_as_seldom_as_it_promises() -> None:
    rng = np.random.default_rng(3)
    p_values = [
        equality(list(rng.normal(size=10)), list(rng.normal(size=10)), n, 199).p for n in range(400)
    ]
    # 20 expected of 400; four standard deviations are 17.
    assert sum(p <= 0.05 for p in p_values) < 38
    assert not rejected(p_values).any()


def test_benjamini_and_hochbergs_example() -> None:
    # Their paper's section 3.2: fifteen comparisons, of which the four smallest are rejected.
    p_values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
    p_values += [0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    assert list(np.flatnonzero(rejected(p_values, 0.05))) == [0, 1, 2, 3]
    assert rejected([]).size == 0


@pytest.mark.parametrize("first", [[1.0], [1.0, float("nan")]])
def test_too_few_or_unknown_values_are_refused(first: list[float]) -> None:
    with pytest.raises(StatisticsError):
        equality(first, [1.0, 2.0], seed=1)
