"""Tests of normality, Welch's test and bootstrap intervals against their published algorithms,
written out here, to 1e-9."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtr, ndtri

from fullpipe.statistics.anova import welch_anova
from fullpipe.statistics.assumptions import check_assumptions
from fullpipe.statistics.bootstrap import bootstrap_difference, bootstrap_interval
from fullpipe.statistics.groups import by_run, pseudo_replicates

Floats = npt.NDArray[np.float64]


def drawn(seed: int, size: int, skew: float) -> Floats:
    """Numbers that are normal for skew 0 and lognormal-like beyond."""
    z = np.random.default_rng(seed).normal(size=size)
    return np.asarray(40 + 3 * (z if skew == 0 else np.expm1(skew * z) / skew))


@pytest.mark.parametrize("sizes", [(5, 9, 14), (12, 3, 40)])
def test_welch_of_three_groups_follows_his_formula(sizes: tuple[int, ...]) -> None:
    # B. L. Welch, Biometrika 38 (1951) 330; sf of F with 2 and d degrees is (1 + 2 F / d)^(-d / 2).
    groups = {f"g{i}": drawn(i, size, 0.3 * i) * (1 + i) for i, size in enumerate(sizes)}
    n = np.array(sizes, dtype=float)
    mean = np.array([v.mean() for v in groups.values()])
    weight = n / np.array([v.var(ddof=1) for v in groups.values()])
    centre = (weight * mean).sum() / weight.sum()
    spread = ((1 - weight / weight.sum()) ** 2 / (n - 1)).sum()
    f = (weight * (mean - centre) ** 2).sum() / 2 / (1 + 2 * (3 - 2) / 8 * spread)
    df = 8 / (3 * spread)
    found = welch_anova(by_run({name: list(v) for name, v in groups.items()}))
    assert found is not None
    assert found.df_between == 2
    assert found.f == pytest.approx(f, rel=1e-9)
    assert found.df_within == pytest.approx(df, rel=1e-9)
    assert found.p_value == pytest.approx((1 + 2 * f / df) ** (-df / 2), rel=1e-9)


def as111(p: float) -> float:
    """The normal quantile that AS R94 is built on: J. D. Beasley, S. G. Springer, Applied
    Statistics 26 (1977) 118, algorithm AS 111."""
    q = p - 0.5
    if abs(q) <= 0.42:
        above = [-25.44106049637, 41.39119773534, -18.61500062529, 2.50662823884]
        below = [3.13082909833, -21.06224101826, 23.08336743743, -8.47351093090, 1]
        return float(q * np.polyval(above, q * q) / np.polyval(below, q * q))
    r = math.sqrt(-math.log(min(p, 1 - p)))
    above = [2.32121276858, 4.85014127135, -2.29796479134, -2.78718931138]
    return math.copysign(
        float(np.polyval(above, r) / np.polyval([1.63706781897, 3.54388924762, 1], r)), q
    )


def royston(x: Floats) -> tuple[float, float]:
    """W and p of the Shapiro-Wilk test for more than 11 numbers: P. Royston, Applied Statistics
    44 (1995) 547, algorithm AS R94."""
    x, n = np.sort(x), x.size
    m = np.array([as111(p) for p in (np.arange(1, n + 1) - 0.375) / (n + 0.25)])
    square, u = float(m @ m), 1 / math.sqrt(n)
    last = float(np.polyval([-2.706056, 4.434685, -2.071190, -0.147981, 0.221157, 0], u))
    before = float(np.polyval([-3.582633, 5.682633, -1.752461, -0.293762, 0.042981, 0], u))
    last += m[-1] / math.sqrt(square)
    before += m[-2] / math.sqrt(square)
    rest = (square - 2 * m[-1] ** 2 - 2 * m[-2] ** 2) / (1 - 2 * last**2 - 2 * before**2)
    a = m / math.sqrt(rest)
    a[[0, 1, -2, -1]] = -last, -before, before, last
    w = float(a @ x) ** 2 / float(((x - x.mean()) ** 2).sum())
    log_n = math.log(n)
    mu = np.polyval([0.0038915, -0.083751, -0.31082, -1.5861], log_n)
    sigma = math.exp(float(np.polyval([0.0030302, -0.082676, -0.4803], log_n)))
    return w, float(ndtr(-(math.log1p(-w) - mu) / sigma))


@pytest.mark.parametrize(("seed", "size", "skew"), [(1, 12, 0), (2, 30, 0.5), (3, 350, 0.2)])
def test_shapiro_wilk_follows_roystons_algorithm(seed: int, size: int, skew: float) -> None:
    values = drawn(seed, size, skew)
    w, p = royston(values)
    found = check_assumptions(by_run({"a": list(values), "b": [1.0, 2.0]})).normality[0]
    assert found.test == "Shapiro-Wilk"
    assert found.statistic == pytest.approx(w, rel=1e-9)
    assert found.p_value == pytest.approx(p, rel=1e-9)


def dagostino(x: Floats) -> float:
    """K^2 of R. B. D'Agostino, A. Belanger, R. B. D'Agostino Jr., The American Statistician 44
    (1990) 316, its equations for skewness and kurtosis."""
    n = x.size
    d = x - x.mean()
    m2, m3, m4 = ((d**k).mean() for k in (2, 3, 4))
    skew, kurt = m3 / m2**1.5, m4 / m2**2
    y = skew * math.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    beta2 = 3 * (n**2 + 27 * n - 70) * (n + 1) * (n + 3)
    beta2 /= (n - 2) * (n + 5) * (n + 7) * (n + 9)
    w2 = math.sqrt(2 * (beta2 - 1)) - 1
    z_skew = math.asinh(y / math.sqrt(2 / (w2 - 1))) / math.sqrt(math.log(math.sqrt(w2)))
    mean = 3 * (n - 1) / (n + 1)
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    standard = (kurt - mean) / math.sqrt(variance)
    moment = 6 * (n**2 - 5 * n + 2) / ((n + 7) * (n + 9))
    moment *= math.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    a = 6 + 8 / moment * (2 / moment + math.sqrt(1 + 4 / moment**2))
    root = np.cbrt((1 - 2 / a) / (1 + standard * math.sqrt(2 / (a - 4))))
    z_kurt = (1 - 2 / (9 * a) - root) / math.sqrt(2 / (9 * a))
    return float(z_skew**2 + z_kurt**2)


def test_beyond_5000_numbers_normality_is_dagostinos_k_squared() -> None:
    values = drawn(4, 6000, 0.02)
    k2 = dagostino(values)
    groups = pseudo_replicates({"a": [list(values)], "b": [[1.0, 2.0]]})
    found = check_assumptions(groups).normality[0]
    assert found.test == "D'Agostino K^2"
    assert found.statistic == pytest.approx(k2, rel=1e-9)
    assert found.p_value == pytest.approx(math.exp(-k2 / 2), rel=1e-9)


def bca(
    estimate: float, resampled: Floats, acceleration: float, tail: float
) -> tuple[float, float]:
    """The BCa interval from resampled statistics: B. Efron, JASA 82 (1987) 171, with ties counted
    half and quantiles interpolated."""
    below, equal = (resampled < estimate).mean(), (resampled == estimate).mean()
    z0 = ndtri(below + equal / 2)
    z = z0 + ndtri(np.array([tail, 1 - tail]))
    low, high = np.quantile(resampled, ndtr(z0 + z / (1 - acceleration * z)))
    return float(low), float(high)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_a_seeded_bootstrap_interval_is_efrons_bca_of_its_resamples(confidence: float) -> None:
    x = drawn(7, 10, 0.4)
    rows = np.random.default_rng(11).integers(0, x.size, (2000, x.size))
    u = x - x.mean()  # what leaving one out takes from the mean, but for a factor
    acceleration = (u**3).sum() / (6 * (u**2).sum() ** 1.5)
    expected = bca(x.mean(), x[rows].mean(axis=1), acceleration, (1 - confidence) / 2)
    found = bootstrap_interval(list(x), seed=11, confidence=confidence, resamples=2000)
    assert found is not None and found.method == "BCa"
    assert found.estimate == pytest.approx(x.mean(), rel=1e-12)
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)


def test_a_seeded_interval_of_a_difference_is_bca_of_both_sides_resamples() -> None:
    a, b = drawn(8, 12, 0.2), drawn(9, 9, 0.4) + 2
    rng = np.random.default_rng(5)
    means = [x[rng.integers(0, x.size, (2000, x.size))].mean(axis=1) for x in (a, b)]
    # The acceleration of several samples: DiCiccio and Efron, Statistical Science 11 (1996) 189.
    sides = [(a - a.mean()) / a.size, (b.mean() - b) / b.size]
    cubes, squares = (sum(float((u**k).sum()) for u in sides) for k in (3, 2))
    estimate = float(a.mean() - b.mean())
    expected = bca(estimate, means[0] - means[1], cubes / (6 * squares**1.5), 0.025)
    found = bootstrap_difference(list(a), list(b), seed=5, resamples=2000)
    assert found is not None and found.method == "BCa"
    assert found.estimate == pytest.approx(estimate, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)
