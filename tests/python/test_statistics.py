"""Statistics against certified values, closed forms, exact arithmetic and published examples."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy
from scipy.special import ndtr

from fullpipe.statistics.anova import kruskal_wallis, one_way_anova, welch_anova
from fullpipe.statistics.assumptions import check_assumptions
from fullpipe.statistics.bootstrap import bootstrap_difference, bootstrap_interval
from fullpipe.statistics.comparison import compare_groups
from fullpipe.statistics.groups import Groups, StatisticsError, by_run, pseudo_replicates
from fullpipe.statistics.posthoc import tukey_hsd

NIST = Path(scipy.__file__).parent / "stats" / "tests" / "data" / "nist_anova"

#: NIST StRD, SiRstv (resistivity of silicon, 5 instruments): data and certified values.
SIRSTV = {
    "1": [196.3052, 196.1240, 196.1890, 196.2569, 196.3403],
    "2": [196.3042, 196.3825, 196.1669, 196.3257, 196.0422],
    "3": [196.1303, 196.2005, 196.2889, 196.0343, 196.1811],
    "4": [196.2795, 196.1748, 196.1494, 196.1485, 195.9885],
    "5": [196.2119, 196.1051, 196.1850, 196.0052, 196.2090],
}

#: Dobson, An Introduction to Statistical Modelling, 1983: dried weight of plants (R: PlantGrowth).
PLANTS = {
    "ctrl": [4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14],
    "trt1": [4.81, 4.17, 4.41, 3.59, 5.87, 3.83, 6.03, 4.89, 4.32, 4.69],
    "trt2": [6.31, 5.12, 5.54, 5.50, 5.37, 5.29, 4.92, 6.15, 5.80, 5.26],
}


def random_groups(seed: int, sizes: tuple[int, ...] = (7, 12, 9)) -> dict[str, list[float]]:
    """Groups of unequal sizes, means and spreads."""
    rng = np.random.default_rng(seed)
    return {f"g{i}": list(rng.normal(50 + 2 * i, 1 + i, size)) for i, size in enumerate(sizes)}


def exact_table(groups: dict[str, list[float]]) -> tuple[Fraction, Fraction, Fraction]:
    """SSB, SSW and F in rational arithmetic over the very doubles."""
    values = [[Fraction(x) for x in numbers] for numbers in groups.values()]
    total = sum(len(v) for v in values)
    grand = sum(sum(v) for v in values) / total
    means = [sum(v) / len(v) for v in values]
    between = sum(len(v) * (m - grand) ** 2 for v, m in zip(values, means, strict=True))
    within = sum((x - m) ** 2 for v, m in zip(values, means, strict=True) for x in v)
    f = (between / (len(values) - 1)) / (within / (total - len(values)))
    return between, within, f


def chi2_sf_even(x: float, df: int) -> float:
    """The survival function of chi-squared with an even number of degrees of freedom."""
    return math.exp(-x / 2) * sum((x / 2) ** i / math.factorial(i) for i in range(df // 2))


def test_nist_sirstv_gives_its_certified_table() -> None:
    found = one_way_anova(by_run(SIRSTV))
    assert found.ss_between == pytest.approx(5.11462616e-02, rel=1e-9)
    assert found.ss_within == pytest.approx(2.1663656e-01, rel=1e-9)
    assert (found.df_between, found.df_within, found.df_total) == (4, 20, 24)
    assert found.f == pytest.approx(1.18046237440255, rel=1e-9)
    assert found.eta_squared == pytest.approx(1.90999039051129e-01, rel=1e-9)


@pytest.mark.parametrize("name", ["AtmWtAg", *(f"SmLs0{i}" for i in range(1, 10))])
def test_nist_data_sets_that_scipy_ships_give_their_certified_f(name: str) -> None:
    lines = (NIST / f"{name}.dat").read_text(encoding="ascii").splitlines()
    certified = next(float(line.split()[-1]) for line in lines if line.startswith("Between"))
    groups: dict[str, list[float]] = {}
    for line in lines[60:]:
        treatment, value = line.split()
        groups.setdefault(treatment, []).append(float(value))
    found = one_way_anova(by_run(groups))
    assert found.f == pytest.approx(float(exact_table(groups)[2]), rel=1e-9)
    if name not in ("SmLs07", "SmLs08", "SmLs09"):
        assert found.f == pytest.approx(certified, rel=1e-9)
    else:  # 1e12 + 0.4 has no double within 6e-5: the data differ, not the arithmetic
        assert found.f == pytest.approx(certified, rel=1e-2)


@pytest.mark.parametrize("seed", range(10))
def test_anova_agrees_with_rational_arithmetic_and_scipy(seed: int) -> None:
    groups = random_groups(seed)
    between, within, f = exact_table(groups)
    found = one_way_anova(by_run(groups))
    assert found.ss_between == pytest.approx(float(between), rel=1e-12)
    assert found.ss_within == pytest.approx(float(within), rel=1e-12)
    assert found.f == pytest.approx(float(f), rel=1e-12)
    reference = scipy.stats.f_oneway(*groups.values())
    assert found.f == pytest.approx(float(reference.statistic), rel=1e-9)
    assert found.p_value == pytest.approx(float(reference.pvalue), rel=1e-9)


@pytest.mark.parametrize("spread", [1.0, 0.05])
def test_p_and_critical_value_of_three_groups_follow_their_closed_form(spread: float) -> None:
    # The F distribution with 2 and d degrees of freedom has sf(F) = (1 + 2 F / d)^(-d / 2).
    rng = np.random.default_rng(3)
    groups = by_run({str(m): list(rng.normal(m, spread, 100)) for m in (1.0, 1.1, 1.3)})
    found = one_way_anova(groups, alpha=0.01)
    d = found.df_within
    expected = math.exp(-d / 2 * math.log1p(2 * found.f / d))
    assert found.p_value == pytest.approx(expected, rel=1e-9)
    assert found.f_critical == pytest.approx(d / 2 * (0.01 ** (-2 / d) - 1), rel=1e-9)


def test_effect_sizes_follow_their_definitions() -> None:
    between, within, _ = (float(x) for x in exact_table(PLANTS))
    found = one_way_anova(by_run(PLANTS))
    ms_within = within / 27
    assert found.eta_squared == pytest.approx(between / (between + within), rel=1e-12)
    assert found.omega_squared == pytest.approx(
        (between - 2 * ms_within) / (between + within + ms_within), rel=1e-12
    )


def test_r_values_of_plant_growth() -> None:
    # R 4: summary(aov(weight ~ group)), TukeyHSD(), kruskal.test(), oneway.test(); as R prints.
    groups = by_run(PLANTS)
    anova, kruskal, welch = one_way_anova(groups), kruskal_wallis(groups), welch_anova(groups)
    assert kruskal is not None and welch is not None
    assert anova.f == pytest.approx(4.846, abs=5e-4)
    assert anova.p_value == pytest.approx(0.01591, abs=5e-6)
    assert (kruskal.h, kruskal.p_value) == pytest.approx((7.9882, 0.01842), abs=5e-5)
    assert (welch.f, welch.df_within, welch.p_value) == pytest.approx(
        (5.181, 17.128, 0.01739), abs=5e-4
    )
    pairs = {(p.second, p.first): p for p in tukey_hsd(groups)}
    expected = {  # R's difference is the second minus the first of ours
        ("trt1", "ctrl"): (-0.371, -1.0622161, 0.3202161, 0.3908711),
        ("trt2", "ctrl"): (0.494, -0.1972161, 1.1852161, 0.1979960),
        ("trt2", "trt1"): (0.865, 0.1737839, 1.5562161, 0.0120064),
    }
    for key, (difference, low, high, p_value) in expected.items():
        pair = pairs[key]
        assert (-pair.difference, -pair.high, -pair.low, pair.p_value) == pytest.approx(
            (difference, low, high, p_value), abs=6e-8
        )


def test_tukey_of_two_groups_is_the_pooled_t_test() -> None:
    groups = random_groups(5, (8, 13))
    pair = tukey_hsd(by_run(groups))[0]
    reference = scipy.stats.ttest_ind(*groups.values())
    interval = reference.confidence_interval(0.95)
    assert pair.p_value == pytest.approx(float(reference.pvalue), rel=1e-9)
    assert (pair.low, pair.high) == pytest.approx((interval.low, interval.high), rel=1e-9)


def test_tukey_of_three_groups_agrees_with_its_double_integral() -> None:
    anova = one_way_anova(by_run(PLANTS))
    for pair in tukey_hsd(by_run(PLANTS)):
        q = abs(pair.difference) / math.sqrt(anova.ms_within / 10)
        expected = studentized_range_sf(q, 3, 27)
        assert pair.p_value == pytest.approx(expected, rel=1e-9)
        half = (pair.high - pair.low) / 2 / math.sqrt(anova.ms_within / 10)
        assert studentized_range_sf(half, 3, 27) == pytest.approx(0.05, rel=1e-9)


def studentized_range_sf(q: float, k: int, df: int) -> float:
    """The range of k standard normals over an independent chi, by Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(300)
    z, wz = 9 * nodes, 9 * weights
    s, ws = (nodes + 1) * 1.75, 1.75 * weights  # the density of chi / sqrt(27) is nil beyond 3.5
    log_density = (
        math.log(2) + df / 2 * math.log(df / 2) - math.lgamma(df / 2)
        + (df - 1) * np.log(s) - df * s**2 / 2
    )  # fmt: skip
    normal = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    inner = ndtr(z)[None, :] - ndtr(z[None, :] - q * s[:, None])
    within = k * (normal[None, :] * inner ** (k - 1) * wz[None, :]).sum(axis=1)
    return float(1 - (within * np.exp(log_density) * ws).sum())


