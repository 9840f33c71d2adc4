"""Tests whether groups differ: one-way analysis of variance, Welch's, and Kruskal-Wallis.

Distributions come from SciPy; sums of squares are computed here, because the
papers print them. It must never decide what a number means: `Groups` defines that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from fullpipe.statistics.groups import Floats, Groups


@dataclass(frozen=True)
class GroupSummary:
    """One group: how many runs and numbers, their sum, mean and variance (n - 1)."""

    name: str
    runs: int
    count: int
    sum: float
    mean: float
    variance: float


@dataclass(frozen=True)
class OneWayAnova:
    """The table of a one-way analysis of variance.

    `f` is infinite where groups differ and nothing varies within them, and NaN where nothing
    varies at all. `eta_squared` is SSB / SST, `omega_squared` a less biased estimate
    (SSB - dfB MSW) / (SST + MSW), not below 0 (Hays, Statistics, 1963)."""

    groups: tuple[GroupSummary, ...]
    ss_between: float
    df_between: int
    ms_between: float
    ss_within: float
    df_within: int
    ms_within: float
    ss_total: float
    df_total: int
    f: float
    p_value: float
    f_critical: float
    alpha: float
    eta_squared: float
    omega_squared: float
    unit: str
    pseudo_replicated: bool

    @property
    def significant(self) -> bool:
        """True where p < alpha."""
        return self.p_value < self.alpha


@dataclass(frozen=True)
class WelchAnova:
    """Welch's analysis of variance, which does not assume equal variances (Biometrika 38, 1951)."""

    f: float
    df_between: float
    df_within: float
    p_value: float


@dataclass(frozen=True)
class KruskalWallis:
    """The Kruskal-Wallis test on ranks, corrected for ties. `epsilon_squared` is its effect size,
    H (n + 1) / (n^2 - 1) (Kelley 1935)."""

    h: float
    df: int
    p_value: float
    epsilon_squared: float


def one_way_anova(groups: Groups, alpha: float = 0.05) -> OneWayAnova:
    """The one-way analysis of variance of these groups, with the critical value at `alpha`."""
    values = groups.values
    # Deviations from a common middle: sums of squares of 1e12 + 0.1 would lose every digit.
    middle = float(np.median(np.concatenate(values)))
    shifted = [numbers - middle for numbers in values]
    counts = [numbers.size for numbers in values]
    means = [_mean(numbers) for numbers in shifted]
    total = sum(counts)
    grand = math.fsum(math.fsum(numbers) for numbers in shifted) / total
    ss_between = math.fsum(
        count * (mean - grand) ** 2 for count, mean in zip(counts, means, strict=True)
    )
    squares = [
        math.fsum((numbers - mean) ** 2) for numbers, mean in zip(shifted, means, strict=True)
    ]
    ss_within = math.fsum(squares)
    df_between, df_within = len(values) - 1, total - len(values)
    ms_between = ss_between / df_between
    ms_within = ss_within / df_within if df_within else math.nan
    f = _ratio(ms_between, ms_within)
    return OneWayAnova(
        groups=tuple(
            GroupSummary(
                name=name,
                runs=len(runs),
                count=count,
                sum=math.fsum(numbers),
                mean=middle + mean,
                variance=square / (count - 1),
            )
            for name, runs, numbers, count, mean, square in zip(
                groups.names, groups.runs, values, counts, means, squares, strict=True
            )
        ),
        ss_between=ss_between,
        df_between=df_between,
        ms_between=ms_between,
        ss_within=ss_within,
        df_within=df_within,
        ms_within=ms_within,
        ss_total=ss_between + ss_within,
        df_total=total - 1,
        f=f,
        p_value=float(stats.f.sf(f, df_between, df_within)),
        f_critical=float(stats.f.isf(alpha, df_between, df_within)),
        alpha=alpha,
        eta_squared=_ratio(ss_between, ss_between + ss_within),
        omega_squared=max(
            0.0,
            _ratio(ss_between - df_between * ms_within, ss_between + ss_within + ms_within),
        ),
        unit=groups.unit,
        pseudo_replicated=groups.pseudo_replicated,
    )


def welch_anova(groups: Groups) -> WelchAnova | None:
    """Welch's test; None if a group does not vary, which it cannot weigh."""
    values = groups.values
    if any(np.ptp(numbers) == 0 for numbers in values):
        return None
    result = stats.f_oneway(*values, equal_var=False)
    # Welch's degrees of freedom, which SciPy does not tell: a group weighs as the precision of its
    # mean.
    weights = np.array([numbers.size / numbers.var(ddof=1) for numbers in values])
    freedom = np.array([numbers.size - 1 for numbers in values])
    imprecision = float(((1 - weights / weights.sum()) ** 2 / freedom).sum())
    count = len(values)
    return WelchAnova(
        f=float(result.statistic),
        df_between=float(count - 1),
        df_within=(count**2 - 1) / (3 * imprecision),
        p_value=float(result.pvalue),
    )


def kruskal_wallis(groups: Groups) -> KruskalWallis | None:
    """The Kruskal-Wallis test; None if all numbers are equal, which leaves nothing to rank."""
    values = groups.values
    together = np.concatenate(values)
    if np.ptp(together) == 0:
        return None
    result = stats.kruskal(*values)
    h, n = float(result.statistic), together.size
    return KruskalWallis(h, len(values) - 1, float(result.pvalue), h * (n + 1) / (n**2 - 1))


def _mean(numbers: Floats) -> float:
    return math.fsum(numbers) / numbers.size


def _ratio(above: float, below: float) -> float:
    if below == 0:
        return math.nan if above == 0 else math.inf
    return above / below
