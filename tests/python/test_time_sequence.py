"""The time-sequence graph of a capture against what the sender recorded of the same run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fullpipe.base.errors import UserError
from fullpipe.base.units import KIB
from fullpipe.cli.app import app
from fullpipe.plots.model import Trace
from fullpipe.recording.recording import Recording
from fullpipe.report.time_sequence import time_sequence

SCENARIO = """
duration = "3s"
[path]
rate = "5mbit"
rtt = "30ms"
buffer = "1bdp"
loss = 0.005
[[flow]]
cc = "cubic"
[[flow]]
cc = "reno"
amount = "100KB"
direction = "down"
start = "1s"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Recording]:
    folder = tmp_path_factory.mktemp("sequence")
    (folder / "s.toml").write_text(SCENARIO)
    capture = folder / "run.pcap"
    words = ["run", folder / "s.toml", "--pcap", capture, "--out", folder / "o", "--no-report"]
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return capture, Recording.open(folder / "o")


def traces(capture: Path, connection: int = 1, **times: float) -> dict[str, Trace]:
    found = time_sequence(capture, connection, **times).traces
    return {trace.name.partition(" (")[0]: trace for trace in found}


def test_packets_sent_and_sent_again_are_those_that_the_sender_counted(
    run: tuple[Path, Recording],
) -> None:
    capture, recording = run
    for flow in recording.table("flows").to_pylist():
        drawn = traces(capture, flow["flow_id"] + 1)
        counts = {name: trace.x.size // 3 for name, trace in drawn.items()}
        again = counts.get("sent again", 0)
        assert counts["sent"] + again == flow["packets_sent"]
        assert again == flow["packets_retransmitted"]


def test_the_line_of_acknowledgements_ends_at_the_bytes_that_were_acknowledged(
    run: tuple[Path, Recording],
) -> None:
    capture, recording = run
    flow = recording.table("flows").to_pylist()[1]
    drawn = traces(capture, 2)
    assert drawn["acknowledged"].y.max() * KIB == pytest.approx(flow["bytes_acked"], abs=1)
    assert (np.diff(drawn["acknowledged"].y) >= 0).all()


def test_nothing_is_sent_beyond_the_window_nor_sacked_below_what_is_acknowledged(
    run: tuple[Path, Recording],
) -> None:
    drawn = traces(run[0])
    edges, acknowledged = drawn["window's edge"], drawn["acknowledged"]
    for trace, limit in ((drawn["sent"], edges), (drawn["SACKed"], acknowledged)):
        x, y = trace.x[0::3], trace.y[1::3]
        at = np.searchsorted(limit.x, x, side="right") - 1
        seen = at >= 0
        above = y[seen] - limit.y[at[seen]]
        assert (above <= 0).all() if trace is drawn["sent"] else (above > 0).all()
    assert drawn["SACKed"].x.size > 0


def test_times_cut_the_graph_and_what_is_not_there_is_said(run: tuple[Path, Recording]) -> None:
    capture, _ = run
    part = traces(capture, start_s=1.0, end_s=1.5)
    assert all((trace.x[np.isfinite(trace.x)] >= 1.0).all() for trace in part.values())
    assert all((trace.x[np.isfinite(trace.x)] <= 1.5).all() for trace in part.values())
    with pytest.raises(UserError, match="has 2 TCP connections, none with number 3"):
        time_sequence(capture, 3)
    with pytest.raises(UserError, match="between --from and --to; it sends from"):
        time_sequence(capture, 1, 50.0)


def test_the_command_writes_the_graph(run: tuple[Path, Recording], tmp_path: Path) -> None:
    out = tmp_path / "graph.svg"
    words = ["trace", "sequence", run[0], "--out", out, "--from", "1s", "--to", "1100ms"]
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output
    assert b"window's edge" in out.read_bytes()
    refused = CliRunner().invoke(app, ["trace", "sequence", str(run[0]), "--out", "x.jpg"])
    assert isinstance(refused.exception, UserError)
