"""Verdicts on values made by hand: what an expression means, and what becomes of a claim."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiment_entries import SMALL, MadeStore, claims, entry_of
from fullpipe.errors import UserError
from fullpipe.experiments import Verdict, judge
from fullpipe.experiments.agreement import agreement_page
from fullpipe.experiments.store import StoredRun


def by_hand(plan: Mapping[str, Any], text: str) -> float:
    """share: 0.2 at 2 Mbit/s, 0.4 at 4, plus the RTT in seconds, plus 0.01 for each further seed;
    goodput: the rate."""
    mbps = plan["path"]["rate_bps"] / 1e6
    if text == "goodput_mbps()":
        return mbps
    return 0.1 * mbps + plan["path"]["reverse_delay_ns"] / 1e9 + 0.01 * (plan["seed"] - 1)


def verdicts(folder: Path, text: str, repetitions: int | None = None) -> list[Verdict]:
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
    assert verdict.status == ("reproduced" if HOLDS[check] else "contradicted")


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
    # Each cell's mean of five values 0.01 apart has variance 2e-4 / 5; four cells are averaged.
    deviation = np.sqrt(2e-4 / 5 / 4)
    assert verdict.low == pytest.approx(0.335 - 1.96 * deviation, abs=6e-4)
    assert verdict.high == pytest.approx(0.335 + 1.96 * deviation, abs=6e-4)
    # Resamples below 0.33 are those 1.58 deviations down: 5.7 % of a normal distribution.
    assert verdict.support == pytest.approx(0.057, abs=0.03)
    assert verdict.status == "contradicted"


def test_a_median_over_runs_is_one(tmp_path: Path) -> None:
    text = claims("abs(mean(share[rate == 2, rtt == 10]) - 0.22) < 1e-9").replace(
        'title = "share of one"', 'title = "share of one"\nover_runs = "median"'
    )
    # Seeds 1 to 3: 0.21, 0.22, 0.23.
    assert verdicts(tmp_path, text, repetitions=3)[0].status == "reproduced"


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
    assert first.status == second.status == third.status == "not testable here"
    assert first.reason.startswith("not run: 4 of 4 cells")
    assert third.reason == "a Wi-Fi model"
    assert "--observed" in judge(entry, MadeStore(tmp_path, by_hand)).verdicts[1].reason


def test_nothing_to_measure_is_not_testable_rather_than_contradicted(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, claims("all(share < 0.5)", "all(goodput > 0)"))
    nothing = MadeStore(tmp_path, lambda _, text: float("nan") if "share" in text else 1.0)
    share, goodput = judge(entry, nothing).verdicts
    assert share.status == "not testable here"
    assert goodput.status == "reproduced"


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
    assert judge(entry, store, observed=[points]).verdicts[0].status == "reproduced"
    other = tmp_path / "other.csv"
    other.write_text("of,another,experiment\n1,2,3\n")
    assert judge(entry, store, observed=[other, points]).verdicts[0].status == "reproduced"
    assert judge(entry, store, observed=[other]).verdicts[0].status == "not testable here"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("r,t,s\n2,10,fast\n", "line 2: s: 'fast' is not a number"),
        ("r,t,s\n2,10,inf\n", "is not a number"),
        ("r,t,s\n2,10,1\n2,10,2\n", "lines 2, 3 all belong to"),
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
    assert [verdict.status for verdict in found.verdicts] == ["reproduced", "not testable here"]
    page = agreement_page(found)
    assert "3 of 4 cells have run on both engines" in page
    assert "| all | 3 | 0.015, 0.015 | 0.020, 0.020 |" in page
    assert "| 2 | 10 | 2 / 1 | 0.215 / 0.230 | 2.000 / 2.020 |  |" in page


def test_nothing_is_written_before_both_engines_ran(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, claims("all(share > 0)").replace("repetitions", COMPARED, 1))

    class OnlySim(MadeStore):
        def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
            """Runs of the simulator."""
            return super().read(key, expressions) if key.startswith("sim") else None

    assert agreement_page(judge(entry, OnlySim(tmp_path, by_hand))) == ""
