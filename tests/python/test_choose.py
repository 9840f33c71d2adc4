"""Advice for a path: ranked by the goal, with reasons, from runs that are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fullpipe import cli
from fullpipe.choose import ranking
from fullpipe.choose.ranking import GOALS, Question
from fullpipe.recording.recording import Recording

FEW = {queue: ranking.QUEUES[queue] for queue in ("fifo 4 BDP", "fq_codel")}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two queues with two controls, for a quarter of the time."""
    monkeypatch.setattr(ranking, "QUEUES", {"fifo 1 BDP": ranking.QUEUES["fifo 1 BDP"], **FEW})
    monkeypatch.setattr(ranking, "CONTROLS", ("cubic", "bbr3"))
    monkeypatch.setattr(ranking, "WANTED_S", 8.0)


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit status of `fullpipe choose ...`."""
    monkeypatch.setattr("sys.argv", ["fullpipe", "choose", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.mark.usefixtures("few")
def test_a_deep_queue_with_cubic_is_last_and_flow_queueing_first_for_latency(
    tmp_path: Path,
) -> None:
    question = Question("10mbit", "20ms", 0.2, "latency")
    options, length, recordings = ranking.choose(question, tmp_path / "c")
    assert len(options) == len(recordings) == 6
    assert options[0].queue == "fq_codel"
    assert (options[-1].queue, options[-1].cc) == ("fifo 4 BDP", "cubic")
    # Four BDP of 20 ms wait in front of a ping that comes when the queue is full.
    assert options[-1].added_p95_ms == pytest.approx(80, rel=0.2)
    assert "waits +" in options[-1].why
    assert length.pages == 20 and length.cut == ""
    a, b, c = GOALS["latency"]
    for option in options:
        score = option.utilisation**a * min(1, 20 / option.ping_p95_ms) ** b * option.jain**c
        assert option.score == pytest.approx(score)
    assert Recording.open(recordings[0].path).metadata["plan"]["path"]["qdisc"]["aqm"]["kind"] == (
        "fq_codel"
    )


@pytest.mark.usefixtures("few")
def test_the_command_prints_a_ranking_and_draws_the_tradeoffs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ("--rate", "5mbit", "--rtt", "20ms", "--out", str(out), "--json")
    assert command(monkeypatch, *words) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    scores = [option["score"] for option in said["options"]]
    assert scores == sorted(scores, reverse=True)
    assert (out / "tradeoffs.png").stat().st_size > 5000
    assert (out / "tradeoffs.svg").is_file()


def test_what_a_fast_path_costs_is_cut_and_said() -> None:
    document = ranking._document(
        Question("10gbit", "100ms", 0.0, "balance"), "fifo 1 BDP", "cubic",
        ranking.Length(1, 0, 0, ""),
    )  # fmt: skip
    base = ranking.make_scenario(document, "choose")
    length = ranking._length(base, 0.2, 18)
    packets = 18 * length.duration_s * 10e9 / ranking._FRAME_BITS
    assert packets <= 1.05 * ranking.PACKETS
    assert "instead of 30 s" in length.cut and "start-up" in length.cut


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rate", "1gb", "--rtt", "30ms"), "path.rate"),
        (("--rate", "1gbit", "--rtt", "30"), "path.rtt"),
        (("--rate", "1gbit", "--rtt", "30ms", "--for", "fun"), "--for"),
        (("--rate", "1gbit", "--rtt", "30ms", "--web", "90%"), "at most 80%"),
        (("--rate", "1gbit", "--rtt", "30ms", "--web", "x"), "--web"),
    ],
)
def test_bad_questions_are_refused_before_anything_runs(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert command(monkeypatch, *words, "--out", str(tmp_path / "out")) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
