"""What changed between two scorecards, and which of it counts: on documents made by hand, whose
truth is known, and on runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from fullpipe.base.errors import UserError
from fullpipe.scorecard.change_markdown import markdown
from fullpipe.scorecard.change_texts import sentence, shown, worsening
from fullpipe.scorecard.changes import Comparison, check_seeds, compare, count_tests
from fullpipe.scorecard.comparing import Settings, run_against, run_alone
from fullpipe.scorecard.gate import Gate
from fullpipe.scorecard.items import Item, Measure, items
from fullpipe.scorecard.junit import junit
from fullpipe.scorecard.outcome import write_card
from fullpipe.sweep.store import Store

_SEEDS = 10


def _measure(
    name: str, better: str = "more", over: str = "mean", least: float = 0
) -> dict[str, Any]:
    return {"id": name, "title": f"the {name}", "unit": "", "better": better, "over": over,
            "least": least}  # fmt: skip


def _card(
    name: str, values: dict[str, Any], measures: dict[str, dict[str, Any]], **others: Any
) -> dict[str, Any]:
    """A document with one item a measure; `values`: measure -> cells x seeds."""
    found = [
        {"id": f"item-1.{place}", "cells": ["" for _ in values[key]], "not_run": "", "measures": [
            {**measure, "subjects": {name: {"values": values[key]}}}]}
        for place, (key, measure) in enumerate(measures.items())
    ]  # fmt: skip
    return {"format": 2, "scorecard": name, "engine": "sim", "quick": True, "overrides": [],
            "items": found, "failures": [], **others}  # fmt: skip


def _drawn(mean: float, seed: int, cells: int = 2) -> list[list[float]]:
    random = np.random.default_rng(seed)
    return [list(random.normal(mean, 0.01, size=_SEEDS)) for _ in range(cells)]


_TWO = {"rate": _measure("rate"), "delay": _measure("delay", "less")}


def _compared(rate: float = 1.0, delay: float = 1.0) -> tuple[dict[str, Any], Comparison]:
    before = _card("old", {"rate": _drawn(1, 1), "delay": _drawn(1, 2)}, _TWO)
    now = _card("new", {"rate": _drawn(rate, 3), "delay": _drawn(delay, 4)}, _TWO)
    return now, compare(before, now)


_ITEMS = [
    Item(id=f"item-1.{place}", source="", title="", measure=[
        Measure(id=name, title=name, column="path.utilisation", better=measure["better"])])
    for place, (name, measure) in enumerate(_TWO.items())
]  # fmt: skip


def test_a_worsening_is_told_with_its_direction_size_and_interval() -> None:
    _, comparison = _compared(rate=0.9, delay=0.8)
    assert [change.verdict for change in comparison.changes] == ["worse", "better"]
    rate, delay = comparison.changes
    assert rate.worse_low < 0.1 < rate.worse_high and rate.worse_low > 0.05
    assert rate.worse_by == pytest.approx((rate.before - rate.now) / rate.before)
    assert delay.worse_high < 0
    assert shown(rate.before) in sentence(rate) and worsening(rate) in sentence(rate)


def test_chance_and_what_is_too_small_to_count_are_not_told() -> None:
    _, comparison = _compared()
    assert {change.verdict for change in comparison.changes} == {"same"}
    exact = {"rate": [[1.0] * _SEEDS], "delay": [[1.0] * _SEEDS]}
    tiny = {"rate": [[0.991] * _SEEDS], "delay": [[1.2] * _SEEDS]}
    measures = {**_TWO, "delay": _measure("delay", "less", least=0.3)}
    found = compare(_card("a", exact, measures), _card("b", tiny, measures))
    assert {change.verdict for change in found.changes} == {"same"}
    assert all("too small to count" in sentence(change) for change in found.changes)


def test_what_is_printed_is_what_is_tested() -> None:
    """A worst cell is tested as such: its mean over seeds, not the mean of all cells."""
    cells = [[1.0] * _SEEDS, [0.5] * _SEEDS]
    worse = [[1.0] * _SEEDS, [0.4] * _SEEDS]
    measures = {"rate": _measure("rate", over="worst")}
    (change,) = compare(
        _card("a", {"rate": cells}, measures), _card("b", {"rate": worse}, measures)
    ).changes
    assert (change.before, change.now, change.verdict) == (0.5, 0.4, "worse")
    assert change.worse_by == pytest.approx(0.2)
    assert (change.worse_low > 0) == (change.verdict == "worse")


def test_downloads_that_no_longer_end_are_a_worsening() -> None:
    measures = {"time": _measure("time", "less")}
    ends = {"time": _drawn(5, 1, cells=1)}
    never = {"time": [["never"] * _SEEDS]}
    (change,) = compare(_card("a", ends, measures), _card("b", never, measures)).changes
    assert change.verdict == "worse"
    (same,) = compare(_card("a", never, measures), _card("b", never, measures)).changes
    assert same.verdict == "same"


def test_cells_without_a_value_are_left_out_of_both_and_said() -> None:
    measures = {"rate": _measure("rate")}
    whole = {"rate": [[1.0] * _SEEDS, [5.0] * _SEEDS]}
    holes = {"rate": [[1.0] * _SEEDS, [None] + [5.0] * (_SEEDS - 1)]}
    found = compare(_card("a", whole, measures), _card("b", holes, measures))
    assert [(c.verdict, c.before, c.cells_left_out) for c in found.changes] == [("same", 1.0, 1)]
    nothing = {"rate": [[None] * _SEEDS] * 2}
    found = compare(_card("a", whole, measures), _card("b", nothing, measures))
    assert not found.changes and "item-1.0.rate" in found.untested


def test_documents_that_were_not_made_alike_do_not_compare() -> None:
    now, _ = _compared()
    for key, other in (("quick", False), ("engine", "vm"), ("overrides", ["path.loss=1%"]),
                       ("until_settled", True)):  # fmt: skip
        with pytest.raises(UserError, match=key):
            compare({**now, key: other}, now)


def test_seeds_that_can_tell_nothing_are_refused() -> None:
    tests = count_tests([item for item in items() if not item.needs])
    assert tests > 50
    check_seeds(tests, 10, 10)
    with pytest.raises(UserError, match="9 each are needed"):
        check_seeds(tests, 3, 10)


@pytest.mark.parametrize(
    ("condition", "fails"),
    [
        ("item > 5%", True),
        ("item > 15%", False),
        ("item-1.0 > 5%", True),
        ("item-1.0 > 0.05 and item-1.1 > 5%", False),
        ("item-1.0.rate > 5 % or item-1.1.delay > 5 %", True),
        ("delay > 1%", False),
        ("rate > 1%", True),
    ],
)
def test_conditions_see_the_worsening_of_items_and_measures(condition: str, fails: bool) -> None:
    _, comparison = _compared(rate=0.9, delay=0.8)
    judged = Gate(_ITEMS, [condition]).judge(comparison)
    assert judged.is_worse == fails
    assert judged.holding == ((condition,) if fails else ())


@pytest.mark.parametrize(
    "condition",
    ["nothing > 5%", "other-1.7 > 5%", "item", "1 > 0", "item >", "item-1.0.delay > 1%",
     "item > 5% and (item > 1% or nothing > 2%)", "__import__('os') > 1"],
)  # fmt: skip
def test_a_condition_that_means_nothing_is_refused_before_anything_runs(condition: str) -> None:
    with pytest.raises(UserError, match="--fail-if"):
        Gate(_ITEMS, [condition])


def _allow(folder: Path, text: str) -> Path:
    file = folder / "allow.toml"
    file.write_text(text)
    return file


def test_an_accepted_worsening_does_not_fail_and_keeps_its_reason(tmp_path: Path) -> None:
    text = '[[allow]]\nitem = "item-1.0"\nreason = "traded for delay"\n'
    now, comparison = _compared(rate=0.9)
    assert Gate(_ITEMS).judge(comparison).is_worse
    judged = Gate(_ITEMS, [], _allow(tmp_path, text)).judge(comparison)
    assert not judged.is_worse
    assert [(change.id, why) for change, why in judged.accepted] == [
        ("item-1.0.rate", "traded for delay")
    ]
    assert "traded for delay" in markdown(now, comparison, judged)
    with_condition = Gate(_ITEMS, ["item > 5%"], _allow(tmp_path, text)).judge(comparison)
    assert not with_condition.is_worse


def test_an_entry_that_is_not_needed_is_told(tmp_path: Path) -> None:
    text = '[[allow]]\nitem = "item-1.1"\nmeasure = "delay"\nreason = "r"\n'
    _, comparison = _compared(rate=0.9)
    judged = Gate(_ITEMS, [], _allow(tmp_path, text)).judge(comparison)
    assert judged.is_worse
    assert [entry.item for entry in judged.unused] == ["item-1.1"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[allow]]\nitem = "item-1.0"\n', "reason"),
        ('[[allow]]\nitem = "item-1.0"\nreason = " "\n', "reason"),
        ('[[allow]]\nitem = "other"\nreason = "r"\n', "other"),
        ('[[allow]]\nitem = "item-1.0"\nmeasure = "delay"\nreason = "r"\n', "delay"),
        ('[[allowed]]\nitem = "item-1.0"\nreason = "r"\n', "allowed"),
        ("allow = 3\n", "allow"),
        ("[[", "not TOML"),
    ],
)
def test_a_broken_allow_list_is_told_by_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=rf"allow\.toml.*{said}"):
        Gate(_ITEMS, [], _allow(tmp_path, text))


def test_junit_counts_what_fails_is_accepted_or_broke(tmp_path: Path) -> None:
    now, comparison = _compared(rate=0.9, delay=1.1)
    allow = _allow(tmp_path, '[[allow]]\nitem = "item-1.1"\nreason = "<&\\u0001"\n')
    card = {**now, "failures": ["x.h:3: stopped"]}
    judged = Gate(_ITEMS, [], allow).judge(comparison)
    root = ElementTree.fromstring(junit(card, comparison, judged))
    first, second, runs = root.findall("testsuite")
    assert [first.get(key) for key in ("tests", "failures", "skipped")] == ["1", "1", "0"]
    assert "item-1.0.rate" in str(first.find("testcase/failure").get("message"))  # type: ignore[union-attr]
    assert [second.get(key) for key in ("tests", "failures", "skipped")] == ["1", "0", "1"]
    assert runs.find("testcase/error").get("message") == "x.h:3: stopped"  # type: ignore[union-attr]


def test_a_condition_is_a_test_of_its_own_in_junit() -> None:
    now, comparison = _compared(rate=0.9)
    judged = Gate(_ITEMS, ["item > 5%", "delay > 5%"]).judge(comparison)
    root = ElementTree.fromstring(junit(now, comparison, judged))
    suites = {suite.get("name"): suite for suite in root}
    assert suites["fail-if"].get("tests") == "2" and suites["fail-if"].get("failures") == "1"
    assert sum(int(suite.get("failures") or 0) for suite in root) == 1


def test_markdown_escapes_what_files_say_and_stays_below_githubs_limit() -> None:
    before = _card("old", {"rate": _drawn(1, 1), "delay": _drawn(1, 2)}, _TWO)
    name = "a|b<script>@all`[x](http://e)"
    now = _card(name, {"rate": _drawn(0.9, 3), "delay": _drawn(1, 4)}, _TWO,
                failures=["x" * 9000] * 30)  # fmt: skip
    comparison = compare(before, now)
    text = markdown(now, comparison, Gate(_ITEMS).judge(comparison))
    assert len(text) < 65536
    assert "<script>" not in text and "@all" not in text and "](http" not in text
    assert text.startswith("### fullpipe: worse")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("changes") / "store", create=True)


def _chosen() -> list[Item]:
    return [item for item in items() if item.id == "rfc9743-5.1.3"]


def test_a_variant_beside_itself_unchanged_has_columns_of_its_own(store: Store) -> None:
    settings = Settings(quick=True, jobs=2)
    card, comparison = run_against("cubic[beta=0.3]", "cubic", _chosen(), store, settings)
    assert card["subjects"] == ["cubic[beta=0.3]", "cubic"]
    assert (comparison.subject, comparison.baseline) == ("cubic[beta=0.3]", "cubic")
    assert "rfc9743-5.1.3.utilisation" in [change.id for change in comparison.of("worse")]
    _, same = run_against("cubic", "cubic", _chosen(), store, settings)
    assert {change.verdict for change in same.changes} == {"same"}


def test_an_earlier_out_is_a_baseline_and_a_broken_one_is_refused(
    store: Store, tmp_path: Path
) -> None:
    settings = Settings(quick=True, jobs=2)
    card = run_alone("cubic", _chosen(), store, settings)
    write_card(card, tmp_path)
    _, comparison = run_against("cubic[beta=0.3]", str(tmp_path), _chosen(), store, settings)
    assert comparison.of("worse")
    place = tmp_path / "scorecard.json"
    document = json.loads(place.read_text())
    (item,) = document["items"]
    for broken in (
        {**document, "format": 1},
        {**document, "items": [{**item, "measures": [{"id": "x"}]}]},
        {**document, "items": [{**item, "cells": []}]},
        {**document, "scorecard": "other"},
        [],
    ):
        place.write_text(json.dumps(broken))
        with pytest.raises(UserError, match=r"--baseline .*scorecard\.json"):
            run_against("cubic", str(tmp_path), _chosen(), store, settings)


def test_overrides_reach_every_item(store: Store) -> None:
    plain = run_alone("reno", _chosen(), store, Settings(quick=True, jobs=2))
    lossy = run_alone(
        "reno", _chosen(), store, Settings(quick=True, jobs=2, overrides=["path.loss=2%"])
    )
    used = [card["items"][0]["measures"][1]["subjects"]["reno"]["value"] for card in (plain, lossy)]
    assert used[1] < used[0] / 2
    assert "--set path.loss=2%" in lossy["items"][0]["command"]
