"""Means over a run that had not settled are said to be that, and `--until-settled` goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fullpipe.base.errors import UserError
from fullpipe.base.lengthening import longer
from fullpipe.cli import main  # noqa: F401 - the commands
from fullpipe.cli.app import app
from fullpipe.metrics.settling import (
    CellsSettled,
    goes_on,
    of_cells,
    of_stored,
    sentence,
    settled_summary,
    stored_summary,
    unsettled,
)
from fullpipe.sweep.query import ask
from fullpipe.sweep.running import Shard
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


def test_a_group_is_too_short_where_half_of_its_runs_are() -> None:
    short = settled_summary("too short", 87.3, [], 25.0)
    assert sentence([short, STANDS]) == (
        "too short to tell whether it had settled: 25 s of at least 87 s"
    )
    assert goes_on([short, STANDS]) and not goes_on([short, STANDS, STANDS])
    # One of three drifts by chance in 14 %; with one that cannot tell, it is more than half.
    assert not unsettled([short, DRIFTS, STANDS]) and goes_on([short, DRIFTS, STANDS])
    assert sentence([short, STANDS, STANDS]) == "no drift seen in 25 s"


def test_a_run_that_cannot_be_tested_says_why() -> None:
    short = settled_summary("too short", 30.0, [], 5.0)
    assert sentence([short]) == ("too short to tell whether it had settled: 5 s of at least 30 s")
    changing = settled_summary("changing", None, [], 50.0)
    assert sentence([changing]).startswith("not tested for settling: flows or rates change")


def _invoke(*words: str) -> str:
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == 0, found.output
    return found.stdout


def test_the_tutorials_contest_hardly_ever_passes(tmp_path: Path) -> None:
    """Of 400 seeds 92 % are flagged, 5 % too short to tell (docs/evidence/settling.md)."""
    store, _ = filled(
        tmp_path / "store",
        sweep(
            scenario={
                **CONTEST, "duration": "30s", "warmup": "5s",
                "flow": [{"cc": "{cc}"}, {"cc": "bbr3"}],
            },
            axis={"cc": ["cubic"]}, sweep={"seeds": 100},
        ),
    )  # fmt: skip
    unsettled = store.table("runs")["unsettled"].to_pylist()
    assert sum(bool(text) for text in unsettled) >= 90
    assert sum("share of cubic" in text for text in unsettled) >= 85


@pytest.mark.usefixtures("without_page")
@pytest.mark.parametrize("rate", ["8mbit", pytest.param("20mbit", marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", ["run", "compare"])
def test_until_settled_goes_on_to_another_conclusion(
    tmp_path: Path, command: str, rate: str
) -> None:
    """The contest of the tutorial takes eight minutes to settle, and less at a lower rate."""
    out = str(tmp_path / "out")
    if command == "compare":
        words = ["compare", "cubic", "bbr3", "--together", "--rate", rate, "--rtt", "40ms",
                 "--buffer", "4bdp", "--repeat", "3"]  # fmt: skip
    else:
        file = tmp_path / "contest.toml"
        file.write_text(
            'duration = "30s"\nwarmup = "5s"\nflow = [{cc = "cubic"}, {cc = "bbr3"}]\n'
            f'path = {{rate = "{rate}", rtt = "40ms", buffer = "4bdp"}}\n'
        )
        words = ["run", str(file), "--repeat", "3", "--no-report"]
    words += ["--out", out, "--json", "--until-settled"]
    found = json.loads(_invoke(*words))
    runs = found if command == "run" else found["runs"]["cubic + bbr3"]
    shares = [run["flows"][0]["share"] for run in runs]
    assert all(0.3 < share < 0.52 for share in shares), "above 0.6 in the first 30 s"
    assert not unsettled([run["settling"] for run in runs])


def test_a_sweep_goes_on_with_the_cells_that_had_not_settled(tmp_path: Path) -> None:
    contest = sweep(
        scenario={
            **CONTEST, "duration": "30s", "warmup": "5s",
            "path": {**CONTEST["path"], "buffer": "{buffer}"},
            "flow": [{"cc": "cubic"}, {"cc": "bbr3"}],
        },
        axis={"buffer": ["4bdp", "0.2bdp"]}, sweep={"seeds": 3, "until_settled": True},
    )  # fmt: skip
    store, outcome = filled(tmp_path / "store", contest)
    rows = ask(
        store,
        "select r.buffer, r.duration_until_settled, unsettled, share from runs r join flows f "
        "using (key) where flow = 'cubic.1'",
    ).to_pylist()
    deep = [row for row in rows if row["buffer"] == "4bdp"]
    assert len(rows) == 6 and outcome.ran > 6
    assert {row["duration_until_settled"] for row in deep} <= {"60s", "120s", "240s", "480s"}
    assert not unsettled([stored_summary(row["unsettled"]) for row in deep])
    assert all(0.3 < row["share"] < 0.52 for row in deep), "above 0.6 in the first 30 s"
    _, again = filled(tmp_path / "store", contest)
    assert again.ran == 0, "the same rounds, which are all there"


def test_rounds_become_twice_as_long_within_a_bound() -> None:
    assert longer(30 * 10**9, 30 * 10**9) == {"duration": "60s", "warmup": "30s"}
    assert longer(240 * 10**9, 30 * 10**9) == {"duration": "480s", "warmup": "240s"}
    assert longer(480 * 10**9, 30 * 10**9) is None


def test_no_shard_decides_whether_a_cell_had_settled(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--shard: a rule to stop looks at all seeds"):
        filled(tmp_path / "store", sweep(sweep={"until_settled": True}), Shard(1, 2))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ""),
        (["", "", ""], ""),
        (["too short"] * 9 + ["changing"], ""),
        # One of ten: a false alarm of 5 % makes one or more in 40 % of such groups.
        (["share of cubic +4.10e-3/s; 25 s"] + [""] * 9, ""),
        # Three of ten: such alarms make as many in 1.2 %.
        (
            [
                "share of cubic +4.00e-3/s; 25 s",
                "backlog -2.05e3/s; share of cubic +5.00e-3/s; 25 s",
                "backlog -2.05e3/s; 25 s",
                "share of cubic +6.00e-3/s; 25 s",
            ]
            + [""] * 6,
            "not settled in 4 of 10 runs: the share of cubic still rises by 0.005 a second; needs "
            "some 150 s",
        ),
        (
            ["share of cubic, up +4.00e-3/s; 20 s", "share of cubic, up -4.00e-3/s; 20 s"],
            "not settled in 2 of 2 runs: the share of cubic, up still rises or falls by 0.004 a "
            "second; needs some 120 s",
        ),
    ],
)
def test_of_runs_in_a_store_more_must_drift_than_false_alarms_would(
    words: list[str], said: str
) -> None:
    assert of_stored(words) == said


RISES = "share of cubic +4.00e-3/s; 25 s"


def _cells(*drifting: int, runs: int = 10, of: int = 20) -> CellsSettled:
    """So many runs that drift in the first cells; no drift in the others."""
    counts = [*drifting, *[0] * (of - len(drifting))]
    return of_cells([
        (f"buffer {place}", [RISES] * count + [""] * (runs - count))
        for place, count in enumerate(counts)
    ])  # fmt: skip


def test_of_many_cells_more_must_drift_than_chance_gives() -> None:
    # Three of ten runs drift by chance in 1.2 % of cells, so some do in 21 % of twenty cells.
    assert _cells(3).unsettled == ()
    # Four in one cell: 0.1 %, of twenty cells 2 %.
    assert _cells(4).unsettled == ("buffer 0",)
    # Four of twenty cells, each flagged by chance in at most 5 %: in 1.6 %.
    assert len(_cells(3, 3, 3, 3).unsettled) == 4
    assert _cells(3, of=1).text() == (
        "not settled: the share of cubic still rises by 0.004 a second"
    )
    assert _cells(*[9] * 7).text() == (
        "not settled in 7 of 20 cells (buffer 0; buffer 1; buffer 2; buffer 3 and 3 more): "
        "the share of cubic still rises by 0.004 a second"
    )


def test_cells_that_are_too_short_are_counted_and_those_without_runs_left_out() -> None:
    cells = [
        ("a", ["too short", ""]),
        ("a2", ["too short", "", ""]),
        ("b", ["changing"]),
        ("c", [""]),
        ("d", []),
    ]
    assert of_cells(cells).text() == "too short to tell whether it had settled in 1 of 4 cells"
    assert of_cells([("", ["too short"])]).text() == "too short to tell whether it had settled"
    assert of_cells([]).text() == ""
