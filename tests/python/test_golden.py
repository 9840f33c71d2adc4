"""Runs do what they did: digests of all that some 150 runs record are kept in tests/data/golden."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fullpipe._native import KERNELS
from fullpipe.congestion.registry import cc_sets
from fullpipe.scenario.qdiscs.registry import DISCIPLINES
from golden import changes, current, kept
from golden_digests import Digest
from golden_runs import scenarios


def test_every_run_does_what_it_did() -> None:
    if found := changes(kept(), current()):
        pytest.fail(found, pytrace=False)


def test_the_runs_have_every_discipline_algorithm_and_kernel() -> None:
    text = "".join(str(one.document) for one in scenarios())
    names = (*DISCIPLINES, *cc_sets(), *KERNELS)
    missing = [name for name in names if f"'{name}'" not in text and f"'{name}[" not in text]
    assert not missing, "add a run to by_hand() in golden_runs.py"


BEFORE = Digest("p", {"flows": "a", "events": "b"}, "m", {"drops": 3, "events": 100})


def test_a_run_that_changed_is_told_with_its_tables_and_figures() -> None:
    after = replace(BEFORE, tables={"flows": "c", "events": "b"}, figures={"marks": 1, "events": 9})
    told = changes({"one": BEFORE, "other": BEFORE}, {"one": after, "other": BEFORE})
    assert "1 results that changed though their plans did not: one\n" in told
    assert "  one: flows: drops 3 -> 0; events 100 -> 9; marks 0 -> 1\n" in told
    assert "make golden" in told and "front end" not in told


def test_a_run_of_which_all_changed_is_told_in_two_words() -> None:
    after = replace(BEFORE, tables={"flows": "c", "events": "d"})
    told = changes({"one": BEFORE}, {"one": after})
    assert "  one: all tables: no figure moved\n" in told


def test_a_plan_that_changed_is_told_apart_from_the_engine() -> None:
    told = changes({"one": BEFORE}, {"one": replace(BEFORE, plan="q")})
    assert "1 plans that the front end resolves otherwise" in told
    assert "results" not in told


def test_a_result_that_changed_with_its_plan_is_told_apart_from_others() -> None:
    after = replace(BEFORE, plan="q", tables={"flows": "c", "events": "b"})
    told = changes({"one": BEFORE}, {"one": after})
    assert "1 results that changed with their plans: one\n  one: flows: " in told
    assert "though" not in told


def test_metrics_that_changed_are_told_apart_from_tables() -> None:
    told = changes({"one": BEFORE}, {"one": replace(BEFORE, metrics="n")})
    assert "  one: metrics alone, of the same tables (crates/fullpipe-metrics)\n" in told


def test_runs_that_come_and_go_are_told() -> None:
    told = changes({"one": BEFORE}, {"other": BEFORE})
    assert "1 runs that the file lacks: other\n1 runs that are no more: one\n" in told


def test_another_number_of_events_alone_is_no_change() -> None:
    assert changes({"one": BEFORE}, {"one": replace(BEFORE, figures={"drops": 3})}) == ""


def test_a_message_of_many_runs_stays_short() -> None:
    before = {str(n): BEFORE for n in range(500)}
    told = changes(before, {name: replace(BEFORE, tables={}) for name in before})
    assert told.count("\n") < 20