def test_welch_of_two_groups_is_the_square_of_welchs_t() -> None:
    groups = random_groups(8, (6, 15))
    (a, b) = (np.array(v) for v in groups.values())
    va, vb = a.var(ddof=1) / a.size, b.var(ddof=1) / b.size
    found = welch_anova(by_run(groups))
    assert found is not None
    assert found.f == pytest.approx((a.mean() - b.mean()) ** 2 / (va + vb), rel=1e-9)
    df = (va + vb) ** 2 / (va**2 / (a.size - 1) + vb**2 / (b.size - 1))
    assert found.df_within == pytest.approx(df, rel=1e-9)
    reference = scipy.stats.ttest_ind(a, b, equal_var=False)
    assert found.p_value == pytest.approx(float(reference.pvalue), rel=1e-9)


def test_kruskal_wallis_follows_its_formula_with_ties() -> None:
    groups = {"a": [1.0, 2.0, 2.0, 5.0], "b": [2.0, 3.0, 7.0], "c": [5.0, 8.0, 9.0, 9.0, 9.0]}
    together = sorted(x for v in groups.values() for x in v)
    n = len(together)
    rank = {x: (2 * together.index(x) + together.count(x) + 1) / 2 for x in together}
    h = 12 / (n * (n + 1)) * sum(
        sum(rank[x] for x in v) ** 2 / len(v) for v in groups.values()
    ) - 3 * (n + 1)
    h /= 1 - sum(together.count(x) ** 3 - together.count(x) for x in set(together)) / (n**3 - n)
    found = kruskal_wallis(by_run(groups))
    assert found is not None
    assert found.h == pytest.approx(h, rel=1e-9)
    assert found.p_value == pytest.approx(chi2_sf_even(h, 2), rel=1e-9)
    assert found.epsilon_squared == pytest.approx(h / ((n**2 - 1) / (n + 1)), rel=1e-12)


