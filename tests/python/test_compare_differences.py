"""Comparisons: the difference and whether it is worth noticing; flows with an end by completion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fullpipe.cli import main  # noqa: F401 - the commands
from fullpipe.cli.app import app
from fullpipe.cli.output import difference_table
from fullpipe.report.comparison import compare_values

pytestmark = pytest.mark.usefixtures("without_page")


def _difference(first: list[float], other: list[float]) -> Any:
    row = compare_values("goodput", "Mbit/s", 2, {"a": first, "b": other})
    assert row is not None
    return row.differences["b"]


def test_a_difference_that_is_certain_may_not_be_worth_noticing() -> None:
    found = _difference([19.120, 19.121, 19.122], [19.130, 19.131, 19.132])
    assert found.is_noticeable is False and found.low > 0
    assert _difference([10.0, 10.1, 9.9], [5.0, 5.1, 4.9]).is_noticeable is True
    # 5 % of 10 lies within the interval.
    assert _difference([10.0, 10.4, 9.6], [10.5, 10.9, 10.1]).is_noticeable is None


def test_runs_that_do_not_vary_differ_or_not() -> None:
    assert _difference([1.0, 1.0], [2.0, 2.0]).is_noticeable is True
    assert _difference([1.0, 1.0], [1.0, 1.0]).is_noticeable is False


def test_the_difference_comes_before_the_verdict_and_p() -> None:
    row = compare_values("goodput", "Mbit/s", 2, {"a": [1.0, 1.1, 0.9], "b": [2.0, 2.1, 1.9]})
    assert row is not None
    table = difference_table([row])
    assert table is not None
    cells = [next(iter(column.cells)) for column in table.columns]
    assert cells[:4] == ["goodput (Mbit/s)", "+1.00", "+0.77 to +1.23", "yes"]


def _compare(*words: str) -> dict[str, Any]:
    found = CliRunner().invoke(app, ["compare", "cubic", "bbr3", "--json", "--light", *words])
    assert found.exit_code == 0, found.output
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


DOWNLOAD = """
duration = "12s"
warmup = "1s"
[path]
rate = "12mbit"
rtt = "100ms"
loss = "2%"
[[flow]]
cc = "cubic"
"""


def test_flows_with_an_end_are_judged_by_when_they_end(tmp_path: Path) -> None:
    (tmp_path / "path.toml").write_text(DOWNLOAD)
    words = ["--path", str(tmp_path / "path.toml"), "--set", "flow.0.amount=6MB", "--repeat", "3"]
    found = _compare(*words, "--out", str(tmp_path / "out"))
    # The file's times, not the defaults of 30 s and 5 s.
    assert (found["duration"], found["warmup"]) == ("12s", "1s")
    first = found["metrics"][0]
    assert first["metric"] == "completion time"
    # BBR fills the path, CUBIC loses to random loss and has not ended when the run does.
    assert first["cells"]["bbr3"]["mean"] < 8 and first["censored"] == {"cubic": 3, "bbr3": 0}
    # What it had taken by then, from its start within the spread of starts.
    assert all(11.9 < value <= 12 for value in first["cells"]["cubic"]["values"])
    # Goodput is over the flow's own time.
    goodput = next(row for row in found["metrics"] if row["metric"] == "goodput")
    assert goodput["cells"]["bbr3"]["mean"] > 6 * 8 * 1.048576 / 8


def test_given_times_go_before_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "path.toml").write_text(DOWNLOAD)
    found = _compare("--path", str(tmp_path / "path.toml"), "--duration", "3s", "--repeat", "1",
                     "--out", str(tmp_path / "out"))  # fmt: skip
    assert (found["duration"], found["warmup"]) == ("3s", "1s")
