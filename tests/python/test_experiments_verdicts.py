"""Verdicts on values made by hand: what an expression means, and what becomes of a claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiment_entries import SMALL, MadeStore, claims, entry_of
from fullpipe.base.errors import UserError
from fullpipe.experiments import Store, Verdict, judge, run_entries
from fullpipe.experiments.adaptive_runs import run_until_decided
from fullpipe.experiments.claims_page import claims_page
from fullpipe.experiments.engine_comparison import comparison_cells, comparison_page
from fullpipe.experiments.export import run_rows, verdict_rows
from fullpipe.experiments.results import widening
from fullpipe.experiments.run_store import StoredRun
from fullpipe.experiments.verdict_chart import svg_chart, text_chart
from fullpipe.experiments.verdicts_page import verdicts_page


def by_hand(plan: Mapping[str, Any], text: str) -> float:
    """share: 0.2 at 2 Mbit/s, 0.4 at 4, plus the RTT in seconds, plus 0.01 for each further seed;
    goodput: the rate."""
    mbps = plan["path"]["rate_bps"] / 1e6
    if text == "goodput_mbps()":
        return mbps
    return 0.1 * mbps + plan["path"]["reverse_delay_ns"] / 1e9 + 0.01 * (plan["seed"] - 1)


def verdicts(folder: Path, text: str, repetitions: int = 2) -> list[Verdict]:
    entry = entry_of(folder, text)
    return judge(entry, MadeStore(folder, by_hand), repetitions=repetitions).verdicts


#: Expression -> whether it holds, by the values above (means over seeds 1 and 2: 0.215, 0.225,
#: 0.415, 0.425).
HOLDS = {
    "all(share < 0.43)": True,
    "all(share < 0.42)": False,
    "any(share > 0.42)": True,
    "count(share > 0.3) == 2": True,
    "fraction(share > 0.42) == 0.25": True,
    "abs(mean(share[rate == 2, rtt == 10]) - 0.215) < 1e-9": True,
    "abs(mean(share[rate == 2]) - 0.22) < 1e-9": True,
    "max(share[rate in (2, 4), rtt == 10]) < 0.416": True,
    "all(share[rate == 4] > share[rate == 2])": True,
    "all(share[rtt == 10] > share[rtt == 20])": False,
    "min(share[not rate == 2]) > 0.41": True,
    "min(share[rate == 2 or rtt == 20]) < 0.22": True,
    "monotone(share, 'rate', 'up')": True,
    "monotone(share, 'rate', 'down')": False,
    "monotone(share, 'rtt', 'down', 0.011)": True,
    "monotone(share, 'rtt', 'down', 0.009)": False,
    "abs(mae(share[rate == 4], share[rate == 2]) - 0.2) < 1e-9": True,
    "abs(mse(share[rate == 4], share[rate == 2]) - 0.04) < 1e-9": True,
    "0.2 <= mean(share[rate == 2]) <= 0.23": True,
    "mean(goodput[rate == 4]) / mean(goodput[rate == 2]) == 2": True,
    "all(goodput == rate)": True,
    "mean(share) > 0.5 or max(share) > 0.42": True,
    "abs(median(share) - 0.32) < 1e-9": True,
    "log2(mean(goodput[rate == 4])) == 2": True,
}


@pytest.mark.parametrize("check", HOLDS)
def test_an_expression_means_what_a_hand_computes(check: str, tmp_path: Path) -> None:
    [verdict] = verdicts(tmp_path, claims(check))
    held = ("reproduced",) if HOLDS[check] else ("partly", "contradicted")
    assert verdict.status in held


def test_the_shown_number_is_the_worst_cell_or_the_left_side(tmp_path: Path) -> None:
    worst, left, right = verdicts(
        tmp_path, claims("all(share < 0.43)", "mean(share) < 1", "0.5 > max(share)")
    )
    assert worst.value == pytest.approx(0.425)
    assert left.value == pytest.approx(0.32)
    assert right.value == pytest.approx(0.425)


def test_two_runs_give_no_interval_and_three_give_that_of_their_bootstrap(tmp_path: Path) -> None:
    [without] = verdicts(tmp_path, claims("mean(share) < 0.33"), repetitions=2)
    assert (without.low, without.high, without.support) == (None, None, None)
    [verdict] = verdicts(tmp_path, claims("mean(share) < 0.33"), repetitions=5)
    assert verdict.value == pytest.approx(0.335)
    # Each cell's mean of five values 0.01 apart has a standard error of 0.01 sqrt(2.5 / 5) and
    # Student's quantile for the 16 degrees of freedom of the four cells that are averaged.
    deviation = 0.01 * np.sqrt(2.5 / 5) * 2.120 / 1.96 / np.sqrt(4)
    assert verdict.low == pytest.approx(0.335 - 1.96 * deviation, abs=1e-3)
    assert verdict.high == pytest.approx(0.335 + 1.96 * deviation, abs=1e-3)
    # Resamples below 0.33 are those 1.31 deviations down: 9.6 % of a normal distribution.
    assert verdict.support == pytest.approx(0.096, abs=0.03)
    assert verdict.status == "uncertain"


def test_a_median_over_runs_is_one(tmp_path: Path) -> None:
    text = claims("abs(mean(share[rate == 2, rtt == 10]) - 0.22) < 1e-9").replace(
        'title = "share of one"', 'title = "share of one"\nover_runs = "median"'
    )
    # Seeds 1 to 3: 0.21, 0.22, 0.23.
    assert verdicts(tmp_path, text, repetitions=3)[0].value == pytest.approx(0, abs=1e-9)


def test_published_values_lie_beside_their_cells(tmp_path: Path) -> None:
    published = """