def test_levene_is_an_anova_of_distances_from_medians() -> None:
    groups = random_groups(11)
    found = check_assumptions(by_run(groups)).equal_variances
    assert found is not None
    distances = {n: list(np.abs(np.array(v) - np.median(v))) for n, v in groups.items()}
    f = float(exact_table(distances)[2])
    assert found.statistic == pytest.approx(f, rel=1e-9)
    d = found.df_within
    assert found.p_value == pytest.approx((1 + 2 * f / d) ** (-d / 2), rel=1e-9)


def test_shapiro_wilk_gives_the_1965_papers_example() -> None:
    weights = [148.0, 154, 158, 160, 161, 162, 166, 170, 182, 195, 236]
    found = check_assumptions(by_run({"men": weights, "other": [1.0, 2.0]})).normality[0]
    assert (found.group, found.test) == ("men", "Shapiro-Wilk")
    assert found.statistic == pytest.approx(0.79, abs=0.005)


def test_ljung_box_follows_its_formula() -> None:
    rng = np.random.default_rng(2)
    run = rng.normal(size=120).cumsum()
    groups = pseudo_replicates({"walk": [run], "noise": [rng.normal(size=120)]})
    walk, noise = check_assumptions(groups).autocorrelation
    d = run - run.mean()
    r = [float((d[k:] * d[:-k]).sum() / (d**2).sum()) for k in range(1, 11)]
    q = 120 * 122 * sum(x**2 / (120 - k) for k, x in enumerate(r, 1))
    assert walk.lags == 10
    assert walk.ljung_box_p == pytest.approx(chi2_sf_even(q, 10), rel=1e-9)
    assert walk.lag1 == pytest.approx(r[0], rel=1e-12)
    assert walk.effective_count < 15 < noise.effective_count


