"""The permutation interval of a difference of means, against SciPy's test and against theory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fullpipe.statistics.groups import StatisticsError
from fullpipe.statistics.permutation import least_p, mean_shift

_FEW = st.lists(st.integers(-5, 5).map(float), min_size=3, max_size=5)


@settings(max_examples=30)
@given(_FEW, _FEW)
def test_p_is_that_of_scipys_permutation_test(first: list[float], second: list[float]) -> None:
    def difference(one: np.ndarray, other: np.ndarray, axis: int) -> np.ndarray:
        return np.mean(other, axis) - np.mean(one, axis)

    if len(set(first + second)) == 1:
        assert mean_shift(first, second).p == 1
        return
    expected = stats.permutation_test((first, second), difference, n_resamples=math.inf)
    assert mean_shift(first, second).p == pytest.approx(expected.pvalue)


@settings(max_examples=50)
@given(_FEW, _FEW, st.sampled_from([0.05, 0.1, 0.3, 0.6]))
def test_the_interval_leaves_out_0_exactly_where_the_test_rejects(
    first: list[float], second: list[float], level: float
) -> None:
    found = mean_shift(first, second, level)
    assert (found.low > 0 or found.high < 0) == (found.p <= level + 1e-9)


@settings(max_examples=30)
@given(_FEW, _FEW, st.integers(-9, 9))
def test_the_interval_moves_with_a_shift(first: list[float], second: list[float], by: int) -> None:
    found = mean_shift(first, second, 0.3)
    moved = mean_shift(first, [value + by for value in second], 0.3)
    assert moved.low == pytest.approx(found.low + by)
    assert moved.high == pytest.approx(found.high + by)


def test_of_normal_samples_it_is_close_to_students_interval() -> None:
    random = np.random.default_rng(3)
    first, second = random.normal(size=10), random.normal(0.8, 1, size=10)
    found = mean_shift(first, second, 0.05)
    expected = stats.ttest_ind(second, first).confidence_interval(0.95)
    assert found.low == pytest.approx(expected.low, abs=0.05)
    assert found.high == pytest.approx(expected.high, abs=0.05)


def test_equal_distributions_are_told_apart_as_seldom_as_the_level_says() -> None:
    random = np.random.default_rng(4)
    # Two values only, very unequal in frequency: Welch's test fails here.
    samples = (random.random((1500, 10)) < 0.3).astype(float)
    told = sum(mean_shift(row[:5], row[5:], 0.1).p <= 0.1 for row in samples)
    assert told <= 1500 * 0.1 + 3 * math.sqrt(1500 * 0.1 * 0.9)


def test_too_few_values_have_an_infinite_interval_and_a_p_that_says_so() -> None:
    found = mean_shift([1.0, 2.0], [8.0, 9.0], 0.05)
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert found.p == least_p(2, 2) == pytest.approx(1 / 3)


def test_many_values_are_divided_at_random_and_give_the_same_each_time() -> None:
    random = np.random.default_rng(5)
    first, second = random.normal(size=60), random.normal(1, 1, size=60)
    found = mean_shift(first, second, 0.01)
    assert found == mean_shift(first, second, 0.01)
    expected = stats.ttest_ind(second, first).confidence_interval(0.99)
    assert found.low == pytest.approx(expected.low, abs=0.05)


def test_what_is_not_finite_is_refused() -> None:
    with pytest.raises(StatisticsError):
        mean_shift([1.0, math.inf], [1.0, 2.0])