[[published]]
metric = "share"
at = { rate = 4 }
along = "rtt"
values = [0.4, 0.5]
"""
    text = claims(
        "abs(mae(share, published(share)) - 0.045) < 1e-9", "max(share[rate == 4]) < 1",
        "max(share) < 1",
    ).replace("[[plot]]", published + "[[plot]]")  # fmt: skip
    both, shown, partly = verdicts(tmp_path, text)
    assert both.status == "reproduced"  # |0.415 - 0.4| and |0.425 - 0.5|
    assert shown.published == "0.5"
    assert partly.published == "", "the paper prints only half of these cells"


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    text = claims("all(share > 0)", "mse(share, observed(share)) < 1").replace(
        "[[plot]]", '[observed]\nmetric = "share"\ncolumn = "s"\nmatch = { r = "{rate}" }\n[[plot]]'
    )
    text += '[[claim]]\nid = "c2"\ntext = "t"\nneeds = "a Wi-Fi model"\n'

    class Empty(MadeStore):
        def read(self, key: str, expressions: Mapping[str, str]) -> None:
            """Nothing was run."""

    entry = entry_of(tmp_path, text)
    first, second, third = judge(entry, Empty(tmp_path, by_hand)).verdicts
    assert first.status == second.status == "not run" and third.status == "not testable here"
    assert first.reason.startswith("4 of 4 cells (rate 2, rtt 10)")
    assert third.reason == "a Wi-Fi model"
    assert (
        "--observed" in judge(entry, MadeStore(tmp_path, by_hand), repetitions=2).verdicts[1].reason
    )


def test_nothing_to_measure_is_not_testable_rather_than_contradicted(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, claims("all(share < 0.5)", "all(goodput > 0)"))
    nothing = MadeStore(tmp_path, lambda _, text: float("nan") if "share" in text else 1.0)
    share, goodput = judge(entry, nothing, repetitions=2).verdicts
    assert share.status == "not testable here"
    assert goodput.status == "reproduced"


def test_claims_that_are_held_out_are_counted_by_themselves_too(tmp_path: Path) -> None:
    text = claims("all(share > 0.1)", "all(share > 0.9)", "all(goodput > 0)")
    held_out = text.replace('id = "c1"', 'id = "c1"\nheld_out = true')
    store = MadeStore(tmp_path, by_hand)
    assert "held out" not in claims_page([judge(entry_of(tmp_path, text), store)])
    page = claims_page([judge(entry_of(tmp_path, held_out), store)], names=["bless2025"])
    assert "fullpipe experiment report bless2025 --claims" in page
    # Reproduced, partly, contradicted, differs, unexplained, uncertain, not run, not testable.
    assert "| all | 2 | 0 | 1 | 0 | 0 | 0 | 0 | 0 |" in page
    assert "| bless2025, held out | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 0 |" in page
    assert "| bless2025, the others | 2 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |" in page
    assert "| Claim 1. *(held out)* |" in page
    assert "| Claim 0. |" in page


def test_observed_points_are_found_by_their_columns(tmp_path: Path) -> None:
    text = claims("abs(mae(share, observed(share)) - 0.1) < 1e-9").replace(
        "[[plot]]",
        '[[observed]]\nmetric = "share"\ncolumn = "s"\n'
        'match = { r = "{rate}", t = "{rtt}" }\n[[plot]]',
    )
    entry = entry_of(tmp_path, text)
    store = MadeStore(tmp_path, by_hand)
    points = tmp_path / "points.csv"
    points.write_text("r,t,s\n2,10,0.315\n4,20,0.325\n9,9,7\n")
    assert judge(entry, store, repetitions=2, observed=[points]).verdicts[0].status == "reproduced"
    other = tmp_path / "other.csv"
    other.write_text("of,another,experiment\n1,2,3\n")
    assert (
        judge(entry, store, repetitions=2, observed=[other, points]).verdicts[0].status
        == "reproduced"
    )
    assert (
        judge(entry, store, repetitions=2, observed=[other]).verdicts[0].status
        == "not testable here"
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("r,t,s\n2,10,fast\n", "line 2: s: 'fast' is not a number"),
        ("r,t,s\n2,10,inf\n", "is not a number"),
        ("r,t,s\n2,10,1\n2,10,2\n", "lines 2, 3 all match"),
        ('r,t,s\n"2,10,1\n', "not a CSV file"),
        (b"\xff\xfe\x00", "not a CSV file"),
        (None, "cannot be read"),
    ],
)
def test_observed_files_that_cannot_be_believed_are_refused(
    content: str | bytes | None, says: str, tmp_path: Path
) -> None:
    text = SMALL.replace(
        "[[plot]]",
        '[observed]\nmetric = "share"\ncolumn = "s"\n'
        'match = { r = "{rate}", t = "{rtt}" }\n[[plot]]',
    )
    entry = entry_of(tmp_path, text)
    points = tmp_path / "points.csv"
    if content is not None:
        points.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=says):
        judge(entry, MadeStore(tmp_path, by_hand), observed=[points])


COMPARED = """engines = ["sim", "vm"]
compare_engines = true
comparison_file = "docs/both.md"
repetitions_on = { vm = 1 }
repetitions"""


class TwoEngines(MadeStore):
    """As made by hand on `sim`; 0.02 more on `vm`, which has not run 4 Mbit/s and 20 ms."""

    engines = ("sim", "vm")

    def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
        """The made run."""
        run = super().read(key, expressions)
        if run is None or not key.startswith("vm"):
            return run
        if key.startswith("vm-4000000-20"):
            return None
        return StoredRun(run.seed, {text: v + 0.02 for text, v in run.metrics.items()}, {})


def test_engines_are_compared_cell_by_cell(tmp_path: Path) -> None:
    text = claims(
        "abs(max(abs(share[engine == 'sim', rate == 2] - share[engine == 'vm', rate == 2]))"
        " - 0.015) < 1e-9",
        "mae(share[engine == 'sim'], share[engine == 'vm']) < 1",
    ).replace("repetitions", COMPARED, 1)
    entry = entry_of(tmp_path, text)
    found = judge(entry, TwoEngines(tmp_path, by_hand))
    # sim: the mean of seeds 1 and 2, 0.005 above seed 1, which is all that vm has.
    assert [verdict.status for verdict in found.verdicts] == ["reproduced", "not run"]
    page = comparison_page(found)
    assert "3 of 4 cells have run on both engines" in page
    assert "| all | 3 | 0.015, 0.015 | 0.020, 0.020 |" in page
    assert "[both.csv](both.csv)" in page
    head, *rows = comparison_cells(found).splitlines()
    assert head == "rate,rtt,runs_sim,runs_vm,share_sim,share_vm,goodput_sim,goodput_vm,problems"
    assert len(rows) == 3
    assert "2,10,2,1,0.215,0.230,2.000,2.020," in rows


def test_nothing_is_written_before_both_engines_ran(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, claims("all(share > 0)").replace("repetitions", COMPARED, 1))

    class OnlySim(MadeStore):
        def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
            """Runs of the simulator."""
            return super().read(key, expressions) if key.startswith("sim") else None

    assert comparison_page(judge(entry, OnlySim(tmp_path, by_hand))) == ""


#: SMALL in the regime of docs/evidence/fidelity.md at 10 Mbit/s, and beyond it at 400.
BOTH = ("rate = [2, 4]", "rate = [10, 400]")


def by_rate(inside: list[float], outside: list[float]) -> Callable[[Mapping[str, Any], str], float]:
    """Runs that give these values in turn, in the regime and beyond it."""

    def value(plan: Mapping[str, Any], text: str) -> float:
        values = inside if plan["path"]["rate_bps"] == 10**7 else outside
        return values[(plan["seed"] - 1) % len(values)]

    return value


LOW, HIGH, EITHER = [0.2, 0.21, 0.22], [0.6, 0.61, 0.62], [0.2, 0.5, 0.6]


@pytest.mark.parametrize(
    ("inside", "outside", "status", "grade", "where"),
    [
        (LOW, LOW, "reproduced", "beyond", ""),
        (HIGH, HIGH, "differs", "beyond", "Holds in 0 of 4 cells."),
        (LOW, HIGH, "partly", "beyond", "Holds in 2 of 4 cells. Differs in rate 400, rtt 10;"),
        (HIGH, LOW, "partly", "beyond", "Holds in 2 of 4 cells. Not in rate 10, rtt 10; rate 10,"),
        (
            [0.2, 0.2, 0.5],
            HIGH,
            "uncertain",
            "beyond",
            "Holds in 0 of 4 cells. Differs in rate 400, rtt",
        ),
        (LOW, EITHER, "uncertain", "beyond", "Holds in 2 of 4 cells. Open in rate 400, rtt 10;"),
        (EITHER, HIGH, "uncertain", "beyond", "Holds in 0 of 4 cells. Differs in rate 400, rtt"),
    ],
)
def test_an_outcome_is_no_more_than_the_runs_show(
    inside: list[float], outside: list[float], status: str, grade: str, where: str, tmp_path: Path
) -> None:
    text = claims("all(share < 0.4)").replace(*BOTH)
    entry = entry_of(tmp_path, text)
    [verdict] = judge(entry, MadeStore(tmp_path, by_rate(inside, outside)), repetitions=3).verdicts
    assert (verdict.status, verdict.grade) == (status, grade)
    assert verdict.where.startswith(where)


def test_only_the_regime_that_was_held_against_kernels_contradicts(tmp_path: Path) -> None:
    text = claims(
        "all(share[rate == 10] < 0.4)", "max(share) < 0.4", "max(share[rate == 400]) < 0.4"
    )
    entry = entry_of(tmp_path, text.replace(*BOTH))
    found = judge(entry, MadeStore(tmp_path, by_rate(HIGH, HIGH)), repetitions=3).verdicts
    assert [(one.status, one.grade) for one in found] == [
        ("contradicted", "simulator"), ("differs", "beyond"), ("differs", "beyond"),
    ]  # fmt: skip
    assert found[1].where.startswith("Holds in 0 of 4 cells"), "max(x) < s is x < s in every cell"


def test_a_conjunction_holds_in_a_cell_where_each_part_does(tmp_path: Path) -> None:
    text = claims("all(share < 0.4) and min(share) > 0.1 and mean(goodput) > 9")
    entry = entry_of(tmp_path, text.replace(*BOTH))
    store = MadeStore(tmp_path, by_rate(LOW, HIGH))
    [verdict] = judge(entry, store, repetitions=3).verdicts
    labels = [one.label for one in verdict.conditions]
    assert labels == [
        "rate 10, rtt 10", "rate 10, rtt 20", "rate 400, rtt 10", "rate 400, rtt 20",
        "mean(goodput) > 9",
    ]  # fmt: skip
    assert [one.held for one in verdict.conditions] == [True, True, False, False, False]
    assert verdict.status == "differs"


def test_a_comparison_of_cells_rests_on_both(tmp_path: Path) -> None:
    text = claims("all(share[rate == 400] < share[rate == 10])", "monotone(share, 'rate', 'up')")
    entry = entry_of(tmp_path, text.replace(*BOTH))
    [pair, steps] = judge(entry, MadeStore(tmp_path, by_rate(LOW, HIGH)), repetitions=3).verdicts
    assert [one.cells for one in pair.conditions] == [(2, 0), (3, 1)]
    assert [one.cells for one in steps.conditions] == [(0, 2), (1, 3)]
    assert (pair.status, steps.status) == ("differs", "reproduced")


def test_a_metric_may_have_the_name_of_a_function(tmp_path: Path) -> None:
    text = claims("mean(mean[rate == 2]) < 0.5", "max(mean[rate == 2]) < 0.5")
    text = text.replace("[metric.share]", "[metric.mean]").replace('of = "share"', 'of = "mean"')
    both, each = verdicts(tmp_path, text)
    assert [one.cells for one in both.conditions] == [(0, 1)]
    assert [one.label for one in each.conditions] == ["rtt 10", "rtt 20"]


class OnKernel(MadeStore):
    """0.2 on the simulator at 10 Mbit/s and 0.6 at 400; on the kernel 0.3 at 400 and 10 ms."""

    engines = ("sim", "vm")

    def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
        """The made run."""
        run = super().read(key, expressions)
        if run is None or not key.startswith("vm"):
            return run
        if not key.startswith("vm-400000000-10000000-"):
            return None
        return StoredRun(run.seed, dict.fromkeys(run.metrics, 0.3), {})


def test_a_kernel_goes_before_the_simulator(tmp_path: Path) -> None:
    text = claims(
        "all(share < 0.4)", "all(share[rate == 400, rtt == 10] < 0.4)", "mean(share) < 0.3"
    )
    entry = entry_of(tmp_path, text.replace(*BOTH))
    some, one, mean = judge(entry, OnKernel(tmp_path, by_rate(LOW, HIGH)), repetitions=3).verdicts
    assert [condition.held for condition in some.conditions] == [True, True, True, False]
    assert [condition.grade for condition in some.conditions] == [
        "simulator", "simulator", "kernel", "beyond",
    ]  # fmt: skip
    assert some.where.startswith("Holds in 3 of 4 cells. Differs in rate 400, rtt 20")
    assert (one.status, one.grade, one.value) == ("reproduced", "kernel", pytest.approx(0.3))
    assert one.kernel.startswith("simulator: 0.61")
    assert (mean.status, mean.grade) == ("differs", "beyond"), "it did not run all of these cells"


class SomeOnKernel(MadeStore):
    """`here` on the simulator; `there` on the kernel, in cells (Mbit/s, ms) with so many runs."""

    engines = ("sim", "vm")

    def __init__(self, folder: Path, ran: Mapping[tuple[int, int], int]) -> None:
        super().__init__(folder, lambda plan, _text: HERE[_cell(plan)])
        self.ran = ran

    def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
        """The made run."""
        run = super().read(key, expressions)
        if run is None or key.startswith("sim"):
            return run
        cell = _cell(self.plans[key])
        if run.seed > self.ran.get(cell, 0):
            return None
        return StoredRun(run.seed, dict.fromkeys(run.metrics, THERE[cell]), {})


def _cell(plan: Mapping[str, Any]) -> tuple[int, int]:
    path = plan["path"]
    return path["rate_bps"] // 10**6, path["reverse_delay_ns"] // 10**6


#: Shares by rate and RTT, on the simulator and on the kernel.
HERE = {(10, 10): 0.50, (10, 20): 0.60, (400, 10): 0.40, (400, 20): 0.30}
THERE = {(10, 10): 0.25, (10, 20): 0.64, (400, 10): 0.20, (400, 20): 0.32}
#: Of two comparisons, one at each RTT, the first fails.
PAIRS = "all(share[rate == 400] < 0.6 * share[rate == 10])"
RATIO = "max(share[rate == 400] / share[rate == 10])"


def on_kernel(
    folder: Path, ran: Mapping[tuple[int, int], int], check: str, value: str = "", runs: int = 3
) -> Verdict:
    """The verdict on a claim, with these runs of a kernel and so many of the simulator."""
    text = claims(check) + (f'value = "{value}"\n' if value else "")
    entry = entry_of(folder, text.replace(*BOTH))
    [verdict] = judge(entry, SomeOnKernel(folder, ran), repetitions=runs).verdicts
    return verdict


FIRST = {(10, 10): 3, (400, 10): 3}


def test_what_a_kernel_measured_of_a_comparison_is_shown_whatever_else_it_has_run(
    tmp_path: Path,
) -> None:
    """A cell more on one side does not pair with any on the other."""
    for more in ({}, {(400, 20): 3}, {(10, 20): 3}):
        verdict = on_kernel(tmp_path, FIRST | more, PAIRS, RATIO)
        assert verdict.kernel == "virtual machine, 1 cell: 0.8", more
        assert [one.grade for one in verdict.conditions] == ["kernel", "beyond"], more
        assert verdict.value == pytest.approx(0.8)
    whole = on_kernel(tmp_path, dict.fromkeys(HERE, 3), PAIRS, RATIO)
    assert whole.kernel == "simulator: 0.8 [0.8, 0.8]" and whole.grade == "kernel"


def test_cells_of_a_kernel_are_compared_with_their_own_partners_only(tmp_path: Path) -> None:
    """At 400 Mbit/s it ran the one RTT, at 10 Mbit/s the other: nothing of a comparison."""
    verdict = on_kernel(tmp_path, {(10, 20): 3, (400, 10): 3}, PAIRS, RATIO)
    assert verdict.kernel == ""
    assert [one.grade for one in verdict.conditions] == ["beyond", "beyond"]
    ratio = on_kernel(tmp_path, {(10, 20): 3, (400, 10): 3}, "all(share < 0.7)", RATIO)
    assert [one.grade for one in ratio.conditions].count("kernel") == 2 and ratio.kernel == ""
    all_but_one = {cell: 3 for cell in HERE if cell != (10, 20)}
    mean = on_kernel(tmp_path, all_but_one, "all(share[rate == 400] < mean(share[rate == 10]))")
    assert [one.grade for one in mean.conditions] == ["beyond", "beyond"]


def test_more_runs_of_the_simulator_do_not_hide_what_a_kernel_measured(tmp_path: Path) -> None:
    """One run of each decides beside one run, and is shown beside three."""
    check, once = "all(share[rtt == 10] < 0.45)", {(10, 10): 1, (400, 10): 1}
    decided = on_kernel(tmp_path, once, check, runs=1)
    assert (decided.status, decided.grade, decided.value) == ("reproduced", "kernel", 0.25)
    told = on_kernel(tmp_path, once, check, runs=3)
    assert (told.status, told.grade, told.value) == ("partly", "beyond", 0.5)
    assert told.kernel == "virtual machine, too few runs: 0.25"
    part = on_kernel(tmp_path, {(400, 10): 2}, check)
    assert part.kernel == "virtual machine, 1 cell, too few runs: 0.2"


def test_a_number_of_more_cells_than_the_check_has_is_the_simulators_until_a_kernel_ran_them_all(
    tmp_path: Path,
) -> None:
    check, value = "all(share[rtt == 10] < 0.45)", "mean(share)"
    some = on_kernel(tmp_path, FIRST, check, value)
    assert (some.status, some.grade) == ("reproduced", "kernel")
    assert some.value == pytest.approx(0.45)
    assert some.kernel == "virtual machine, 2 cells: 0.225"
    every = on_kernel(tmp_path, dict.fromkeys(HERE, 3), check, value)
    assert every.value == pytest.approx(sum(THERE.values()) / 4)


def test_conditions_on_several_cells_rest_on_a_kernel_that_ran_all_of_them(tmp_path: Path) -> None:
    check = "mean(share[rtt == 10]) < 0.3 and mean(share[rtt == 20]) < 0.3"
    verdict = on_kernel(tmp_path, FIRST, check)
    assert [(one.held, one.grade) for one in verdict.conditions] == [
        (True, "kernel"), (False, "beyond"),
    ]  # fmt: skip
    assert (verdict.status, verdict.kernel) == ("partly", "virtual machine: 0.225")


def test_intervals_cover_what_they_say() -> None:
    """Of means of few normal runs; a plain bootstrap of three covers 75 %."""
    draw = np.random.default_rng(1)
    for runs in (3, 5, 10):
        values = draw.normal(size=(2000, runs))
        centre = values.mean(axis=1)
        again = values[np.arange(2000)[:, None, None], draw.integers(0, runs, (2000, 400, runs))]
        drawn = centre[:, None] + widening(runs) * (again.mean(axis=2) - centre[:, None])
        low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
        assert 0.92 < np.mean((low < 0) & (high > 0)) < 0.985


def test_what_a_claim_compares_lies_on_one_axis_with_what_is_measured(tmp_path: Path) -> None:
    published = '[[published]]\nmetric = "share"\nat = { rate = 10, rtt = 10 }\nvalues = [0.25]\n'
    text = claims("mean(share[rate == 10, rtt == 10]) < 0.3", "mean(share) > 0").replace(
        "[[plot]]", published + "[[plot]]"
    )
    entry = entry_of(tmp_path, text.replace(*BOTH))
    store = MadeStore(tmp_path, by_rate(LOW, HIGH))
    drawn, _ = judge(entry, store, repetitions=3).verdicts
    assert (drawn.value, drawn.paper, drawn.thresholds) == (pytest.approx(0.21), 0.25, (0.3,))
    line = text_chart(drawn)
    places = [line.index(mark) for mark in "o]x┃"]
    assert places == sorted(places), "0.21, the end of its interval, 0.25, 0.3"
    assert "threshold 0.3; paper 0.25" in svg_chart(drawn)
    assert "&lt;" not in text_chart(drawn)


def test_an_uncertain_verdict_gets_more_runs_and_a_decided_one_none(tmp_path: Path) -> None:
    """Real runs: Reno beside CUBIC for a second, whose share lies above 0.01 beyond doubt."""
    certain = claims("all(goodput > 0.01)", "mean(share[rate == 4, rtt == 20]) > 0.5").replace(
        "repetitions = 2", "repetitions = 3\nmost_repetitions = 6"
    )
    entry = entry_of(tmp_path, certain.replace("rtt = [10, 20]", "rtt = [20]"))
    store = Store(tmp_path / "store")
    run_entries([entry], store, jobs=1)
    before = judge(entry, store)
    wanted = {cell for verdict in before.verdicts for cell in verdict.undecided}
    done = run_until_decided([entry], store, "default", (), jobs=1)
    assert done.ran == 3 * len(wanted)
    after = judge(entry, store).results
    assert [len(runs) for runs in after.runs] == [6 if i in wanted else 3 for i in range(2)]


class DriftingStore(MadeStore):
    """At 4 Mbit/s and 20 ms all runs drift; at 4 Mbit/s and 10 ms all are too short to tell; at
    2 Mbit/s and 20 ms one of six drifts, as it does by chance in 26 % of cells."""

    def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
        """The made run."""
        run = super().read(key, expressions)
        if run is None:
            return None
        path = self.plans[key]["path"]
        cell = (path["rate_bps"] // 1_000_000, path["reverse_delay_ns"] // 1_000_000)
        word = {(4, 20): "share of one +1.00e-2/s; 25 s", (4, 10): "too short"}.get(cell, "")
        if cell == (2, 20) and run.seed == 1:
            word = "backlog +2.05e3/s; 25 s"
        return replace(run, unsettled=word)


def test_a_claim_over_cells_that_had_not_settled_says_so(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, claims(
        "all(share < 1)", "all(share[rate == 4, rtt == 20] < 1)", "all(share[rate == 2] < 1)",
        "all(share[rtt == 10] < 1)", "1 < 2",
    ))  # fmt: skip
    judged = judge(entry, DriftingStore(tmp_path, by_hand), repetitions=6)
    drift = "the share of one still rises by 0.01 a second"
    assert [one.settling for one in judged.verdicts] == [
        f"not settled in 1 of 4 cells (rate 4, rtt 20): {drift}; too short to tell whether it had "
        "settled in 1 of 4 cells",
        f"not settled: {drift}",
        "",
        "too short to tell whether it had settled in 1 of 2 cells",
        "",
    ]
    html, markdown = verdicts_page([judged]), claims_page([judged])
    rows = verdict_rows([judged])
    assert rows[1]["settling"] == f"not settled: {drift}" and rows[1]["low"] is not None
    for page in (html, markdown):
        assert f"Not settled: {drift}." in page, "no interval without a word"
    assert {row["unsettled"] for row in run_rows(judged.results)} == {
        "", "too short", "share of one +1.00e-2/s; 25 s", "backlog +2.05e3/s; 25 s"
    }  # fmt: skip


def test_times_of_what_ends_need_no_run_that_had_settled(tmp_path: Path) -> None:
    text = claims("all(share < 1)").replace("share('one')", "completion_s('one')")
    judged = judge(entry_of(tmp_path, text), DriftingStore(tmp_path, by_hand), repetitions=6)
    assert judged.verdicts[0].settling == ""
