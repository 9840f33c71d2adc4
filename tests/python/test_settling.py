"""Means over a run that had not settled are said to be that, and `--until-settled` goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fullpipe.cli import main  # noqa: F401 - the commands
from fullpipe.cli.app import app
from fullpipe.metrics.settling import of_stored, sentence, settled_summary, unsettled
from sweep_files import filled, sweep

#: The contest of the tutorial: CUBIC has two thirds in its first 30 s, and 43 % from 150 s on.
CONTEST = {
    "path": {"rate": "20mbit", "rtt": "40ms", "buffer": "4bdp"},
    "flow": [{"cc": "cubic"}, {"cc": "bbr3"}],
}


def _run(state: str, *drifts: tuple[str, float, float, float]) -> dict[str, Any]:
    return {**settled_summary("tested", None, drifts, 25.0), "state": state}


FALLS = ("share of cubic", 0.6, -0.0161, 0.001)
DRIFTS, STANDS = _run("not settled", FALLS), _run("no drift seen")


def test_a_sentence_says_what_drifts_how_fast_and_what_to_do() -> None:
    assert sentence([STANDS]) == "no drift seen in 25 s"
    assert sentence([DRIFTS]) == (
        "not settled: the share of cubic still falls by 0.016 a second; needs some 150 s"
    )
    rises = _run("not settled", ("goodput", 1e7, 2.5e5, 0.001))
    assert "the goodput still rises by 0.25 Mbit/s a second" in sentence([rises])
    assert sentence([DRIFTS] * 9 + [STANDS]).startswith("not settled in 9 of 10 runs: ")


def test_as_many_alarms_as_chance_gives_are_none() -> None:
    # Of ten runs that had settled two or more are flagged in 8.6 % of cases, three in 1.2 %.
    assert not unsettled([DRIFTS] * 2 + [STANDS] * 8)
    assert len(unsettled([DRIFTS] * 3 + [STANDS] * 7)) == 3
    assert sentence([DRIFTS] + [STANDS] * 9).endswith("1 of 10 runs drift, as chance may have it")


def test_a_run_that_cannot_be_tested_says_why() -> None:
    short = settled_summary("too short", 30.0, [], 5.0)
    assert sentence([short]) == ("too short to tell whether it had settled: 5 s of at least 30 s")
    changing = settled_summary("changing", None, [], 50.0)
    assert sentence([changing]).startswith("not tested for settling: flows or rates change")


def _invoke(*words: str) -> str:
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == 0, found.output
    return found.stdout


def test_the_tutorials_contest_is_flagged_in_nine_of_ten_seeds(tmp_path: Path) -> None:
    store, _ = filled(
        tmp_path / "store",
        sweep(
            scenario={
                **CONTEST, "duration": "30s", "warmup": "5s",
                "flow": [{"cc": "{cc}"}, {"cc": "bbr3"}],
            },
            axis={"cc": ["cubic"]}, sweep={"seeds": 10},
        ),
    )  # fmt: skip
    found = store.table("runs")["unsettled"].to_pylist()
    assert sum("share of cubic" in text for text in found) >= 9


@pytest.mark.usefixtures("without_page")
@pytest.mark.parametrize("command", ["run", "compare"])
def test_until_settled_goes_on_to_another_conclusion(tmp_path: Path, command: str) -> None:
    out = str(tmp_path / "out")
    if command == "compare":
        words = ["compare", "cubic", "bbr3", "--together", "--rate", "20mbit", "--rtt", "40ms",
                 "--buffer", "4bdp", "--repeat", "3"]  # fmt: skip
    else:
        file = tmp_path / "contest.toml"
        file.write_text(
            'duration = "30s"\nwarmup = "5s"\nflow = [{cc = "cubic"}, {cc = "bbr3"}]\n'
            'path = {rate = "20mbit", rtt = "40ms", buffer = "4bdp"}\n'
        )
        words = ["run", str(file), "--repeat", "3", "--no-report"]
    words += ["--out", out, "--json", "--until-settled"]
    found = json.loads(_invoke(*words))
    runs = found if command == "run" else found["runs"]["cubic + bbr3"]
    shares = [run["flows"][0]["share"] for run in runs]
    assert all(0.3 < share < 0.52 for share in shares), "above 0.6 in the first 30 s"
    assert not unsettled([run["settling"] for run in runs])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ""),
        (["", "", ""], ""),
        (["too short"] * 9 + ["changing"], ""),
        # One of ten: a false alarm of 5 % makes one or more in 40 % of such groups.
        (["share of cubic"] + [""] * 9, ""),
        # Three of ten: such alarms make as many in 1.2 %.
        (
            ["share of cubic", "backlog, share of cubic", "backlog"] + [""] * 7,
            "not settled in 3 of 10 runs: share of cubic, backlog",
        ),
    ],
)
def test_of_runs_in_a_store_more_must_drift_than_false_alarms_would(
    words: list[str], said: str
) -> None:
    assert of_stored(words) == said
