"""Claims over cells, their resamples and what becomes of them, against values done by hand.

Tests here hold whatever becomes of conditions that the runs leave open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from experiment_entries import SMALL, MadeStore, claims, entry_of
from fullpipe.base.errors import UserError
from fullpipe.experiments import judge
from fullpipe.experiments.check_conditions import averages, conditions_of, partners, touched
from fullpipe.experiments.claims_page import why
from fullpipe.experiments.results import RESAMPLES, Results, collect, widening
from fullpipe.experiments.values import (
    NotRunError,
    Point,
    Table,
    UntestableError,
    evaluate,
    shown,
    single,
    thresholds,
)
from fullpipe.experiments.verdicts import ConditionVerdict, Status, Verdict, commands, outcome
from fullpipe.expr.language import ExpressionError, parse, source


def table(**metrics: Sequence[float]) -> Table:
    """Four cells: rate 2, 4 times rtt 10, 20; `cc` is text and no axis."""
    points = [
        Point({"rate": rate, "rtt": rtt}, {"rate": rate, "rtt": rtt, "cc": cc})
        for rate, cc in ((2, "a"), (4, "b")) for rtt in (10, 20)
    ]  # fmt: skip
    values = {name: np.array([list(given)], dtype=float) for name, given in metrics.items()}
    beside = {("published", "x", ""): {3: 7.0, 1: 5.0}, ("predicted", "x", "m"): {0: 2.0}}
    return Table(points, values, {"limit": 2.5}, beside)


#: Expression over x = 1, 2, 3, 5 and y = 4, 3, 2, 1 -> its values.
VALUES: dict[str, list[float]] = {
    "x": [1, 2, 3, 5], "x + y": [5, 5, 5, 6], "x - y": [-3, -1, 1, 4], "x * y": [4, 6, 6, 5],
    "x / y": [0.25, 2 / 3, 1.5, 5], "-x": [-1, -2, -3, -5], "limit": [2.5],
    "x[rate == 2]": [1, 2], "x[rate == 4, rtt == 20]": [5], "x[rate == 4][rtt == 10]": [3],
    "x[cc == 'b']": [3, 5], "x[rate == 4] - x[rate == 2]": [2, 3],
    "x[rtt == 20] - x[rtt == 10]": [1, 2], "x[rate == 2] / x": [1, 1],
    "x - x[rate == 4]": [0, 0], "rate": [2, 2, 4, 4], "x * rate": [2, 4, 12, 20],
    "x < 3": [1, 1, 0, 0], "x <= 3": [1, 1, 1, 0], "x > 3": [0, 0, 0, 1], "x >= 3": [0, 0, 1, 1],
    "x == 3": [0, 0, 1, 0], "x != 3": [1, 1, 0, 1], "not x < 3": [0, 0, 1, 1],
    "x > 1 and y > 1": [0, 1, 1, 0], "x > 4 or y > 3": [1, 0, 0, 1], "1 < x < 5": [0, 1, 1, 0],
    "all(x > 0)": [1], "all(x > 1)": [0], "any(x > 4)": [1], "any(x > 5)": [0],
    "count(x > 1)": [3], "fraction(x > 1)": [0.75], "mean(x)": [2.75], "median(x)": [2.5],
    "min(x)": [1], "max(x)": [5], "sum(x)": [11], "abs(x - y)": [3, 1, 1, 4],
    "sqrt(y)": [2, math.sqrt(3), math.sqrt(2), 1], "log2(y)": [2, math.log2(3), 1, 0],
    "mse(x, y)": [(9 + 1 + 1 + 16) / 4], "mae(x, y)": [9 / 4],
    "published(x)": [5, 7], "predicted(x, 'm')": [2], "x - published(x)": [-3, -2],
    "mean(x) > limit": [1], "monotone(x, 'rate', 'up')": [1], "monotone(x, 'rtt', 'down')": [0],
    "monotone(y, 'rate', 'down')": [1], "monotone(y, 'rate', 'up', 2)": [1],
    "monotone(y, 'rate', 'up', 1.9)": [0], "monotone(x[rate == 2], 'rtt', 'up')": [1],
}  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_an_expression_has_these_values(text: str) -> None:
    found = evaluate(text, table(x=[1, 2, 3, 5], y=[4, 3, 2, 1]))
    assert found.data[0].astype(float) == pytest.approx(VALUES[text])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("z", "no metric, number or axis"), ("cc", "no metric, number or axis"),
        ("x[rate == 2] - x[rtt == 10, rate == 4]", "do not pair"), ("limit[rate == 2]", "no cells"),
        ("max(x, y)", "takes 1"), ("mse(x)", "takes 2"), ("f(x)", "is no function"),
        ("max(x=1)", "no names"), ("x in [1, 2]", "for conditions in brackets"),
        ("monotone(x, 'rate')", "takes a value"), ("monotone(x, 'rate', 'left')", "up or down"),
        ("monotone(x, 'z', 'up')", "must be an axis"), ("published(z)", "is no metric"),
        ("predicted(x)", "takes 2"),
    ],
)  # fmt: skip
def test_a_wrong_expression_says_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(ExpressionError, match=told):
        evaluate(text, table(x=[1, 2, 3, 5], y=[1, 1, 1, 1]))


def test_what_is_missing_is_untestable_where_it_is_used() -> None:
    full = table(x=[1, 2, math.nan, 5], y=[1, 1, 1, 1])
    assert evaluate("x[rate == 2]", full).data.tolist() == [[1, 2]]
    for text in ("x", "x[rate == 4]", "mean(x)", "x[rate == 9]", "observed(x)", "published(y)"):
        with pytest.raises(UntestableError):
            evaluate(text, full)
    gone = Table(full.points, full.metrics, full.numbers, full.beside, frozenset({1, 3}))
    assert evaluate("y[rtt == 10]", gone).data.tolist() == [[1, 1]]
    with pytest.raises(NotRunError, match=r"^1 of 2 cells \(rate 2, rtt 20\)"):
        evaluate("y[rate == 2]", gone)


def test_one_number_is_single_and_several_are_told() -> None:
    full = table(x=[1, 2, 3, 5])
    assert single(evaluate("mean(x)", full), "mean(x)").tolist() == [2.75]
    with pytest.raises(ExpressionError, match="gives 4 values"):
        single(evaluate("x > 1", full), "x > 1")


@pytest.mark.parametrize(
    ("check", "number"),
    [
        ("all(x < 3)", "max(x)"), ("all(x <= 3)", "max(x)"), ("all(x > 3)", "min(x)"),
        ("any(x < 3)", "min(x)"), ("any(x >= 3)", "max(x)"), ("mean(x) < 3", "mean(x)"),
        ("3 < mean(x)", "mean(x)"), ("not mean(x) < 3", "mean(x)"), ("any(x)", None),
        ("all(1 < x < 3)", None), ("mean(x) < 3 and max(y) < 1", "mean(x)"),
        ("1 < mean(x) < 3", None),
        ("monotone(x, 'rate', 'up') and min(y) > 1", "min(y)"),
    ],
)  # fmt: skip
def test_the_number_that_is_shown_for_a_check(check: str, number: str | None) -> None:
    found = shown(parse(check))
    assert (None if found is None else source(found)) == number


@pytest.mark.parametrize(
    ("check", "node", "numbers"),
    [
        ("all(x < 3)", "max(x)", (3,)), ("mean(x) > limit", "mean(x)", (2.5,)),
        ("2 < mean(x) < 4", "mean(x)", (4, 2)), ("all(x < y)", "max(x)", ()),
        ("mean(x) < 3 and mean(y) > 1", "mean(x)", (3,)), ("min(x) < 1", "max(x)", ()),
        ("all(x < 3)", "mean(x)", ()),
    ],
)  # fmt: skip
def test_the_numbers_that_a_check_compares_it_with(
    check: str, node: str, numbers: tuple[float, ...]
) -> None:
    full = table(x=[1, 2, 3, 5], y=[4, 3, 2, 1])
    assert thresholds(parse(check), parse(node), full) == numbers


def held(check: str, **metrics: Sequence[float]) -> list[tuple[str, bool, tuple[int, ...]]]:
    return [
        (one.label, bool(one.holds[0]), one.cells)
        for one in conditions_of(parse(check), table(**metrics))
    ]


def test_a_check_splits_into_one_condition_a_cell() -> None:
    x = [1, 2, 3, 5]
    labels = [f"rate {rate}, rtt {rtt}" for rate in (2, 4) for rtt in (10, 20)]
    for check in ("all(x < 3)", "max(x) < 3", "3 > max(x)"):
        assert held(check, x=x) == [
            (labels[n], x[n] < 3, (n,)) for n in range(4)
        ], check  # fmt: skip
    assert [one[1] for one in held("min(x) >= 2", x=x)] == [False, True, True, True]
    assert [one[1] for one in held("2 <= min(x)", x=x)] == [False, True, True, True]
    whole = [("max(x) > 3", True, (0, 1, 2, 3))]
    assert held("max(x) > 3", x=x) == whole
    assert held("mean(x) > 3", x=x) == [("mean(x) > 3", False, (0, 1, 2, 3))]
    assert held("min(x[rate == 4]) > 3", x=x) == [
        ("rtt 10", False, (2,)), ("rtt 20", True, (3,)),
    ]  # fmt: skip
    assert held("min(x[rate == 4, rtt == 20]) > 3", x=x) == [("the only cell", True, (3,))]


def test_conditions_of_one_cell_are_joined_and_partners_named() -> None:
    both = held("all(x < 5) and min(y) > 1", x=[1, 2, 3, 5], y=[4, 3, 2, 1])
    assert [one[1] for one in both] == [True, True, True, False]
    pairs = held("all(x[rate == 4] > x[rate == 2])", x=[1, 2, 3, 1])
    assert [(one[1], one[2]) for one in pairs] == [(True, (2, 0)), (False, (3, 1))]
    pooled = held("all(x[rate == 4] > mean(x[rate == 2]))", x=[1, 2, 3, 1])
    assert [(one[1], one[2]) for one in pooled] == [(True, (2, 0, 1)), (False, (3, 1, 0))]
    groups = held("monotone(x, 'rtt', 'up')", x=[1, 2, 3, 1])
    assert [(one[1], one[2]) for one in groups] == [(True, (0, 1)), (False, (2, 3))]


def test_what_an_expression_touches_pairs_and_averages() -> None:
    full = table(x=[1, 2, 3, 5], y=[1, 1, 1, 1])
    assert touched(parse("x[rate == 4] - mean(x[rtt == 10])"), full) == [0, 2, 3]
    assert touched(parse("published(x) + limit"), full) == []
    node = parse("x[rate == 4] / x[rate == 2]")
    assert partners(node, full, {2}) == {2, 0} and partners(node, full, {0, 3}) == {0, 1, 2, 3}
    assert averages(parse("mean(x) - median(y)")) and averages(parse("x"))
    for call in ("min", "max", "all", "any", "count", "fraction"):
        assert not averages(parse(f"mean(x) + {call}(x)"))
    assert not averages(parse("monotone(x, 'rate', 'up')"))


def one_cell(values: Sequence[float], folder: Path, check: str = "mean(share) > 0") -> Results:
    """An entry whose runs have these values in every cell, by seed."""

    def value(plan: Mapping[str, Any], text: str) -> float:
        return values[plan["seed"] - 1] if text != "goodput_mbps()" else 1.0

    entry = entry_of(folder, claims(check))
    return collect(entry, MadeStore(folder, value), "default", "sim", len(values), ())


def test_runs_give_means_and_three_of_them_resamples(tmp_path: Path) -> None:
    two = one_cell([1, 2], tmp_path / "two")
    assert two.repetitions == (2, 2) and two.estimates("share").tolist() == [1.5] * 4
    assert (two.resampled.metrics["share"] == 1.5).all()
    three = one_cell([11, 12, 16], tmp_path / "three")
    drawn = three.resampled.metrics["share"]
    assert drawn.shape == (RESAMPLES, 4) and drawn.std() > 0
    assert np.unique(drawn[:, 0]).size == 10  # multisets of three of three
    wide = widening(3)
    # The least mean is 11, 2 below the estimate of 13, and the largest 16: both are widened.
    assert (drawn.min(), drawn.max()) == pytest.approx((13 - 2 * wide, 13 + 3 * wide))
    # What no run has negative stays so.
    near = one_cell([0, 2, 6], tmp_path / "near").resampled.metrics["share"]
    assert near.min() == 0 and near.max() > 6
    below = one_cell([-1, 2, 8], tmp_path / "below").resampled.metrics["share"]
    assert below.min() == pytest.approx(3 - 4 * wide)


def test_the_widening_of_a_bootstrap_is_students() -> None:
    # t(0.975) over 1.95996 times sqrt(n / (n - 1)); with 3 runs 4.30265 / 1.95996 x 1.22474.
    assert widening(3) == pytest.approx(4.3026527 / 1.9599640 * math.sqrt(1.5), rel=1e-7)
    assert widening(4) == pytest.approx(3.1824463 / 1.9599640 * math.sqrt(4 / 3), rel=1e-7)
    assert widening(2) == 1 and widening(1) == 1
    assert widening(4, 5) == pytest.approx(
        stats.t.ppf(0.975, 15) / stats.norm.ppf(0.975) * math.sqrt(4 / 3)
    )


def judged(values: Sequence[float], folder: Path, check: str) -> Verdict:
    def value(plan: Mapping[str, Any], text: str) -> float:
        return values[plan["seed"] - 1] if text != "goodput_mbps()" else 1.0

    entry = entry_of(folder, claims(check))
    return judge(
        entry, MadeStore(folder, value), repetitions=len(values), with_kernel=False
    ).verdicts[0]  # fmt: skip


@pytest.mark.parametrize("runs", [2, 3, 4, 5])
def test_an_interval_needs_three_runs(runs: int, tmp_path: Path) -> None:
    found = judged(
        [1.0, 2.0, 4.0, 3.0, 2.5][:runs], tmp_path, "mean(share[rate == 2, rtt == 10]) > -1"
    )
    assert found.runs == (runs, runs)
    assert (found.low is None) == (runs < 3) and (found.support is None) == (runs < 3)
    assert found.value == pytest.approx(np.mean([1.0, 2.0, 4.0, 3.0, 2.5][:runs]))
    assert (found.interval == "") == (runs < 3) and found.status == "reproduced"


def test_an_interval_is_the_middle_95_of_100_of_the_resamples(tmp_path: Path) -> None:
    check = "mean(share[rate == 2, rtt == 10]) > -1"
    found = judged([10.0, 20, 40, 30], tmp_path, check)
    drawn = one_cell([10, 20, 40, 30], tmp_path / "again", check).resampled.metrics["share"][:, 0]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))
    assert found.measured == f"25 [{found.low:.4g}, {found.high:.4g}]"
    assert found.support == 1 and found.thresholds == (-1,)


def test_far_values_decide_a_claim(tmp_path: Path) -> None:
    # The simulator was held against kernels in no such cell, so what fails differs.
    values = [10.0, 11, 12, 11]
    assert judged(values, tmp_path / "a", "all(share > 5)").status == "reproduced"
    away = judged(values, tmp_path / "b", "all(share < 5)")
    assert away.status in ("contradicted", "differs") and away.support == 0
    assert len(away.failing) == 4 and away.undecided == frozenset()
    half = judged(values, tmp_path / "c", "all(share[rate == 2] > 5) and all(share[rate == 4] < 5)")
    assert half.status == "partly" and len(half.failing) == 2
    assert half.where.startswith("Holds in 2 of 4 cells.")


def verdict(status: Any, conditions: Sequence[ConditionVerdict]) -> Verdict:
    entry_claim = entry_claims()
    return Verdict(entry_claim, "sim", status, conditions=tuple(conditions))


def entry_claims() -> Any:
    from fullpipe.experiments.entry import Claim

    return Claim(id="c", text="A claim.", check="all(x > 1)", unit="ms")


def condition(held_: bool | None, *cells: int, grade: Any = "simulator") -> ConditionVerdict:
    return ConditionVerdict(f"cell {cells}", held_, cells, grade)


def test_further_runs_go_to_open_cells_of_an_uncertain_claim() -> None:
    mixed = [condition(True, 0), condition(None, 1, 2), condition(None, 3)]
    assert verdict("uncertain", mixed).undecided == {1, 2, 3}
    assert verdict("reproduced", mixed).undecided == frozenset()
    # All hold by themselves, and only their conjunction is open: every cell may decide it.
    assert verdict("uncertain", [condition(True, 0), condition(True, 1)]).undecided == {0, 1}


def test_cells_that_fail_are_those_of_the_simulator_alone() -> None:
    found = verdict("partly", [
        condition(False, 0), condition(False, 1, grade="beyond"),
        condition(False, 2, grade="kernel"),
        condition(None, 3), condition(True, 4), condition(False, 5, grade="paper"),
    ])  # fmt: skip
    assert found.failing == {0, 1}


#: Conditions that hold, fail, are open, and of the failing those on firm evidence -> the outcome.
OUTCOMES: dict[tuple[int, int, int, int], Status] = {
    (4, 0, 0, 0): "reproduced",
    (3, 0, 1, 0): "uncertain",
    (0, 0, 4, 0): "uncertain",
    # An open condition is no failure: one of two fails, and the other may hold.
    (0, 1, 1, 1): "uncertain",
    (0, 1, 3, 1): "uncertain",
    (0, 2, 2, 2): "uncertain",
    (1, 1, 0, 1): "partly",
    (3, 1, 0, 0): "partly",
    (1, 3, 4, 3): "partly",
    (1, 1, 6, 0): "partly",
    # More than half fail, whatever the others do.
    (0, 1, 0, 1): "contradicted",
    (0, 2, 1, 2): "contradicted",
    (1, 3, 1, 3): "contradicted",
    (1, 2, 0, 2): "contradicted",
    (0, 1, 0, 0): "differs",
    (0, 3, 1, 2): "differs",
    (0, 4, 0, 2): "differs",
    (2, 3, 0, 2): "differs",
}


@pytest.mark.parametrize("counted", OUTCOMES)
def test_an_outcome_follows_from_what_holds_fails_and_is_open(
    counted: tuple[int, int, int, int],
) -> None:
    assert outcome(*counted) == OUTCOMES[counted]


def test_all_conditions_must_hold_together() -> None:
    assert outcome(3, 0, 0, 0, conjunction=False) == "uncertain"
    # What fails or holds in part stays so.
    assert outcome(1, 2, 0, 2, conjunction=False) == "contradicted"
    assert outcome(2, 1, 0, 1, conjunction=False) == "partly"


def test_a_failure_is_unexplained_where_the_entry_tells_what_was_tried(tmp_path: Path) -> None:
    text = claims("all(share < 5)", "all(share > 5)")
    for claim in ("c0", "c1"):
        text = text.replace(
            f'id = "{claim}"',
            f'id = "{claim}"\nunexplained = {{ setup = "The same.", tried = ['
            '{ cause = "Jitter", effect = "none" }, { cause = "Bursts", effect = "+3 %" }] }',
        )
    entry = entry_of(tmp_path, text)
    store = MadeStore(tmp_path, lambda _plan, _text: 10.0)
    fails, holds = judge(entry, store, repetitions=3, with_kernel=False).verdicts
    assert (fails.status, holds.status) == ("unexplained", "reproduced")
    assert why(fails) == "Set-up: The same. Tried: Jitter: none Bursts: +3 %"
    one = text.replace(', { cause = "Bursts", effect = "+3 %" }', "")
    with pytest.raises(UserError, match="tried"):
        entry_of(tmp_path, one)
    # Arithmetic on the paper's own numbers has nothing to try.
    arithmetic = text.replace('id = "c1"', 'about = "arithmetic"\nid = "c1"')
    with pytest.raises(UserError, match="unexplained: only of a claim with a check on runs"):
        entry_of(tmp_path, arithmetic)


def test_a_contradiction_says_what_would_have_to_be_true(tmp_path: Path) -> None:
    text = claims("all(share < 5)", "all(share > 5)")
    for claim in ("c0", "c1"):
        text = text.replace(f'id = "{claim}"', f'id = "{claim}"\nright_if = "shares are small."')
    store = MadeStore(tmp_path, lambda _plan, _text: 10.0)
    fails, holds = judge(entry_of(tmp_path, text), store, repetitions=3).verdicts
    assert why(fails) == "The paper is right if shares are small." and why(holds) == ""


def test_a_verdict_names_six_cells_at_most() -> None:
    six = [condition(True, 9), *(condition(False, n) for n in range(6))]
    text = verdict("contradicted", six).where
    assert text.startswith("Holds in 1 of 7 cells. Not in cell (0,);") and "more" not in text
    seven = [*six, condition(False, 6)]
    assert verdict("contradicted", seven).where.endswith("cell (5,) and 1 more.")
    assert verdict("reproduced", six).where == "" and verdict("partly", six[:1]).where == ""
    beyond = [condition(False, 0, grade="beyond"), condition(None, 1)]
    assert verdict("differs", beyond).where == (
        "Holds in 0 of 2 cells. Differs in cell (0,). Open in cell (1,)."
    )


def test_a_measured_number_has_its_unit() -> None:
    claim = entry_claims()
    assert Verdict(claim, "sim", "reproduced", value=1.23456).measured == "1.235 ms"
    assert Verdict(claim, "sim", "reproduced", value=2.0, low=1.0, high=3.0).measured == (
        "2 [1, 3] ms"
    )
    assert Verdict(claim, "sim", "reproduced").measured == ""
    target = claim.model_copy(update={"about": "simulator"})
    words = {s: Verdict(target, "sim", s).word for s in ("reproduced", "contradicted", "uncertain")}
    assert words == {"reproduced": "met", "contradicted": "missed", "uncertain": "uncertain"}
    assert Verdict(claim, "sim", "contradicted").word == "contradicted"


@pytest.mark.parametrize(
    ("published", "unit", "number"),
    [("12.5", "", 12.5), ("about 12 ms", "ms", 12), ("~ -3 ms", "ms", -3), ("> 1.5", "", None),
     ("12 s", "ms", None), ("12", "ms", None), ("12 ms", "ms of delay", 12), ("1 to 2", "", None)],
)  # fmt: skip
def test_a_printed_number_counts_where_its_unit_is_the_measured_ones(
    published: str, unit: str, number: float | None, tmp_path: Path
) -> None:
    text = claims("mean(share) > 0").rstrip() + f'\npublished = "{published}"\nunit = "{unit}"\n'
    found = judge(
        entry_of(tmp_path, text), MadeStore(tmp_path, lambda _plan, _text: 1.0), repetitions=2
    ).verdicts[0]
    assert found.paper == number and found.published == published


def test_the_command_that_repeats_an_entry(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, SMALL)
    assert commands(entry, "default") == f"fullpipe experiment run {entry.id}"
    found = commands(entry, "full", Path("a b"), ["sim", "vm"])
    assert found == f"fullpipe experiment run {entry.id} --catalogue 'a b' --full --engine vm"
