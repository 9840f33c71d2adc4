"""The hunt finds what is known to be bad, makes it simple, and finds the same again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fullpipe import cli
from fullpipe.engines.sim import SimEngine
from fullpipe.hunt.hunting import Finding, Hunt
from fullpipe.hunt.space import KNOBS, LOSS, badness, seconds_of
from fullpipe.hunt.trials import run_trials
from fullpipe.plan import resolve
from fullpipe.scenario import load_scenario
from fullpipe.sweep.file import read_sweep

_BUDGET = 3e6


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    return Hunt("cubic", "utilisation", 1, _BUDGET).run(["bbr1"])


def test_it_finds_that_random_loss_is_bad_for_cubic_and_not_for_bbrv1(
    findings: list[Finding],
) -> None:
    first = findings[0]
    assert "loss_percent" in first.needs
    assert first.value < 0.4
    assert first.others["bbr1"] > first.value + 0.3
    profile = first.profile["loss_percent"]
    assert profile[0] > 0.9 > 0.5 > profile[5]
    assert first.path["jitter_ms"] == 0


def test_the_same_seed_finds_the_same_whatever_runs_beside(findings: list[Finding]) -> None:
    assert Hunt("cubic", "utilisation", 1, _BUDGET, jobs=1).run(["bbr1"]) == findings


def test_the_scenario_that_it_leaves_gives_the_value_that_it_says(
    findings: list[Finding], tmp_path: Path
) -> None:
    (tmp_path / "found.toml").write_text(findings[0].toml)
    scenario = load_scenario(tmp_path / "found.toml")
    result = SimEngine().run(resolve(scenario), lambda _done: True, {})
    delivered = result.tables["queue_samples"].to_pylist()
    queue = [row for row in delivered if row["queue"] == "forward"]
    begin = [row for row in queue if row["t_us"] * 1000 <= scenario.warmup][-1]
    seconds = (scenario.duration - scenario.warmup) / 1e9
    sent = 8 * (queue[-1]["sent_bytes"] - begin["sent_bytes"])
    assert sent / seconds / scenario.path.rate == pytest.approx(findings[0].value, rel=0.02)


def test_a_knob_covers_its_range_and_leaves_an_ingredient_out() -> None:
    assert LOSS.at(0.0) == LOSS.at(0.29) == 0
    assert LOSS.at(0.3) == LOSS.low and LOSS.at(1.0) == LOSS.high
    for knobs in KNOBS.values():
        usual = {knob.name: knob.usual for knob in knobs}
        assert seconds_of(usual) == 18
    assert badness("utilisation", 0.2) > badness("utilisation", 0.9)
    assert badness("delay", 3.0) > badness("delay", 1.0)
    assert badness("loss", float("nan")) < 0


def test_trials_give_the_rows_of_each_cell_in_order() -> None:
    document = {
        "scenario": {
            "duration": "1s",
            "path": {"rate": "1mbit", "rtt": "20ms"},
            "flow": [{"cc": "{cc}"}],
        },
        "axis": {"cc": ["reno", "cubic"]},
    }
    found = run_trials(read_sweep(document, "test"), 2)
    assert [tables is not None and tables["path"].num_rows for tables in found] == [1, 1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cubic", "--worst", "luck"], "utilisation, starvation, delay, loss"),
        (["cubic", "--worst", "loss", "--budget", "soon"], "--budget"),
        (["nocc", "--worst", "loss"], "nocc"),
    ],
)
def test_bad_questions_are_refused(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fullpipe", "hunt", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
