"""Tests of the assumptions of an analysis of variance: equal variances, normality, and
independence of the numbers within a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from fullpipe.statistics.groups import Floats, Groups

#: Fewer numbers than this in a row say nothing about their autocorrelation.
LEAST_SERIES = 8
#: scipy.stats.shapiro: its p-value may not be accurate for more.
SHAPIRO_MAXIMUM = 5000


@dataclass(frozen=True)
class EqualVariances:
    """Levene's test in the form of Brown and Forsythe (JASA 69, 1974: deviations from medians)."""

    statistic: float
    df_between: int
    df_within: int
    p_value: float


@dataclass(frozen=True)
class Normality:
    """Of one group: the Shapiro-Wilk test, or D'Agostino's K^2 for more numbers than it takes."""

    group: str
    test: str
    statistic: float
    p_value: float


@dataclass(frozen=True)
class Autocorrelation:
    """Of one group, within its runs (with unit "run": from run to run).

    `lag1` is the mean lag-1 autocorrelation of the runs, `ljung_box_p` the least p-value of their
    Ljung-Box tests over `lags` lags. `effective_count` is what the count would be worth if the
    numbers were a first-order autoregression: n (1 - r) / (1 + r) for r > 0 (Bayley and
    Hammersley 1946)."""

    group: str
    lag1: float
    lags: int
    ljung_box_p: float
    count: int
    effective_count: float


@dataclass(frozen=True)
class Assumptions:
    """The three; None or left out where there are too few numbers, or none that vary."""

    equal_variances: EqualVariances | None
    normality: tuple[Normality, ...]
    autocorrelation: tuple[Autocorrelation, ...]


def check_assumptions(groups: Groups) -> Assumptions:
    """Tests the assumptions of an analysis of variance of these groups."""
    names = groups.names
    normality = [_normality(n, v) for n, v in zip(names, groups.values, strict=True)]
    autocorrelation = [
        _autocorrelation(name, _series(runs)) for name, runs in zip(names, groups.runs, strict=True)
    ]
    return Assumptions(
        _equal_variances(groups),
        tuple(test for test in normality if test),
        tuple(test for test in autocorrelation if test),
    )


def _equal_variances(groups: Groups) -> EqualVariances | None:
    values = groups.values
    if all(np.ptp(np.abs(numbers - np.median(numbers))) == 0 for numbers in values):
        return None
    result = stats.levene(*values, center="median")
    total = sum(numbers.size for numbers in values)
    return EqualVariances(
        float(result.statistic), len(values) - 1, total - len(values), float(result.pvalue)
    )


def _normality(name: str, numbers: Floats) -> Normality | None:
    if numbers.size < 3 or np.ptp(numbers) == 0:
        return None
    test = "Shapiro-Wilk" if numbers.size <= SHAPIRO_MAXIMUM else "D'Agostino K^2"
    result = (stats.shapiro if test == "Shapiro-Wilk" else stats.normaltest)(numbers)
    return Normality(name, test, float(result.statistic), float(result.pvalue))


def _series(runs: tuple[Floats, ...]) -> list[Floats]:
    """The time series of a group: the samples of each run, or the runs themselves."""
    return [np.concatenate(runs)] if all(run.size == 1 for run in runs) else list(runs)


def _autocorrelation(name: str, series: list[Floats]) -> Autocorrelation | None:
    usable = [run for run in series if run.size >= LEAST_SERIES and np.ptp(run) > 0]
    if not usable:
        return None
    from statsmodels.stats.diagnostic import acorr_ljungbox  # loads pandas too: a second

    lags = min(10, min(run.size for run in usable) // 5)
    tables = [acorr_ljungbox(run, lags=[max(lags, 1)]) for run in usable]
    correlations = [_lag1(run) for run in usable]
    count = sum(run.size for run in usable)
    effective = sum(
        run.size * (1 - r) / (1 + r) if r > 0 else run.size
        for run, r in zip(usable, correlations, strict=True)
    )
    return Autocorrelation(
        group=name,
        lag1=float(np.mean(correlations)),
        lags=max(lags, 1),
        ljung_box_p=min(float(table["lb_pvalue"].iloc[0]) for table in tables),
        count=count,
        effective_count=float(effective),
    )


def _lag1(run: Floats) -> float:
    deviations = run - run.mean()
    return float((deviations[1:] * deviations[:-1]).sum() / (deviations**2).sum())
