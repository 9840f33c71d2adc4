"""`fullpipe compare` and `run --repeat`: means with intervals, a named test, seeds, 100 columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fullpipe import cli
from fullpipe.report.comparison import compare_harm, compare_shares

PATH = ["--rate", "20mbit", "--rtt", "20ms", "--buffer", "1bdp", "--loss", "0.002"]
SHORT = ["--duration", "6s", "--warmup", "1s", "--repeat", "4"]


def run(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["fullpipe", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    shown = capsys.readouterr()
    return int(stopped.value.code or 0), shown.out, shown.err


@pytest.mark.slow
def test_two_controls_alone_are_compared_by_welchs_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compare", "bbr3", "cubic", *PATH, *SHORT, "--out", str(tmp_path / "c"), "--json"]
    status, output, _ = run(command, monkeypatch, capsys)
    assert status == 0
    document = json.loads(output)
    assert document["seeds"] == [1, 2, 3, 4]
    goodput = next(row for row in document["metrics"] if row["metric"] == "goodput")
    values = {
        cc: np.array([runs["flows"][0]["goodput_bps"] / 1e6 for runs in document["runs"][cc]])
        for cc in ("bbr3", "cubic")
    }
    for cc, mine in values.items():
        cell = goodput["cells"][cc]
        assert cell["n"] == 4
        assert cell["mean"] == pytest.approx(mine.mean())
        assert mine.min() <= cell["low"] <= cell["mean"] <= cell["high"] <= mine.max()
    expected = stats.ttest_ind(values["bbr3"], values["cubic"], equal_var=False)
    assert "Welch" in goodput["test"]["name"]
    assert goodput["test"]["p_value"] == pytest.approx(expected.pvalue)
    assert (tmp_path / "c" / "report.html").is_file()


def test_set_changes_the_path_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compare", "reno", "cubic", *PATH, "--duration", "4s", "--warmup", "1s", "--repeat",
               "1", "--json"]  # fmt: skip
    goodputs = {}
    for rate in ("20mbit", "4mbit"):
        place = ["--set", f"path.rate={rate}", "--out", str(tmp_path / rate)]
        status, output, _ = run([*command, *place], monkeypatch, capsys)
        assert status == 0
        document = json.loads(output)
        assert document["path"]["rate"] == rate
        goodputs[rate] = [runs[0]["flows"][0]["goodput_bps"] for runs in document["runs"].values()]
    assert max(goodputs["4mbit"]) < 4e6 < min(goodputs["20mbit"])


def test_controls_together_share_one_path_and_have_no_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "compare",
        "bbr3",
        "cubic",
        "--together",
        *PATH,
        *SHORT,
        "--out",
        str(tmp_path / "c"),
    ]
    status, output, messages = run(command, monkeypatch, capsys)
    assert status == 0
    assert "share of goodput" in output
    assert "Welch" not in output
    assert "seeds 1 to 4" in output
    assert max(map(len, output.splitlines())) <= 100
    assert str(tmp_path / "c" / "report.html") in messages.replace("\n", "")


@pytest.mark.slow
def test_harm_is_told_for_each_control_against_the_same_seed_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compare", "reno", "cubic", "--harm-to", "cubic", *PATH, "--duration", "5s",
               "--warmup", "1s", "--repeat", "2", "--json", "--light", "--out",
               str(tmp_path / "c")]  # fmt: skip
    status, output, _ = run(command, monkeypatch, capsys)
    assert status == 0
    document = json.loads(output)
    rows = {row["metric"]: row["cells"] for row in document["metrics"]}
    labels = ["reno beside cubic", "cubic beside cubic"]
    assert list(rows["harm: goodput"]) == list(rows["goodput"]) == labels
    assert [*document["runs"]] == [*labels, "cubic alone"]
    for label in labels:
        pairs = zip(document["runs"]["cubic alone"], document["runs"][label], strict=True)
        wanted = [
            1 - beside["flows"][1]["goodput_bps"] / alone["flows"][0]["goodput_bps"]
            for alone, beside in pairs
        ]
        assert rows["harm: goodput"][label]["values"] == pytest.approx(wanted)


def test_harm_of_runs_is_what_a_hand_computes() -> None:
    def summary(goodput: float, ping: float, again: float | None) -> dict[str, Any]:
        others = {"group": "others", "goodput_bps": {"mean": goodput}, "retransmit_ratio": again}
        mine = {"group": "bbr3", "goodput_bps": {"mean": 5e6}, "retransmit_ratio": 0.5}
        return {"groups": [mine, others], "ping_ms": {"p95": ping}}

    alone = [summary(10e6, 20, 0.0), summary(8e6, 30, 0.0)]
    beside = {
        "a": [summary(4e6, 40, 0.01), summary(6e6, 30, 0.02)],
        "b": [summary(10e6, 20, 0.0), summary(10e6, 20, 0.0)],
    }
    rows = {row.metric: row for row in compare_harm(alone, beside)}
    # (10 - 4) / 10, (8 - 6) / 8; (40 - 20) / 40, 0; what helps is below 0.
    assert rows["harm: goodput"].cells["a"].values == pytest.approx([0.6, 0.25])
    assert rows["harm: goodput"].cells["b"].values == pytest.approx([0.0, -0.25])
    assert rows["harm: ping p95"].cells["a"].values == pytest.approx([0.5, 0.0])
    assert rows["harm: ping p95"].cells["b"].values == pytest.approx([0.0, -0.5])
    # b has no retransmission, neither alone nor beside: no harm can be told, and no row.
    assert "harm: retransmissions" not in rows
    rows = {row.metric: row for row in compare_harm(alone, {"a": beside["a"]})}
    assert rows["harm: retransmissions"].cells["a"].values == [1.0, 1.0]


def test_repetitions_print_means_with_intervals_in_100_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'duration = "5s"\n[path]\nrate = "20mbit"\nrtt = "20ms"\nloss = 0.002\n'
        '[[flow]]\ncc = "bbr3"\n[[flow]]\ncc = "cubic"\n',
        encoding="utf-8",
    )
    command = ["run", str(scenario), "--repeat", "4", "--out", str(tmp_path / "r")]
    status, output, _ = run(command, monkeypatch, capsys)
    assert status == 0
    assert "95 % interval" in output
    assert max(map(len, output.splitlines())) <= 100
    assert sorted(p.name for p in (tmp_path / "r").iterdir() if p.is_dir()) == [
        f"run-{index:03d}" for index in range(4)
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["bbr3", "bbr3"], "given twice"),
        (["bbr3", "cubik"], "did you mean cubic"),
        (["bbr3", "--rate", "10ms"], "path.rate: '10ms'"),
        (["bbr3", "--harm-to", "cubik"], "did you mean cubic"),
        (["bbr3", "cubic", "--together", "--harm-to", "cubic"], "--harm-to"),
    ],
)
def test_bad_comparisons_are_refused_in_one_line(
    arguments: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["compare", *arguments, "--out", str(tmp_path / "c")]
    status, output, messages = run(command, monkeypatch, capsys)
    assert (status, output) == (2, "")
    assert expected in messages
    assert len(messages.strip().splitlines()) == 1
    assert not (tmp_path / "c").exists()


def test_flows_down_do_not_share_with_flows_up() -> None:
    flows = [("bbr3", "up", 0.75), ("cubic", "up", 0.25), ("cubic", "down", 1.0)]
    run = {"flows": [{"cc": cc, "direction": way, "share": share} for cc, way, share in flows]}
    (row,) = compare_shares([run])
    means = {label: cell.mean for label, cell in row.cells.items()}
    assert means == {"bbr3, up": 0.75, "cubic, up": 0.25, "cubic, down": 1.0}
