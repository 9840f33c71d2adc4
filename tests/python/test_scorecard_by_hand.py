"""Figures of scorecards, changes and gates, against values done by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from fullpipe.base.errors import UserError
from fullpipe.conformance.draft_measures import MEASURES
from fullpipe.conformance.measured_conditions import check, figures, holds
from fullpipe.conformance.paths import path_fields
from fullpipe.conformance.trajectory import Trajectory
from fullpipe.conformance.window_measures import WINDOW_MEASURES
from fullpipe.conformance.windows import Windows
from fullpipe.scorecard.beside_others import beside_others, number
from fullpipe.scorecard.card import summary
from fullpipe.scorecard.card_page import overview_place
from fullpipe.scorecard.change_markdown import MAX_FAILURES, markdown
from fullpipe.scorecard.change_texts import (
    conclusion,
    document,
    sentence,
    shown,
    shown_with_interval,
    worsening,
)
from fullpipe.scorecard.changes import Change, Comparison, check_seeds, compare, count_tests
from fullpipe.scorecard.gate import Gate
from fullpipe.scorecard.items import ALONE, SEEDS, Item, Measure, check_measures
from fullpipe.scorecard.junit import junit
from fullpipe.scorecard.values import Rows, values_of
from made_recordings import flow, of_a_link, recorded

NAN, INF = math.nan, math.inf


def measure(**more: Any) -> Measure:
    usual = {"id": "m", "title": "M", "column": "path.utilisation", "better": "more"}
    return Measure(**{**usual, **more})


def test_a_documents_numbers_are_never_null_or_finite() -> None:
    assert number("never") == INF and math.isnan(number(None)) and number(3) == 3
    assert [shown(v) for v in (None, "never", 0.12345, 999.4, 999.6, -1000, 1234.5)] == [
        "-", "never", "0.123", "999", "1e+03", "-1000", "1234",
    ]  # fmt: skip
    assert shown_with_interval({"value": 2, "low": 1.5, "high": 2.5}) == "2 ±0.5"
    assert shown_with_interval({"value": 2, "low": None, "high": 3}) == "2"


@pytest.mark.parametrize(
    ("mine", "better", "place"),
    [
        # Others have 10 and 20; a tenth below 10 is 9, a tenth above 20 is 22.
        (9, "less", "between"), (8.9, "less", "better"), (22, "less", "between"),
        (22.1, "less", "worse"), (8.9, "more", "worse"), (22.1, "more", "better"), (15, "more",
         "between"), (22.1, "", ""), (None, "more", ""), ("never", "less", "worse"),
    ],
)  # fmt: skip
def test_a_value_is_apart_by_more_than_a_tenth(mine: Any, better: str, place: str) -> None:
    subjects = {"a": {"value": mine}, "b": {"value": 10}, "c": {"value": 20}, "d": {"value": None}}
    assert beside_others({"better": better, "subjects": subjects}, "a") == place
    alone = {"better": better, "subjects": {"a": {"value": mine}, "d": {"value": None}}}
    assert beside_others(alone, "a") == ""


def test_a_summary_is_the_mean_of_cells_with_an_interval_over_seeds() -> None:
    # Cells by seeds: seeds have means 2, 3 and 7.
    found = summary(measure(), [[1.0, 2, 6], [3.0, 4, 8]])
    half = stats.t.ppf(0.975, 2) * np.std([2, 3, 7], ddof=1) / math.sqrt(3)
    assert found["value"] == 4
    assert (found["low"], found["high"]) == pytest.approx((4 - half, 4 + half), rel=1e-5)
    assert (found["worst"], found["worst_cell"], found["worst_seed"]) == (1, 0, 0)
    less = summary(measure(better="less"), [[1.0, 2, 6], [3.0, 4, 8]])
    assert (less["worst"], less["worst_cell"], less["worst_seed"]) == (8, 1, 2)
    harmed = summary(measure(harm=True), [[1.0, 2, 6], [3.0, 4, 8]])
    assert harmed["worst"] == 8


def test_a_summary_leaves_out_what_was_not_measured_and_keeps_what_never_ends() -> None:
    found = summary(measure(), [[1.0, NAN], [3.0, NAN]])
    assert (found["value"], found["low"], found["values"]) == (2, None, [[1, None], [3, None]])
    half = summary(measure(), [[1.0, NAN], [3.0, 5.0]])
    # All numbers have the mean 3; the seeds' means are 2 and 5.
    assert half["value"] == 3 and half["low"] == pytest.approx(3 - 12.7062047 * 1.5, rel=1e-5)
    assert half["worst"] == 1
    assert summary(measure(), [[NAN]])["value"] is None
    never = summary(measure(better="less"), [[1.0, INF]])
    assert (never["value"], never["low"], never["worst"]) == ("never", None, "never")
    assert summary(measure(over="worst"), [[1.0, 4.0]])["value"] == 1
    assert summary(measure(over="worst", better="less"), [[1.0, 4.0]])["value"] == 4
    values = [[float(n) for n in range(101)]]
    assert summary(measure(over="p5"), values)["value"] == 5
    assert summary(measure(over="p5", better="less"), values)["value"] == 95


def test_a_place_in_the_overview_counts_tolerances_from_the_median() -> None:
    values = {"a": 13.0, "b": 10.0, "c": 9.0}
    # A tolerance is a tenth of the median of 10; ten of them reach the end.
    assert overview_place(values, "a", "more") == pytest.approx(0.3)
    assert overview_place(values, "a", "less") == pytest.approx(-0.3)
    assert overview_place({**values, "a": 99.0}, "a", "more") == 1
    assert overview_place({**values, "a": 99.0}, "a", "less") == -1
    assert overview_place({**values, "a": INF}, "a", "less") == -1
    assert overview_place({**values, "a": NAN}, "a", "more") is None
    # The median of 0, 0 and 4 is 0: a tolerance is then a tenth of the largest.
    assert overview_place({"a": 4.0, "b": 0.0, "c": 0.0}, "a", "more") == 1
    assert overview_place({"a": -0.1, "b": 0.0, "c": 0.4}, "a", "more") == pytest.approx(-0.25)
    assert overview_place({"a": 0.0, "b": 0.0}, "a", "more") == 0


def rows(**flows: Any) -> Rows:
    listed = [
        {"flow": name, "share": value, "completion_s": value} for name, value in flows.items()
    ]
    path = {"utilisation": 0.9, "loss_ratio": 0.1, "mark_ratio": None}
    return Rows({"k": {"jain": 0.5}}, {"k": path}, {"k": listed})


def value(found: Measure, given: Rows, key: str = "k") -> float:
    cell: Any = SimpleNamespace(keys=[key])
    item: Any = None
    return values_of(item, found, [cell], None, given)[0][0]


def test_a_measure_of_a_run_by_hand() -> None:
    given = rows(a=0.2)
    assert value(measure(scale=100), given) == pytest.approx(90)
    assert value(measure(column="runs.jain"), given) == 0.5
    assert math.isnan(value(measure(column="path.mark_ratio"), given))
    assert math.isnan(value(measure(), given, "other"))
    # Sent over what was not lost.
    assert value(measure(column="path.offered"), given) == pytest.approx(1)
    lost = Rows({}, {"k": {"utilisation": 0.0, "loss_ratio": 1.0}}, {})
    assert math.isnan(value(measure(column="path.offered"), lost))


def test_a_measure_of_flows_is_of_its_group() -> None:
    given = Rows({}, {}, {"k": [
        {"flow": name, "share": share, "completion_s": None if share == 0.3 else share}
        for name, share in (("a", 0.1), ("a.1", 0.2), ("ab", 0.9), ("b", 0.6), ("a.2", 0.3))
    ]})  # fmt: skip

    def of(at: str, column: str = "flows.share", group: str = "a", **more: Any) -> float:
        return value(measure(column=column, group=group, at=at, **more), given)

    assert of("mean") == pytest.approx(0.2) and of("min") == 0.1 and of("max") == 0.3
    assert of("min_times_count") == pytest.approx(0.5)  # five flows in all
    assert of("p95") == pytest.approx(np.quantile([0.1, 0.2, 0.3], 0.95))
    assert of("mean", scale=10) == pytest.approx(2)
    assert math.isnan(of("mean", group="c"))
    assert of("mean", "flows.completion_s") == INF and of("p95", "flows.completion_s") == INF
    assert of("min", "flows.completion_s") == pytest.approx(0.1)
    assert of("mean", "flows.completion_s", group="b") == pytest.approx(0.6)


def test_one_in_twenty_downloads_may_never_end_in_a_95th_percentile() -> None:
    def of(ended: int, open_: int) -> float:
        flows = [{"flow": f"a.{n}", "completion_s": 1.0} for n in range(ended)]
        flows += [{"flow": f"a.x{n}", "completion_s": None} for n in range(open_)]
        found = measure(column="flows.completion_s", group="a", at="p95", better="less")
        return value(found, Rows({}, {}, {"k": flows}))

    assert of(39, 1) == 1 and of(18, 1) == INF


def test_harm_is_beside_the_same_seed_without_the_subject() -> None:
    path = {"k": {"utilisation": 0.6}, "l": {"utilisation": 0.3}, "m": {"utilisation": 0.8},
            "n": {"utilisation": 0.4}}  # fmt: skip
    cells: Any = [SimpleNamespace(keys=["k", "l"])]
    alone: Any = [SimpleNamespace(keys=["m", "n"])]
    item: Any = None
    found = values_of(item, measure(harm=True), cells, alone, Rows({}, path, {}))
    assert found[0] == pytest.approx([0.25, 0.25])
    less = values_of(item, measure(harm=True, better="less"), alone, cells, Rows({}, path, {}))
    assert less[0] == pytest.approx([0.25, 0.25])
    assert values_of(item, measure(), cells, alone, Rows({}, path, {}))[0] == [0.6, 0.3]


def card(values: Mapping[str, Sequence[Sequence[Any]]], **more: Any) -> dict[str, Any]:
    """A card with one measure; `values` by subject."""
    usual = {"id": "m", "title": "M", "unit": "ms", "better": "less", "over": "mean", "least": 0.0}
    one = {**usual, **more, "subjects": {name: {"values": v} for name, v in values.items()}}
    cells = [str(n) for n in range(len(next(iter(values.values()))))]
    item = {"id": "i", "cells": cells, "measures": [one], "not_run": ""}
    return {"format": 2, "engine": "sim", "quick": False, "overrides": [], "failures": [],
            "scorecard": next(iter(values)), "items": [item]}  # fmt: skip


OLD = [10.0 + n / 100 for n in range(10)]


def changed(now: Sequence[Sequence[Any]], old: Any = None, **more: Any) -> Change:
    found = card({"new": now, "old": old or [OLD] * len(now)}, **more)
    (one,) = compare(found, found, "old").changes
    return one


def test_a_change_is_the_shift_of_means_over_seeds_as_a_share() -> None:
    up = changed([[v * 1.2 for v in OLD]])
    assert (up.verdict, up.before, up.now) == (
        "worse",
        pytest.approx(10.045),
        pytest.approx(12.054),
    )
    assert up.worse_by == pytest.approx(0.2) and up.worse_low < 0.2 < up.worse_high
    assert up.seeds == (10, 10) and up.id == "i.m" and up.title == "M"
    assert changed([[v * 0.8 for v in OLD]]).verdict == "better"
    more = changed([[v * 0.8 for v in OLD]], better="more")
    assert more.verdict == "worse" and more.worse_by == pytest.approx(0.2)
    assert more.worse_low < 0.2 < more.worse_high and more.worse_low > 0
    assert changed([[v * 1.2 for v in OLD]], better="more").verdict == "better"


def test_a_change_counts_from_a_hundredth_on_and_from_the_least() -> None:
    assert changed([[v + 0.1 for v in OLD]]).verdict == "same"  # below 1 % of 10.045
    assert changed([[v + 0.11 for v in OLD]]).verdict == "worse"
    assert changed([[v + 2 for v in OLD]], least=2.01).verdict == "same"
    assert changed([[v + 2 for v in OLD]], least=1.99).verdict == "worse"
    # With two seeds no change is told from chance.
    assert changed([[20.0, 21.0]], [[10.0, 11.0]]).verdict == "same"


def test_figures_of_a_seed_are_means_worst_or_p5_over_cells() -> None:
    now = [[v + 1 for v in OLD], [v + 3 for v in OLD]]
    assert changed(now).now == pytest.approx(12.045)
    assert changed(now, over="worst").now == pytest.approx(13.045)
    assert changed(now, over="worst", better="more").now == pytest.approx(11.045)
    assert changed(now, over="p5").now == pytest.approx(11.045 + 0.95 * 2)
    assert changed(now, over="p5", better="more").now == pytest.approx(11.045 + 0.05 * 2)
    assert changed(now, over="worst").title == "M (of each seed, averaged)"


def test_cells_that_one_lacks_are_left_out_of_both_and_never_counts_twice_the_longest() -> None:
    now = [[v + 2 for v in OLD], [None, *OLD[1:]]]
    found = changed(now)
    assert found.cells_left_out == 1 and found.now == pytest.approx(12.045)
    never = changed([["never", *OLD[1:]]])
    # 9 of the old and 20.18, twice the longest of both.
    assert never.now == pytest.approx((sum(OLD[1:]) + 2 * 10.09) / 10)
    both = card({"new": [[None]], "old": [[1.0]]})
    assert compare(both, both, "old").untested == {
        "i.m": "no cell in which every run of both has a value"
    }
    zero = changed([[1.0] * 10], [[0.0] * 10])
    assert zero.worse_by == INF and worsening(zero) == "from 0"
    same = changed([[0.0] * 10], [[0.0] * 10])
    assert (same.worse_by, same.verdict, worsening(same)) == (0, "same", "0 %")


def test_cards_that_were_made_otherwise_do_not_compare() -> None:
    one = card({"new": [OLD], "old": [OLD]})
    for key, other in (("engine", "vm"), ("quick", True), ("overrides", ["a"]), ("format", 1)):
        with pytest.raises(UserError, match=f"its {key} is"):
            compare({**one, key: other}, one)
    other = card({"new": [OLD, OLD]})
    assert compare(other, one).untested == {"i.m": "the baseline has other cells"}
    assert compare(one, one).baseline == "new (baseline)"
    unjudged = card({"new": [OLD], "old": [OLD]}, better="")
    assert compare(unjudged, unjudged, "old").changes == ()


def test_seeds_must_be_able_to_tell_a_change() -> None:
    # 5 and 5 have 252 divisions: p is 2/252 = 0.0079; 4 and 4 have 70: 0.0286.
    check_seeds(1, 5, 5)
    with pytest.raises(UserError, match="5 each are needed"):
        check_seeds(1, 4, 4)
    with pytest.raises(UserError, match="6 each are needed"):
        check_seeds(2, 5, 5)
    check_seeds(0, 5, 5)


def item(**more: Any) -> Item:
    measures = [measure(), measure(id="n", better=""), measure(id="o", better="less")]
    usual = {"id": "rfc9743-5.1", "source": "RFC 9743", "title": "T", "measure": measures}
    return Item(**{**usual, **more})


def change(**more: Any) -> Change:
    usual = {"item": "rfc9743-5.1", "measure": "m", "title": "M", "unit": "ms", "verdict": "worse",
             "before": 10.0, "now": 11.0, "worse_by": 0.1, "worse_low": 0.05, "worse_high": 0.15,
             "seeds": (10, 10)}  # fmt: skip
    return Change(**{**usual, **more})


def comparison(*changes: Change) -> Comparison:
    return Comparison("old", "new", changes, {"rfc9743-5.1.z": "why"})


def test_tests_are_counted_by_measures_that_are_judged() -> None:
    assert count_tests([item(), item(needs="something")]) == 2


@pytest.mark.parametrize(
    ("text", "shut"),
    [
        ("item > 9%", True), ("item > 10%", False), ("item >= 10%", True),
        ("rfc9743-5.1 > 0.05", True), ("rfc9743-5.1.m > 5%", True), ("rfc9743-5.1.o > 0", False),
        ("m > 9% and o == 0", True), ("o > 0", False), ("item < 5%", False),
    ],
)  # fmt: skip
def test_a_condition_sees_the_largest_worsening(text: str, shut: bool) -> None:
    better = change(measure="o", verdict="better", worse_by=-0.3)
    judged = Gate([item()], [text]).judge(comparison(change(), better))
    assert judged.is_worse is shut and judged.failing == ()
    assert judged.holding == ((text,) if shut else ())


def test_without_conditions_every_worsening_counts_unless_accepted(tmp_path: Path) -> None:
    allow = tmp_path / "allow.toml"
    allow.write_text('[[allow]]\nitem = "rfc9743-5.1"\nmeasure = "m"\nreason = "known"\n'
                     '[[allow]]\nitem = "rfc9743-5.1"\nmeasure = "o"\nreason = "r"\n')  # fmt: skip
    one, other = change(), change(measure="o", worse_by=0.4)
    same = change(measure="o", verdict="same", worse_by=0.9)
    judged = Gate([item()]).judge(comparison(one, other))
    assert judged.failing == (other, one) and judged.is_worse  # the largest first
    kept = Gate([item()], allow=allow).judge(comparison(one, same))
    assert not kept.is_worse and kept.accepted == ((one, "known"),)
    assert [entry.measure for entry in kept.unused] == ["o"]
    shut = Gate([item()], ["item > 30%"], allow).judge(comparison(one, other))
    assert not shut.is_worse
    for bad in ("x > 1", "1 > 0", "item", "n > 0"):
        with pytest.raises(UserError):
            Gate([item()], [bad])
    allow.write_text('[[allow]]\nitem = "rfc9743-5.1"\nmeasure = "n"\nreason = "r"\n')
    with pytest.raises(UserError, match="has no measure 'n'"):
        Gate([item()], allow=allow)


def test_a_change_in_words() -> None:
    assert worsening(change()) == "+10 % (+5 to +15)"
    assert worsening(change(worse_by=0.0432)) == "+4.3 % (+5 to +15)"
    assert worsening(change(worse_low=-INF)) == "+10 % (? to +15)"
    assert sentence(change()).endswith("M: 10 ms -> 11 ms, worse by +10 % (+5 to +15)")
    better = change(verdict="better", worse_by=-0.1, worse_low=-0.15, worse_high=-0.05)
    assert sentence(better).endswith("better by +10 % (+5 to +15)")
    small = change(verdict="same", worse_by=0.005, worse_low=0.004, worse_high=0.006)
    assert "too small to count: worse by +0.5 %" in sentence(small)
    assert "not told from chance" in sentence(change(verdict="same", worse_low=-0.1))
    assert "not told from chance" in sentence(change(verdict="same", worse_low=0.0))


def test_a_comparison_as_json_markdown_and_junit() -> None:
    one = change()
    made = comparison(one, change(measure="o", verdict="same", worse_by=INF))
    judged = Gate([item()]).judge(made)
    assert conclusion(made, judged) == (
        "new beside old: of 2 measures 1 worse, 0 better, 1 not changed"
    )
    found = document(made, judged)
    assert found["changes"][1]["worse_by"] is None and found["failing"] == ["rfc9743-5.1.m"]
    assert found["is_worse"] is True and found["level"] == 0.01 and found["fail_if"] == []
    shown_card = {"failures": ["f"] * (MAX_FAILURES + 2), "items": [
        {"id": "rfc9743-5.1", "not_run": ""}, {"id": "x", "not_run": "a lab"}]}  # fmt: skip
    text = markdown(shown_card, made, judged)
    assert text.startswith("### fullpipe: worse\n") and "- and 2 more runs failed" in text
    fine = Gate([item()]).judge(comparison())
    assert markdown({"failures": [], "items": []}, comparison(), fine).startswith(
        "### fullpipe: not worse"
    )
    root = ElementTree.fromstring(junit(shown_card, made, judged).partition("-->")[2])
    kinds = ("tests", "failures", "errors", "skipped")
    counts = {suite.get("name"): tuple(suite.get(kind) for kind in kinds)
              for suite in root}  # fmt: skip
    assert counts["rfc9743-5.1"] == ("3", "1", "0", "1") and counts["x"] == ("1", "0", "0", "1")
    assert counts["runs"] == ("1", "0", "1", "0")


def test_conditions_on_what_did_not_happen_are_false() -> None:
    values = {"a": 1.0, "b": NAN, "c": "drain", "d": True}
    for text, expected in {
        "a < 2": True, "b < 2": False, "b > 2": False, "b != 2": False, "c == 'drain'": True,
        "c != 1": False, "c < 1": False, "a == 1 and c == 'up'": False, "d == True": True,
    }.items():  # fmt: skip
        assert holds(text, values) is expected, text
    assert figures("a < 2 and b > 1 and c == 'x' and d == True", values) == (
        "a 1, b nan, c drain, d True"
    )
    check("a < 1", ["a"])
    for bad, known in (("a", None), ("a + 1", None), ("z < 1", ["a"]), ("a < 1 or z < 1", ["a"])):
        with pytest.raises(UserError):
            check(bad, known)


def test_the_fields_of_a_path_by_hand() -> None:
    # 12.112 Mbit/s are 1000 frames of 1514 B a second; 40 ms hold 40 of them.
    found = path_fields("12.112mbit 40ms", "case")
    assert (found["rate_mbit"], found["rtt_ms"], found["half_ms"]) == (12.112, 40, 20)
    assert (found["bdp"], found["deep"], found["short"], found["sample_ms"]) == (40, 400, 8, 1)
    assert found["seldom"] == pytest.approx(100 / (40 * 40), abs=1e-6)
    round_s, doublings = 0.08, math.log2(4) + 1
    startup = (doublings + 16) * round_s
    assert found["startup_s"] == pytest.approx(startup, abs=1e-3)
    assert found["probe_rtt_s"] == 7
    assert found["down_s"] == pytest.approx(startup + 4 * (3.2 + 90 * 0.04), abs=1e-3)
    cycle = min(3.2, 66 * round_s) + 16 * round_s
    assert found["long_s"] == pytest.approx(startup + 2 * cycle, abs=1e-3)
    slow = path_fields("121.12kbit 10ms", "case")
    # 10 frames a second: the initial window takes 1 s.
    assert slow["bdp"] == 0.1 and slow["startup_s"] == pytest.approx((1 + 16) * 2)
    assert (slow["deep"], slow["short"], slow["sample_ms"]) == (201, 4, 1)
    assert slow["seldom"] == pytest.approx(0.1)
    assert path_fields("10mbit 400ms", "c")["probe_rtt_s"] == pytest.approx(8.7)
    assert path_fields("10mbit 400ms", "c")["sample_ms"] == 10
    with pytest.raises(UserError):
        path_fields("10mbit", "case")


def test_an_item_runs_its_subject_or_nobody() -> None:
    scenario = {"duration": "1s", "path": {"rate": "{rate}", "rtt": "20ms"},
                "flow": [{"cc": "cubic", "name": "other"},
                         {"cc": "{cc.name}", "name": "own", "count": "{cc.n}"}]}  # fmt: skip
    one = item(scenario=scenario, axis={"rate": ["5mbit", "9mbit"]},
               quick={"axis": {"rate": ["5mbit"]}, "seeds": 3})  # fmt: skip
    runs = one.runs("bbr3", False, "sim")
    assert runs.seeds.least == SEEDS == 10
    points = list(runs.points())
    assert len(points) == 2 and points[0]["cc"] == {"label": "bbr3", "name": "bbr3", "n": 1}
    nobody = next(one.runs(ALONE, False, "sim").points())
    assert nobody["cc"] == {"label": ALONE, "name": "cubic", "n": 0}
    quick = one.runs("bbr3", True, "sim")
    assert quick.seeds.least == 3 and len(list(quick.points())) == 1
    assert one.runs("bbr3", True, "sim", seeds=7).seeds.least == 7
    assert one.is_of(None) and one.is_of("rfc9743") and one.is_of("rfc9743-5.1")
    assert not one.is_of("rfc97") and not one.is_of("rfc9743-5") and not one.harms
    assert item(measure=[measure(harm=True)]).harms
    for bad in (
        {"column": "z.utilisation"}, {"column": "path.z"}, {"group": "a"},
        {"column": "flows.share"}, {"harm": True, "better": ""},
    ):  # fmt: skip
        with pytest.raises(UserError):
            check_measures([measure(**bad)], "here")


#: Samples a second of a path of 12.112 Mbit/s and 100 ms: a BDP of 100 frames.
RTT_US = 100_000


def windows(path: Path, cwnd: Sequence[float], every_us: int = RTT_US, **more: Any) -> Windows:
    plan = of_a_link()
    route = {**plan["path"], "rate_bps": 12_112_000, "reverse_delay_ns": RTT_US * 1000}
    medium = {**plan["links"][0]["medium"], "forward": {"rate_bps": 12_112_000, "qdisc": {}}}
    plan = {**plan, "path": route, "links": [{"name": "path", "medium": medium}],
            "duration_ns": 10**12}  # fmt: skip
    columns = {"srtt_us": [RTT_US] * len(cwnd), **more}
    listed = [
        {"t_us": (n + 1) * every_us, "flow_id": 0, "cwnd_packets": window, "bytes_delivered": 0,
         **{name: values[n] for name, values in columns.items()}}
        for n, window in enumerate(cwnd)
    ]  # fmt: skip
    row = flow(0, timeouts=more.pop("timeouts", 0), undos=0)
    return Windows(recorded(path, plan=plan, flows=[row], flow_samples=listed).recording)


def test_a_reduction_is_a_fall_below_95_of_100_of_the_last_peak(tmp_path: Path) -> None:
    # Settled 2.5 round trips after the first sample below: three samples later.
    found = windows(tmp_path, [50, 100, 96, 95, 90, 70, 70, 71, 72, 80, 100, 50, 50])
    assert found.bdp == pytest.approx(12_112_000 * 0.1 / 8 / 1514)
    (one,) = found.reductions
    assert (one.at, one.settled, one.before, one.after) == (2, 5, 100, 70)
    assert windows(tmp_path / "b", [100, 95, 95, 95, 95, 95]).reductions == []
    assert len(windows(tmp_path / "c", [100, 94, 94, 94, 94, 94]).reductions) == 1
    assert found.window_at(0.25) == pytest.approx(98) and math.isnan(found.window_at(99))


def test_measures_of_windows_by_hand(tmp_path: Path) -> None:
    saw = [
        10,
        20,
        40,
        *[20, 20, 20, 20, 22, 24, 26, 28, 30],
        *[15, 15, 15, 15, 17, 19, 23, 27, 30],
    ]
    saw += [15, 15, 15, 15, 15]
    found = windows(tmp_path, saw, packets_delivered=range(len(saw)))
    assert [(r.at, r.before, r.after) for r in found.reductions] == [
        (3, 40, 20), (12, 30, 15), (21, 30, 15),
    ]  # fmt: skip
    decrease = WINDOW_MEASURES["decrease"](found)
    assert decrease == {"reductions": 2, "share": 0.5, "least": 0.5, "most": 0.5}
    growth = WINDOW_MEASURES["growth"](found)
    # From settled (15) to the next reduction (21) half is 18: 15, 17, 19, 23 | 23 -> 30 at 20.
    assert growth["intervals"] == 1
    assert growth["early"] == pytest.approx((found.cwnd[18] - found.cwnd[15]) / 3)
    assert growth["per_round"] == pytest.approx((found.cwnd[20] - found.cwnd[18]) / 2)
    slow = WINDOW_MEASURES["slow_start"](found)
    assert (slow["initial"], slow["factor"], slow["reached"]) == (10, 2, 40)


def test_the_response_to_random_loss_is_that_of_the_formulas(tmp_path: Path) -> None:
    # 8 samples: the last three quarters count, 600 delivered, 6 lost.
    lost = [0, 1, 1, 2, 3, 4, 5, 7]
    delivered = [0, 50, 100, 200, 300, 400, 500, 700]
    found = WINDOW_MEASURES["response"](
        windows(
            tmp_path, [9, 9, 20, 22, 24, 22, 20, 24], packets_lost=lost, packets_delivered=delivered
        )
    )
    p = 6 / 606
    assert found["loss"] == pytest.approx(p) and found["window"] == pytest.approx(22)
    # AIMD(1, 1/2): sqrt(1.5 / p). RFC 9438, section 5.1:
    # (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4).
    assert found["over_aimd"] == pytest.approx(22 / math.sqrt(1.5 / p))
    cubic = (0.4 * 3.7 / (4 * 0.3)) ** 0.25 * (0.1 / p) ** 0.75
    assert found["over_cubic"] == pytest.approx(22 / cubic)


def test_late_losses_and_timeouts_by_hand(tmp_path: Path) -> None:
    cwnd = [40.0] * 10 + [20.0] * 5 + [40.0] * 3 + [28.0] * 30
    late = windows(tmp_path, cwnd, packets_lost=[0] * 10 + [3] * 10 + [5] * 28)
    found = WINDOW_MEASURES["one_reduction"](late)
    # The last 25 round trips of 48 begin at sample 22.
    assert found == {
        "lost": 0,
        "reductions": 0,
        "timeouts": 0,
        "share": pytest.approx(NAN, nan_ok=True),
    }
    soon = windows(tmp_path / "b", cwnd[:40], packets_lost=[0] * 10 + [3] * 8 + [5] * 22)
    found = WINDOW_MEASURES["one_reduction"](soon)
    assert (found["lost"], found["reductions"]) == (2, 1) and found["share"] == pytest.approx(0.7)
    out = windows(tmp_path / "c", [10, 20, 1, 2, 4])
    out.timeouts = 1.0
    assert WINDOW_MEASURES["timeout"](out) == {"timeouts": 1, "window": 1, "grows": 1}
    out.timeouts = 0.0
    assert WINDOW_MEASURES["timeout"](out) == {"timeouts": 0}


def test_cubics_window_after_a_reduction_by_rfc_9438(tmp_path: Path) -> None:
    # W_max 10,000, beta 0.7: K = cbrt(3000 / 0.4) = 19.57 s, from a round trip after the fall on.
    k, start = (3000 / 0.4) ** (1 / 3), 2.2
    times = [(n + 1) / 10 for n in range(250)]
    cwnd = [round(10_000 if t <= 2 else 10_000 + 0.4 * (max(t, start) - start - k) ** 3)
            for t in times]  # fmt: skip
    found = WINDOW_MEASURES["cubic"](windows(tmp_path, cwnd))
    # The first reduction has none before it, so that nothing says that W_max has fallen.
    assert found["epochs"] == 1 and found["plateau"] == pytest.approx(1, abs=1e-3)
    assert found["quarter"] == pytest.approx(0, abs=0.1)
    assert found["half"] == pytest.approx(0, abs=0.1)


def trajectory(path: Path, phases: Sequence[str], **more: Sequence[Any]) -> Trajectory:
    """A sample each 100 ms; 12.112 Mbit/s carry 11.584 of payload, 100 ms hold 100 packets."""
    plan = of_a_link()
    route = {**plan["path"], "rate_bps": 12_112_000, "reverse_delay_ns": RTT_US * 1000}
    forward = {"rate_bps": 12_112_000, "qdisc": {}}
    medium = {**plan["links"][0]["medium"], "forward": forward}
    plan = {**plan, "path": route, "access": {"mtu_bytes": 1500}, "duration_ns": 10**12,
            "links": [{"name": "path", "medium": medium}]}  # fmt: skip
    count = len(phases)
    own = {"round_count": range(count), "max_bw_bps": [11_584_000] * count,
           "pacing_gain": [1.0] * count,
           "min_rtt_us": [RTT_US] * count, "extra_acked_packets": [0] * count}  # fmt: skip
    of_flow = {"cwnd_packets": [200] * count, "inflight_packets": [100] * count,
               "packets_lost": [0] * count, "pacing_rate_bps": [11_584_000] * count,
               "bytes_delivered": [144_800 * n for n in range(count)]}  # fmt: skip
    for name, given in more.items():
        (own if name in own or name.startswith(("bw_", "inflight_l", "inflight_s")) else of_flow)[
            name
        ] = given
    tables = {
        name: [{"t_us": (n + 1) * RTT_US, "flow_id": 0, **{k: v[n] for k, v in columns.items()}}
               for n in range(count)]
        for name, columns in (("cc_samples", {"phase": phases, **own}), ("flow_samples", of_flow))
    }  # fmt: skip
    row = flow(0, timeouts=1, undos=2, recoveries=3)
    return Trajectory(recorded(path, plan=plan, flows=[row], **tables).recording)


def test_a_trajectory_by_hand(tmp_path: Path) -> None:
    t = trajectory(tmp_path, ["startup", "startup", "drain", "up", "up", "startup"])
    assert (t.bdp, t.mss_bytes, t.payload) == (pytest.approx(100), 1448, 1448 / 1514)
    assert [(v.phase, v.first, v.last, v.next) for v in t.visits] == [
        ("startup", 0, 1, "drain"), ("drain", 2, 2, "up"), ("up", 3, 4, "startup"),
        ("startup", 5, 5, ""),
    ]  # fmt: skip
    second, third = t.visit("startup", 2), t.visit("startup", 3)
    assert second is not None and second.first == 5 and third is None and t.visit("down") is None
    up = t.visit("up")
    assert up is not None and (t.rounds(up), t.seconds(up)) == (2, pytest.approx(0.2))
    assert t.rounds(second) == 0 and t.estimate(0) == pytest.approx(1)
    assert t.estimate(0, 24_224_000) == pytest.approx(0.5)
    assert t.bdp_packets(0) == 100 and t.target_packets(0) == 100
    # 11.584 Mbit/s >> 10 / 8 are 1414 B: less than a packet, so 2.
    assert t.burst_packets(0) == 2 and t.utilisation(0, 3) == pytest.approx(1)
    assert math.isnan(t.utilisation(2, 2)) and (t.at(0.25), t.at(0.3), t.at(9)) == (2, 2, 5)
    assert (t.undos, t.recoveries, t.timeouts, t.has_estimates) == (2, 3, 1, True)
    fast = trajectory(tmp_path / "b", ["up"] * 2, pacing_rate_bps=[10**9, 10**8])
    assert fast.burst_packets(0) == 45 and fast.burst_packets(1) == 8  # 65,215 B; 12,207 B
    assert fast.target_packets(0) == 135


def test_measures_of_the_drafts_cases_by_hand(tmp_path: Path) -> None:
    phases = (
        ["startup"] * 4 + ["drain"] * 2 + ["down", "cruise", "refill", "up", "up", "down", "cruise"]
    )
    bw = [2, 4, 4.9, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6]
    t = trajectory(
        tmp_path, phases, max_bw_bps=[round(v * 1e6) for v in bw],
        packets_lost=[0, 0, 2, 5, *[5] * 6, 6, 9, 9],
        inflight_packets=[50, 80, 100, 130, 140, 90, *[60] * 7],
        inflight_longterm_packets=[None] * 9 + [100, 90, 70, 70],
    )  # fmt: skip
    plateau = MEASURES["startup_plateau"](t)
    assert (plateau["next"], plateau["rounds"], plateau["lost"]) == ("drain", 4, 5)
    # Rounds 1 to 4 have 4, 4.9, 5, 5: after 4 none grows by a quarter but 5 = 1.25 x 4.
    assert plateau["flat_rounds"] == 1 and plateau["estimate"] == pytest.approx(5 / 11.584)
    loss = MEASURES["startup_loss"](t)
    assert (loss["before_rounds"], loss["exit_rounds"]) == (2, 2)
    assert loss["loss"] == pytest.approx(5 / 80) and loss["longterm"] == INF
    drain = MEASURES["drain"](t)
    # 5 Mbit/s x 100 ms are 43.2 packets, rounded up to 44.
    assert drain["last_inflight_over_target"] == pytest.approx(90 / 44)
    assert drain["exit_inflight_over_target"] == pytest.approx(60 / 44)
    assert drain["exit_excess_bursts"] == pytest.approx((60 - 44) / 2) and drain["rounds"] == 2
    up = MEASURES["up"](t)
    assert (up["rounds"], up["lost"], up["next"]) == (2, 4, "down")
    assert up["growth"] == pytest.approx(1.2) and up["peak_over_bdp"] == pytest.approx(0.6)
    up_loss = MEASURES["up_loss"](t)
    assert (up_loss["before_rounds"], up_loss["exit_rounds"], up_loss["lost"]) == (1, 1, 4)
    assert up_loss["cut"] == pytest.approx(70 / 100) and up_loss["longterm_before"] == 100
    # 6 Mbit/s: 52 packets.
    assert up_loss["beta_target"] == pytest.approx(0.7 * 52)
    down = MEASURES["down"](t)
    assert down["rounds_at_most"] == 52 and down["seconds"] == pytest.approx(0.1)
    assert down["exit_inflight_over_limit"] == pytest.approx(60 / min(52, 0.85 * 70))
    ends = MEASURES["app_limited"](t)
    assert (ends["startup_ends"], ends["up_ends"], ends["lost_after_startup"]) == (
        "drain",
        "down",
        4,
    )
    assert (ends["startup_rounds"], ends["up_rounds"]) == (4, 2)


def test_probe_rtt_and_policers_by_hand(tmp_path: Path) -> None:
    phases = ["cruise"] * 3 + ["probe_rtt"] * 2 + ["cruise"] * 7
    cwnd = [200] * 3 + [60, 55] + [200] * 7
    t = trajectory(tmp_path, phases, cwnd_packets=cwnd, packets_lost=[0] * 8 + [2] * 4)
    found = MEASURES["probe_rtt"](t)
    assert (found["previous"], found["next"], found["rounds"]) == ("cruise", "cruise", 2)
    assert found["after_s"] == pytest.approx(0.3) and found["seconds"] == pytest.approx(0.2)
    assert found["cwnd_over_half_bdp"] == pytest.approx(55 / 50)
    assert found["resumes"] == pytest.approx(1)
    policed = MEASURES["policer"](t)
    # Half of 1.2 s is the sample at 0.6 s: 600 packets and 2 lost from there on.
    assert policed["loss"] == pytest.approx(2 / 602) and policed["first_loss_s"] == pytest.approx(
        0.9
    )
    assert policed["shortterm_set"] is False and policed["utilisation"] == pytest.approx(1)
    tiny = MEASURES["tiny"](t)
    assert (tiny["least_cwnd"], tiny["lost"], tiny["pacing"]) == (200, 2, pytest.approx(1))
    assert tiny["utilisation"] == pytest.approx(1)
    cruise = MEASURES["aggregation_cruise"](t)
    assert cruise["utilisation"] == pytest.approx(1)
    assert cruise["cwnd_beyond_2_bdp"] == pytest.approx(0) and cruise["full"] == 0
