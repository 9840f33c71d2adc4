"""Results that a jitter of 100 us changes, though all repetitions agree, are said to be that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fullpipe.cli import main  # noqa: F401 - the commands
from fullpipe.cli.app import app
from fullpipe.metrics.knife_edge import agree, sentence


def _run(
    goodput_mbps: float, shares: tuple[float, ...] = (1.0,), time_s: float | None = None
) -> dict[str, Any]:
    flows = [
        {"cc": cc, "direction": "up", "share": share}
        for cc, share in zip(("cubic", "bbr3"), shares, strict=False)
    ]
    done = None if time_s is None else {"is_all": True, "completion_s": {"mean": time_s}}
    return {"goodput_bps": 1e6 * goodput_mbps, "flows": flows, "completion": done}


AGREE = [_run(41.9), _run(41.8), _run(41.9)]


@pytest.mark.parametrize(
    ("runs", "with_jitter", "said"),
    [
        (AGREE, [_run(66.5), _run(41.8), _run(41.9)],
         "knife edge: the goodput is 41.9 Mbit/s in all 3 runs, and 41.8 to 66.5 Mbit/s with a "
         "jitter of 100 us"),
        (AGREE, [_run(41.0), _run(42.8), _run(41.9)], ""),  # by 3 %
        (AGREE[:2], [_run(66.5), _run(41.8)], ""),  # two runs agree by chance
        ([_run(30), _run(50), _run(41.9)], [_run(66.5)] * 3, ""),
        ([_run(10, (0.7, 0.3))] * 3, [_run(10, (0.4, 0.6))] * 3,
         "knife edge: the share of cubic is 0.700 in all 3 runs, and 0.400 to 0.400 with a jitter "
         "of 100 us"),
        ([_run(1, time_s=2.0)] * 3, [_run(1, time_s=2.5)] * 3,
         "knife edge: the completion time is 2.00 s in all 3 runs, and 2.50 to 2.50 s with a "
         "jitter of 100 us"),
        ([_run(0.0)] * 3, [_run(5.0)] * 3, ""),  # nothing was delivered
    ],
)  # fmt: skip
def test_runs_that_agree_and_that_jitter_changes_are_a_knife_edge(
    runs: list[dict[str, Any]], with_jitter: list[dict[str, Any]], said: str
) -> None:
    assert sentence(runs, with_jitter) == said
    assert agree(runs) or not said


LINE = """
duration = "20s"
warmup = "8s"
path = {{ rate = "100mbit", rtt = "{rtt}", qdisc = "{qdisc}"{more} }}
flow = [{{ cc = "cubic" }}]
"""


@pytest.mark.parametrize(
    ("line", "is_edge"),
    [
        ({"rtt": "80ms", "qdisc": "cake", "more": ""}, True),
        ({"rtt": "80ms", "qdisc": "cake", "more": ', jitter = "100us"'}, False),
        ({"rtt": "40ms", "qdisc": "fifo", "more": ""}, False),
    ],
)
def test_repetitions_of_a_run_are_tried_with_jitter(
    line: dict[str, str], is_edge: bool, tmp_path: Path
) -> None:
    file = tmp_path / "line.toml"
    file.write_text(LINE.format(**line))
    words = ["run", str(file), "--repeat", "3", "--no-report", "-o", str(tmp_path / "out")]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert ("knife edge: the goodput is" in found.stdout) is is_edge


def test_json_has_the_knife_edge_of_its_runs(tmp_path: Path) -> None:
    file = tmp_path / "line.toml"
    file.write_text(LINE.format(rtt="80ms", qdisc="cake", more=""))
    words = ["run", str(file), "--no-report", "--json", "-o"]
    found = CliRunner().invoke(app, [*words, str(tmp_path / "three"), "--repeat", "3"])
    assert found.exit_code == 0, found.output
    edges = {run["knife_edge"] for run in json.loads(found.stdout)}
    assert len(edges) == 1 and edges.pop().startswith("knife edge: the goodput is")
    one = CliRunner().invoke(app, [*words, str(tmp_path / "one")])
    assert "knife_edge" not in json.loads(one.stdout), "it takes repetitions to tell"