def test_autocorrelation_is_measured_within_runs_not_across_their_borders() -> None:
    rng = np.random.default_rng(4)
    runs = [rng.normal(level, 1, 60) for level in (0, 100)]  # independent within each run
    groups = pseudo_replicates({"a": runs, "b": [rng.normal(size=60)]})
    assert abs(check_assumptions(groups).autocorrelation[0].lag1) < 0.3


def test_pseudo_replication_is_marked_in_every_result() -> None:
    rng = np.random.default_rng(6)
    groups = pseudo_replicates({n: [rng.normal(size=50).cumsum()] for n in ("a", "b", "c")})
    found = compare_groups(groups)
    assert found.pseudo_replicated and found.anova.pseudo_replicated
    assert found.to_dict()["pseudo_replicated"] is True
    assert found.notes[0].startswith("pseudo-replicated")
    assert any(note.startswith("not independent") for note in found.notes)
    honest = compare_groups(by_run(PLANTS))
    assert not honest.pseudo_replicated and honest.to_dict()["anova"]["unit"] == "run"
    assert not any("pseudo" in note for note in honest.notes)


def test_a_group_of_one_run_is_refused() -> None:
    with pytest.raises(StatisticsError, match="group 'b': 1 run; a test needs at least 2"):
        by_run({"a": [1.0, 2.0], "b": [3.0]})
    with pytest.raises(StatisticsError, match="at least 2"):
        by_run({"a": [1.0, 2.0]})
    with pytest.raises(StatisticsError, match="not finite"):
        by_run({"a": [1.0, 2.0], "b": [3.0, math.nan]})


def test_groups_that_do_not_vary_give_no_false_numbers() -> None:
    same = compare_groups(by_run({"a": [1.0, 1.0], "b": [1.0, 1.0]}))
    apart = compare_groups(by_run({"a": [1.0, 1.0], "b": [2.0, 2.0]}))
    assert math.isnan(same.anova.f) and not same.anova.significant
    assert same.kruskal is None and same.welch is None and same.tukey == ()
    assert apart.anova.f == math.inf and apart.anova.p_value == 0
    assert apart.to_dict()["anova"]["f"] is None


