"""Statistics beside figures done by hand, by SciPy, statsmodels or pandas: every boundary and
default of them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.diagnostic import acorr_ljungbox
from statsmodels.stats.multicomp import pairwise_tukeyhsd
from statsmodels.stats.proportion import proportion_confint

from fullpipe.statistics.anova import kruskal_wallis, one_way_anova, welch_anova
from fullpipe.statistics.assumptions import check_assumptions
from fullpipe.statistics.bootstrap import bootstrap_difference, bootstrap_interval
from fullpipe.statistics.comparison import compare_groups
from fullpipe.statistics.distributions import equality, rejected
from fullpipe.statistics.factorial import factorial_anova
from fullpipe.statistics.groups import StatisticsError, by_run, pseudo_replicates
from fullpipe.statistics.intervals import half_width, half_widths, wilson
from fullpipe.statistics.permutation import MAX_SPLITS, least_p, mean_shift
from fullpipe.statistics.posthoc import tukey_hsd


def test_a_half_width_is_students_quantile_times_the_standard_error() -> None:
    # 1, 2, 3, 4: standard deviation sqrt(5/3); t of 0.975 with 3 degrees is 3.1824463 (a table's).
    assert half_width([1, 2, 3, 4]) == pytest.approx(3.1824463 * math.sqrt(5 / 3) / 2, rel=1e-7)
    # Two runs: t with 1 degree is 12.7062047, the standard error of 0 and 1 is 1/2.
    assert half_width([0, 1]) == pytest.approx(12.7062047 / 2, rel=1e-7)
    assert half_width([1]) == math.inf and half_width([]) == math.inf


def test_half_widths_of_columns_are_those_of_statsmodels() -> None:
    values = np.random.default_rng(1).normal(5, 2, (7, 3))
    for column, half in zip(values.T, half_widths(values), strict=True):
        low, high = sm.stats.DescrStatsW(column).tconfint_mean(0.05)
        assert half == pytest.approx((high - low) / 2)


def test_wilsons_interval_is_that_of_statsmodels() -> None:
    for met, count in ((0, 4), (1, 4), (4, 4), (37, 120)):
        low, high = proportion_confint(met, count, 0.05, "wilson")
        assert wilson(met, count) == pytest.approx((low, high), abs=1e-12)


def test_the_table_of_a_one_way_anova_by_hand() -> None:
    # Means 2, 4, 6 of 1-3, 3-5, 5-7: SSB 3 (4 + 0 + 4) = 24, SSW 3 x 2 = 6, F = 12 / 1.
    found = one_way_anova(by_run({"a": [1, 2, 3], "b": [3, 4, 5], "c": [5, 6, 7]}))
    assert (found.ss_between, found.df_between, found.ms_between) == pytest.approx((24, 2, 12))
    assert (found.ss_within, found.df_within, found.ms_within) == pytest.approx((6, 6, 1))
    assert (found.ss_total, found.df_total, found.f) == pytest.approx((30, 8, 12))
    # With 2 degrees above, sf(F) is (1 + 2 F / d)^(-d / 2); its inverse at 0.05 is 5.14325.
    assert found.p_value == pytest.approx((1 + 24 / 6) ** -3)
    assert found.f_critical == pytest.approx(3 * (0.05 ** (-1 / 3) - 1))
    assert found.eta_squared == pytest.approx(24 / 30)
    assert found.omega_squared == pytest.approx((24 - 2) / (30 + 1))
    one = found.groups[1]
    assert (one.name, one.runs, one.count, one.sum, one.mean, one.variance) == (
        "b", 3, 3, 12, 4, 1,
    )  # fmt: skip
    assert found.significant and found.alpha == 0.05 and not found.pseudo_replicated


def test_an_anova_is_significant_where_p_is_below_alpha_alone() -> None:
    groups = by_run({"a": [1, 2, 3], "b": [3, 4, 5], "c": [5, 6, 7]})
    p = one_way_anova(groups).p_value
    assert not one_way_anova(groups, alpha=p).significant
    assert one_way_anova(groups, alpha=p * 1.0001).significant


def test_omega_squared_is_never_negative() -> None:
    found = one_way_anova(by_run({"a": [1, 3], "b": [1, 3]}))
    assert (found.f, found.eta_squared, found.omega_squared) == (0, 0, 0)


def test_f_is_infinite_without_variation_within_and_nan_without_any() -> None:
    apart = one_way_anova(by_run({"a": [1, 1], "b": [2, 2]}))
    assert apart.f == math.inf and apart.p_value == 0 and apart.eta_squared == 1
    assert math.isnan(one_way_anova(by_run({"a": [1, 1], "b": [1, 1]})).f)


def test_samples_of_runs_are_counted_and_marked() -> None:
    found = one_way_anova(pseudo_replicates({"a": [[1, 2], [3]], "b": [[4, 5]]}))
    assert found.pseudo_replicated and found.unit == "sample"
    assert [(one.runs, one.count) for one in found.groups] == [(2, 3), (1, 2)]


def test_welch_and_kruskal_wallis_are_those_of_scipy() -> None:
    values = {"a": [1.0, 2, 4, 4], "b": [3.0, 5, 9], "c": [2.0, 2, 8, 9, 7]}
    groups = by_run(values)
    h, p = stats.kruskal(*values.values())
    kruskal = kruskal_wallis(groups)
    assert kruskal is not None and kruskal.df == 2
    assert (kruskal.h, kruskal.p_value) == pytest.approx((h, p))
    # H (n + 1) / (n^2 - 1), with n = 12.
    assert kruskal.epsilon_squared == pytest.approx(h * 13 / 143)
    two = by_run({"a": values["a"], "b": values["b"]})
    t, p = stats.ttest_ind(values["a"], values["b"], equal_var=False)
    welch = welch_anova(two)
    assert welch is not None
    assert (welch.f, welch.p_value, welch.df_between) == pytest.approx((t**2, p, 1))


def test_there_is_no_test_without_variation() -> None:
    assert welch_anova(by_run({"a": [1, 1], "b": [1, 2]})) is None
    assert welch_anova(by_run({"a": [1, 2], "b": [1, 2]})) is not None
    assert kruskal_wallis(by_run({"a": [1, 1], "b": [1, 1]})) is None
    assert kruskal_wallis(by_run({"a": [1, 1], "b": [1, 2]})) is not None
    assert tukey_hsd(by_run({"a": [1, 1], "b": [2, 2]})) == ()
    assert tukey_hsd(by_run({"a": [1, 1], "b": [2, 3]})) != ()


def test_tukeys_pairs_are_first_minus_second_with_the_interval_asked_for() -> None:
    values = {"a": [1.0, 2, 3], "b": [4.0, 5, 7], "c": [5.0, 8, 9, 9]}
    pairs = tukey_hsd(by_run(values), 0.9)
    assert [(one.first, one.second) for one in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    # Tukey and Kramer: q / sqrt(2) x the pooled standard error of the difference.
    within = sum(np.var(v) * len(v) for v in values.values()) / (10 - 3)
    # Of 3 groups and 7 degrees the studentized range is 3.4512 at 0.9.
    for one in pairs:
        first, second = values[one.first], values[one.second]
        difference = np.mean(first) - np.mean(second)
        half = 3.4512 * math.sqrt(within / 2 * (1 / len(first) + 1 / len(second)))
        assert one.difference == pytest.approx(difference)
        assert (one.low, one.high) == pytest.approx(
            (difference - half, difference + half), abs=1e-3
        )
    labels = [name for name, some in values.items() for _ in some]
    p = pairwise_tukeyhsd(np.concatenate(list(values.values())), labels).pvalues
    assert [one.p_value for one in pairs] == pytest.approx(p, abs=1e-6)
    # Of two groups the range is Student's t times sqrt(2); 2.7764 is that of 0.975 with 4 degrees.
    (usual,) = tukey_hsd(by_run({"a": [1, 2, 3], "b": [4, 5, 6]}))
    assert usual.high - usual.difference == pytest.approx(2.7764 * math.sqrt(2 / 3), 1e-4)


def test_groups_need_two_groups_two_runs_and_finite_numbers() -> None:
    assert by_run({"a": [1, 2], "b": [1, 2]}).unit == "run"
    for bad, told in (
        ({"a": [1, 2]}, "1 group"),
        ({"a": [1, 2], "b": [1]}, "'b': 1 run"),
        ({"a": [1, 2], "b": [1, math.inf]}, "'b'.*not finite"),
        ({"a": [1, 2], "b": [1, math.nan]}, "'b'.*not finite"),
    ):
        with pytest.raises(StatisticsError, match=told):
            by_run(bad)
    with pytest.raises(StatisticsError, match="fewer than 2"):
        pseudo_replicates({"a": [[1], []], "b": [[1, 2]]})
    assert pseudo_replicates({"a": [[1], [2]], "b": [[1, 2]]}).values[0].tolist() == [1, 2]


def test_levenes_test_is_that_of_scipy_from_the_medians() -> None:
    values = {"a": [1.0, 2, 9], "b": [3.0, 5, 40, 7]}
    found = check_assumptions(by_run(values)).equal_variances
    statistic, p = stats.levene(*values.values(), center="median")
    assert found is not None
    assert (found.statistic, found.p_value) == pytest.approx((statistic, p))
    assert (found.df_between, found.df_within) == (1, 5)
    # All deviations from the median are equal: nothing says which group varies more.
    assert check_assumptions(by_run({"a": [1, 1], "b": [2, 4]})).equal_variances is None


def test_normality_is_tested_from_three_numbers_on_that_vary() -> None:
    groups = by_run({"a": [1, 2, 4], "b": [1, 2], "c": [3, 3, 3]})
    (found,) = check_assumptions(groups).normality
    assert (found.group, found.test) == ("a", "Shapiro-Wilk")
    assert (found.statistic, found.p_value) == pytest.approx(tuple(stats.shapiro([1, 2, 4])))


def test_dagostinos_test_takes_over_beyond_5000_numbers() -> None:
    values = np.random.default_rng(3).normal(size=5001)
    groups = pseudo_replicates({"a": [values], "b": [values[:5000]]})
    more, most = check_assumptions(groups).normality
    assert (more.test, most.test) == ("D'Agostino K^2", "Shapiro-Wilk")
    assert (more.statistic, more.p_value) == pytest.approx(tuple(stats.normaltest(values)))


def lag1(run: list[float]) -> float:
    """The usual estimate: autocovariance at 1 over variance, both around one mean."""
    return float(sm.tsa.acf(run, nlags=1)[1])


def test_autocorrelation_within_runs_by_hand() -> None:
    rising = [1.0, 2, 3, 4, 5, 6, 7, 8]
    zigzag = [1.0, 3, 1, 3, 1, 3, 1, 3, 1, 3]
    groups = pseudo_replicates({"a": [rising, zigzag, [1, 2, 3]], "b": [[1, 2]]})
    (found,) = check_assumptions(groups).autocorrelation
    assert (found.group, found.count) == ("a", 18)
    up, down = lag1(rising), lag1(zigzag)
    assert found.lag1 == pytest.approx((up + down) / 2)
    # A run with r below 0 counts as independent; 8 // 5 = 1 lag.
    assert found.effective_count == pytest.approx(8 * (1 - up) / (1 + up) + 10)
    assert found.lags == 1
    p = min(acorr_ljungbox(run, lags=[1])["lb_pvalue"].iloc[0] for run in (rising, zigzag))
    assert found.ljung_box_p == pytest.approx(p)


@pytest.mark.parametrize(("size", "lags"), [(8, 1), (9, 1), (10, 2), (49, 9), (50, 10), (80, 10)])
def test_so_many_lags_are_tested_as_a_fifth_of_the_run_has_and_ten_at_most(
    size: int, lags: int
) -> None:
    run = list(np.random.default_rng(size).normal(size=size))
    found = check_assumptions(by_run({"a": run, "b": [1, 2]})).autocorrelation
    assert [one.lags for one in found] == [lags]
    expected = acorr_ljungbox(run, lags=[lags])["lb_pvalue"].iloc[0]
    assert found[0].ljung_box_p == pytest.approx(expected)


def test_fewer_than_eight_numbers_or_equal_ones_have_no_autocorrelation() -> None:
    groups = pseudo_replicates({"a": [[1, 2, 3, 4, 5, 6, 7]], "b": [[1.0] * 9]})
    assert check_assumptions(groups).autocorrelation == ()


def test_the_notes_say_what_the_assumptions_mean() -> None:
    random = np.random.default_rng(4)
    narrow, wide = random.normal(0, 0.01, 40), random.exponential(9, 40)
    found = compare_groups(by_run({"n": list(narrow), "w": list(wide)}))
    assert len(found.notes) == 2
    assert found.notes[0].startswith("variances differ (Levene p = ")
    assert found.notes[1] == "not normal: w; Kruskal-Wallis does not need it"
    p = found.assumptions.equal_variances
    assert p is not None and f"{p.p_value:.2g})" in found.notes[0]


def test_dependence_and_pseudo_replication_are_noted_with_the_worst_group() -> None:
    walk = np.random.default_rng(5).normal(size=60).cumsum()
    groups = pseudo_replicates({"a": [walk], "b": [walk[::-1][:30], walk[:30]]})
    found = compare_groups(groups)
    assert found.pseudo_replicated and found.to_dict()["pseudo_replicated"] is True
    assert found.notes[0].startswith("pseudo-replicated: samples of 1, 2 run(s)")
    worst = max(found.assumptions.autocorrelation, key=lambda one: one.lag1)
    assert found.notes[1] == (
        f"not independent: lag-1 autocorrelation up to {worst.lag1:.2f} ({worst.group}: "
        f"{worst.count} numbers are worth about {worst.effective_count:.0f})"
    )


def test_a_comparison_uses_its_level_everywhere() -> None:
    groups = by_run({"a": [1.0, 2, 3, 4], "b": [2.0, 3, 5, 7]})
    found = compare_groups(groups, alpha=0.2)
    assert found.anova.alpha == 0.2
    assert found.tukey == tukey_hsd(groups, 0.8)
    assert found.welch == welch_anova(groups) and found.kruskal == kruskal_wallis(groups)


def test_what_is_not_finite_is_null_in_json() -> None:
    found = compare_groups(by_run({"a": [1, 1], "b": [2, 2]})).to_dict()
    assert found["anova"]["f"] is None and found["anova"]["p_value"] == 0
    assert found["tukey"] == [] and found["notes"] == []
    assert found["anova"]["groups"][0]["mean"] == 1


def test_a_bootstrap_is_bca_of_scipy_with_the_same_seed() -> None:
    runs = [1.0, 2, 2, 3, 9]
    found = bootstrap_interval(runs, seed=7)
    expected = stats.bootstrap(
        (np.array(runs),), np.mean, n_resamples=9999, confidence_level=0.95, method="BCa",
        rng=np.random.default_rng(7), vectorized=True,
    ).confidence_interval  # fmt: skip
    assert found is not None
    assert (found.low, found.high) == (expected.low, expected.high)
    assert (found.estimate, found.confidence, found.method, found.resamples) == (
        3.4, 0.95, "BCa", 9999,
    )  # fmt: skip


def test_a_bootstrap_needs_three_runs_and_does_not_draw_from_equal_ones() -> None:
    assert bootstrap_interval([1, 2], seed=1) is None
    three = bootstrap_interval([1, 2, 4], seed=1, resamples=99)
    assert three is not None and three.low < three.estimate < three.high
    equal = bootstrap_interval([2, 2, 2], seed=1)
    assert equal is not None
    assert (equal.low, equal.estimate, equal.high, equal.method) == (2, 2, 2, "constant")
    for bad in (math.nan, math.inf):
        with pytest.raises(StatisticsError, match="not finite"):
            bootstrap_interval([1, 2, bad], seed=1)


def test_a_bootstrapped_difference_is_first_minus_second() -> None:
    found = bootstrap_difference([5, 6, 7, 9], [1, 2, 4], seed=1, resamples=499)
    assert found is not None
    assert found.estimate == pytest.approx(6.75 - 7 / 3) and found.low > 0
    assert bootstrap_difference([5, 6], [1, 2, 4], seed=1) is None
    medians = bootstrap_difference([5, 6, 9], [1, 2, 6], 1, np.median, resamples=99)
    assert medians is not None and medians.estimate == 4
    # One sample that varies is enough for an interval.
    one = bootstrap_difference([5, 5, 5], [1, 2, 6], 1, resamples=199)
    assert one is not None and one.method != "constant"


def test_the_energy_distance_is_its_definition() -> None:
    # 2 E|X-Y| - E|X-X'| - E|Y-Y'| of 0, 1 and 2, 4: 2 x 2.5 - 0.5 - 1.
    found = equality([0, 1], [2, 4], seed=1, permutations=999)
    assert found.distance == pytest.approx(3.5) and found.difference == pytest.approx(2.5)
    expected = stats.energy_distance([0, 1], [2, 4]) ** 2
    assert found.distance == pytest.approx(expected)


def test_the_p_of_equality_counts_divisions_as_far_apart_and_the_one_seen() -> None:
    # Of the 6 divisions of 0, 1, 2, 4 two are as far apart (one and its mirror).
    found = equality([0, 1], [2, 4], seed=1, permutations=9999)
    assert found.p == pytest.approx(2 / 6, abs=0.02)
    assert equality([3, 3], [3, 3], seed=1, permutations=99).p == 1
    one = equality(range(40), range(100, 140), seed=1, permutations=99)
    assert one.p == pytest.approx(1 / 100)


def test_equality_needs_two_finite_values_of_each() -> None:
    assert equality([1, 2], [3, 4], 1, 9).difference == 2
    for first, second in (([1], [2, 3]), ([1, 2], [3]), ([1, math.nan], [2, 3])):
        with pytest.raises(StatisticsError):
            equality(first, second, 1, 9)


def test_hypotheses_are_rejected_by_benjamini_and_hochbergs_steps() -> None:
    # Steps at 0.05: 0.0125, 0.025, 0.0375, 0.05. The second fails its own, the third meets its.
    assert rejected([0.01, 0.03, 0.0375, 0.2]).tolist() == [True, True, True, False]
    assert rejected([0.04, 0.04, 0.04, 0.2]).tolist() == [False] * 4
    assert rejected([0.05], 0.05).tolist() == [True]
    assert rejected([0.0501], 0.05).tolist() == [False]
    assert rejected([]).size == 0


def all_shifts(first: list[float], second: list[float]) -> list[float]:
    """The difference of means of every division."""
    values = np.array(first + second)
    found = []
    for chosen in itertools.combinations(range(values.size), len(second)):
        inside = np.isin(np.arange(values.size), chosen)
        found.append(float(values[inside].mean() - values[~inside].mean()))
    return found


def test_the_p_of_a_shift_is_twice_the_smaller_tail_of_all_divisions() -> None:
    for first, second in (([1.0, 2, 3], [2.5, 4, 9]), ([5.0, 7, 8, 9], [1.0, 6]), ([1.0], [2.0])):
        every = all_shifts(first, second)
        seen = np.mean(second) - np.mean(first)
        above = sum(one >= seen - 1e-9 for one in every)
        below = sum(one <= seen + 1e-9 for one in every)
        found = mean_shift(first, second)
        assert found.difference == pytest.approx(seen)
        assert found.p == pytest.approx(min(1, 2 * min(above, below) / len(every)))


def test_the_interval_of_a_shift_holds_what_the_test_does_not_reject() -> None:
    random = np.random.default_rng(1)
    first, second = list(random.normal(0, 1, 6)), list(random.normal(3, 1, 6))
    found = mean_shift(first, second, 0.05)
    for shift, is_inside in (
        (found.low + 1e-6, True), (found.low - 1e-6, False),
        (found.high - 1e-6, True), (found.high + 1e-6, False),
    ):  # fmt: skip
        p = mean_shift(first, [value - shift for value in second]).p
        assert (p > 0.05) == is_inside
    assert found.low < found.difference < found.high and found.low > 0


def test_an_interval_is_infinite_where_so_few_values_reach_no_level() -> None:
    # 4 and 4 have 70 divisions: p is 2/70 at least. 3 and 3 have 20: 0.1.
    assert least_p(4, 4) == pytest.approx(2 / 70) and least_p(3, 3) == pytest.approx(0.1)
    far = mean_shift([0.0, 1, 2], [100.0, 101, 103])
    assert (far.low, far.high, far.p) == (-math.inf, math.inf, pytest.approx(0.1))
    assert math.isfinite(mean_shift([0.0, 1, 2], [100.0, 101, 103], level=0.1).low)
    assert math.isfinite(mean_shift([0.0, 1, 2, 3], [100.0, 101, 103, 105]).high)
    assert least_p(30, 30) == 2 / MAX_SPLITS


def test_a_shift_needs_one_finite_value_of_each() -> None:
    assert mean_shift([1], [3]).difference == 2
    for first, second in (([], [1]), ([1], []), ([1], [math.inf])):
        with pytest.raises(StatisticsError):
            mean_shift(first, second)


def test_drawn_divisions_agree_with_welch_where_there_are_too_many() -> None:
    random = np.random.default_rng(2)
    first, second = random.normal(0, 1, 33), random.normal(0.4, 1, 32)
    found = mean_shift(first, second)
    assert found.difference == pytest.approx(second.mean() - first.mean())
    assert found.p == pytest.approx(stats.ttest_ind(first, second).pvalue, abs=0.01)
    low, high = (-x for x in stats.ttest_ind(first, second).confidence_interval()[::-1])
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.05)


def test_equal_values_have_no_shift() -> None:
    found = mean_shift([2.0] * 5, [2.0] * 5)
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)


def factorial(rows: list[tuple[str, str, float]]) -> tuple[list[float], dict[str, list[str]]]:
    return [y for *_, y in rows], {"cc": [a for a, *_ in rows], "rtt": [b for _, b, _ in rows]}


def test_a_balanced_two_way_anova_by_hand() -> None:
    # Cell means 1, 2 / 4, 9: by rows 1.5 and 6.5, by columns 2.5 and 5.5; 2 runs each, +-0.5.
    means = {("a", "x"): 1, ("a", "y"): 2, ("b", "x"): 4, ("b", "y"): 9}
    rows = [(a, b, mean + half) for (a, b), mean in means.items() for half in (-0.5, 0.5)]
    found = factorial_anova(*factorial(rows))
    assert [one.source for one in found] == ["cc", "rtt", "cc x rtt", "residual"]
    # SS of a factor of two values: 8 runs x (half the difference)^2; the interaction likewise.
    squares = [8 * 2.5**2, 8 * 1.5**2, 8 * 1.0**2, 8 * 0.25]
    assert [one.sum_of_squares for one in found] == pytest.approx(squares)
    assert [one.df for one in found] == [1, 1, 1, 4]
    for one, square in zip(found[:3], squares, strict=False):
        assert one.f == pytest.approx(square / (2 / 4))
        assert one.p_value == pytest.approx(stats.f.sf(square / 0.5, 1, 4))
        assert one.eta_squared == pytest.approx(square / sum(squares))
        assert one.partial_eta_squared == pytest.approx(square / (square + 2))
    last = found[-1]
    assert last.f is None and last.p_value is None and last.partial_eta_squared is None
    assert last.eta_squared == pytest.approx(2 / sum(squares))


def test_pairs_of_factors_are_left_out_where_every_cell_has_one_run() -> None:
    rows = [("a", "x", 1.0), ("a", "y", 2.5), ("b", "x", 4.0), ("b", "y", 9.0)]
    assert {one.source for one in factorial_anova(*factorial(rows))} == {"cc", "rtt", "residual"}


@pytest.mark.parametrize(
    ("factors", "told"),
    [
        ({}, "no factor"),
        ({"cc": ["a"] * 4}, "cc: has one value"),
        ({"cc": ["a", "b", "c", "c"], "rtt": ["x", "y", "x", "y"]}, "4 runs are too few"),
    ],
)
def test_a_factorial_anova_needs_factors_and_runs(factors: Any, told: str) -> None:
    with pytest.raises(StatisticsError, match=told):
        factorial_anova([1.0, 2, 3, 4], factors)
    frame = pandas.DataFrame({"cc": list("aabb"), "y": [1.0, 2, 3, 5]})
    found = factorial_anova(frame["y"], {"cc": list(frame["cc"])})
    assert found[0].f == pytest.approx(stats.f_oneway([1, 2], [3, 5]).statistic)
