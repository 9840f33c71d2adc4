"""`fullpipe compare` and `run --repeat`: means with intervals, a named test, seeds, 100 columns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fullpipe import cli

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
        (["bbr3", "--repeat", "0"], "--repeat"),
        (["bbr3", "--engine", "ns3"], "sim, vm, live"),
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