def test_notes_name_the_test_whose_assumptions_hold() -> None:
    rng = np.random.default_rng(9)
    groups = by_run({"calm": list(rng.normal(0, 1, 40)), "wild": list(rng.exponential(20, 40))})
    notes = " ".join(compare_groups(groups).notes)
    assert "prefer Welch's" in notes and "not normal: wild" in notes


def test_a_shift_of_all_numbers_changes_no_test() -> None:
    plain = compare_groups(by_run(PLANTS))
    moved = compare_groups(by_run({n: [x + 2.0**20 for x in v] for n, v in PLANTS.items()}))
    assert moved.anova.f == pytest.approx(plain.anova.f, rel=1e-8)
    assert moved.welch is not None and plain.welch is not None
    assert moved.welch.f == pytest.approx(plain.welch.f, rel=1e-8)


def test_bootstrap_of_a_mean_agrees_with_the_students_interval_for_normal_data() -> None:
    runs = np.random.default_rng(1).normal(100, 5, 200)
    found = bootstrap_interval(list(runs), seed=7)
    assert found is not None and found.method == "BCa"
    half = 1.972 * runs.std(ddof=1) / math.sqrt(200)
    assert found.estimate == pytest.approx(runs.mean(), rel=1e-12)
    assert (found.low, found.high) == pytest.approx(
        (runs.mean() - half, runs.mean() + half), abs=0.08
    )


def test_bootstrap_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(12)
    hits = 0
    for seed in range(150):
        found = bootstrap_interval(list(rng.exponential(3, 40)), seed=seed, resamples=999)
        assert found is not None
        hits += found.low <= 3 <= found.high
    assert 0.87 <= hits / 150 <= 0.99


def test_bootstrap_is_decided_by_its_seed() -> None:
    runs = list(np.random.default_rng(5).normal(size=10))
    once, again = (bootstrap_interval(runs, seed=3, statistic=np.median) for _ in range(2))
    assert once == again
    assert once != bootstrap_interval(runs, seed=4, statistic=np.median)


def test_bootstrap_of_a_difference_finds_it() -> None:
    rng = np.random.default_rng(21)
    found = bootstrap_difference(list(rng.normal(5, 1, 60)), list(rng.normal(3, 1, 50)), seed=1)
    assert found is not None
    assert found.low < 2 < found.high and found.low > 1


def test_bootstrap_of_too_few_or_equal_runs_claims_nothing_more() -> None:
    assert bootstrap_interval([1.0, 2.0], seed=1) is None
    constant = bootstrap_interval([4.0, 4.0, 4.0], seed=1)
    assert constant is not None
    assert (constant.low, constant.high, constant.method) == (4.0, 4.0, "constant")
    with pytest.raises(StatisticsError, match="not finite"):
        bootstrap_interval([1.0, 2.0, math.inf], seed=1)


def test_groups_keep_runs_apart() -> None:
    groups = pseudo_replicates({"a": [[1.0, 2.0], [3.0]], "b": [[4.0, 5.0]]})
    assert isinstance(groups, Groups) and groups.unit == "sample"
    summary = one_way_anova(groups).groups[0]
    assert (summary.runs, summary.count, summary.sum) == (2, 3, 6.0)


def test_welchs_interval_is_that_of_scipy() -> None:
    from scipy.stats import ttest_ind

    from fullpipe.statistics.intervals import welch_interval

    first, other = [3.1, 2.9, 3.3, 3.0], [4.0, 4.4, 3.6]
    found = ttest_ind(other, first, equal_var=False).confidence_interval(0.95)
    assert welch_interval(first, other) == pytest.approx((found.low, found.high))
    assert welch_interval([1.0, 1.0], [2.0, 2.0]) is None
    assert welch_interval([1.0], [2.0, 3.0]) is None
