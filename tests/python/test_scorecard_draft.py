"""The example test cases of draft-ietf-ccwg-bbr hold for our BBRv3, and fail for what breaks their
rules. Each case on its first path; `fullpipe scorecard bbr3 --only draft` runs all."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

import pytest

from fullpipe import cli
from fullpipe.authoring.new import write_new
from fullpipe.base.errors import UserError
from fullpipe.conformance.cases import DRAFT, cases_of
from fullpipe.conformance.measured_conditions import holds
from fullpipe.conformance.runner import Result, run_cases
from fullpipe.expr.language import ExpressionError
from fullpipe.sweep.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("scorecard") / "store", create=True)


def _run(store: Store, cc: str, *cases: int) -> list[Result]:
    chosen = [case for case in cases_of(DRAFT) if not cases or case.case in cases]
    return run_cases(cc, chosen, store, quick=True, jobs=2)


def test_every_case_of_the_draft_that_can_run_holds_for_bbr3(store: Store) -> None:
    results = _run(store, "bbr3")
    assert [found.case.id for found in results] == [f"draft-{n:02d}" for n in range(1, 23)]
    failing = {found.case.id: found.paths for found in results if found.holds is False}
    assert failing == {}
    assert all(found.why for found in results if found.holds is None)


@pytest.mark.parametrize(
    ("broken", "case"),
    [
        ("bbr3[full_bw_count=1]", 1),
        ("bbr3[drain_gain=0.9]", 3),
        ("bbr3[drain_max_rounds=0]", 4),
        ("bbr3[probe_rtt_interval_us=2000000]", 10),
        ("bbr3[min_pipe_cwnd=1,offload_quanta=0]", 14),
    ],
)
def test_a_bbr_that_breaks_a_rule_fails_its_case(store: Store, broken: str, case: int) -> None:
    (found,) = _run(store, broken, case)
    assert found.holds is False


def test_what_is_no_bbr_is_not_judged(store: Store) -> None:
    (found,) = _run(store, "cubic", 1)
    assert found.holds is None
    assert "phases" in found.why


@pytest.mark.slow
@pytest.mark.parametrize("published", ["max_bw", "min_rtt"])
def test_a_bbr_that_does_not_publish_its_estimates_is_not_judged(
    store: Store, tmp_path: Path, published: str
) -> None:
    place = write_new("silent", "bbr3", tmp_path)
    text, count = re.subn(rf"\n\tS\({published}, .*", "", place.read_text())
    assert count == 1
    place.write_text(text)
    results = run_cases(str(place), cases_of(DRAFT), store, quick=True, jobs=2)
    assert all(found.holds is None for found in results)
    assert all(published in found.why for found in results if not found.case.needs)


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit status of `fullpipe WORDS`."""
    monkeypatch.setattr(sys, "argv", ["fullpipe", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_json_has_the_promised_form(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("scorecard", "bbr3", "--only", "draft-14", "--json", "--quick", "--store")
    assert command(monkeypatch, *words, str(store.folder)) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert set(item) == {"id", "title", "holds", "measured", "command"}
    assert item["holds"] is True
    assert item["measured"]["least_cwnd"] >= 4
    assert item["command"] == "fullpipe scorecard bbr3 --only draft-14"


def test_an_unknown_item_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "scorecard", "bbr3", "--only", "draft-99") == 2
    assert "draft-99" in capsys.readouterr().err


def test_conditions_hold_what_is_measured_and_nothing_else() -> None:
    values = {"a": 1.5, "b": math.nan, "next": "down"}
    assert holds("1 <= a <= 2 and next == 'down'", values)
    assert not holds("b < 1", values) and not holds("b >= 1", values)
    assert not holds("next == 'up' or a - 1 > 1", values)
    for wrong in ("c == 1", "a + 1", "next < 3 + next"):
        with pytest.raises(ExpressionError):
            holds(wrong, values)


def test_a_broken_file_is_told_by_file_and_key(tmp_path: Path) -> None:
    text = 'id = "x"\ncase = 1\ntitle = "t"\nmeasure = "nothing"\n'
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(UserError, match=r"x\.toml: measure"):
        cases_of(DRAFT, tmp_path)


@pytest.mark.parametrize("condition", ["x < 1", "x != 1", "x >= 0 or 1 / zero > 0"])
def test_a_comparison_with_what_was_not_measured_is_false(condition: str) -> None:
    assert not holds(condition, {"x": float("nan"), "zero": 0.0})
