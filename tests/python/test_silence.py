"""A path that carries nothing has no results: its runs say so and why, and no chart ranks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fullpipe.cli import main  # noqa: F401 - the commands
from fullpipe.cli.app import app
from fullpipe.engines.runner import run_scenario
from fullpipe.metrics.silence import sentences
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.chart import Request, make_chart
from sweep_files import filled, sweep

#: A BDP of 1250 B, which holds no packet.
SMALL = {"path": {"rate": "2mbit", "rtt": "5ms", "buffer": "1bdp"}}
TOO_SMALL = "the buffer of path (forward) holds 1250 B, less than a packet of 1514 B"


def problems(folder: Path, **document: Any) -> list[str]:
    base = {"duration": "3s", "warmup": "1s", "flow": [{"cc": "bbr3"}, {"cc": "cubic"}]}
    [made] = run_scenario(make_scenario({**base, **document}), "warmup = '1s'", [folder]).recordings
    return made.problems


def test_a_buffer_below_a_packet_is_the_cause(tmp_path: Path) -> None:
    assert problems(tmp_path / "run", **SMALL) == [f"nothing was delivered: {TOO_SMALL}"]


def test_loss_of_everything_is_the_cause(tmp_path: Path) -> None:
    path = {"rate": "2mbit", "rtt": "20ms", "loss": "100%"}
    assert problems(tmp_path / "run", path=path) == [
        "nothing was delivered: random loss takes all packets"
    ]


def test_a_flow_that_cannot_deliver_is_named_among_others_that_do(tmp_path: Path) -> None:
    links = [
        {"name": "first", "rate": "2mbit", "delay": "10ms", "buffer": "100KB"},
        {"name": "second", "rate": "2mbit", "delay": "10ms", "buffer": "1000B"},
    ]
    flows = [
        {"cc": "cubic", "name": "short", "enter": "first", "leave": "first"},
        {"cc": "cubic", "name": "long"},
    ]
    assert problems(tmp_path / "run", link=links, flow=flows) == [
        "long delivered nothing: the buffer of second (forward) holds 1000 B, less than a packet "
        "of 1514 B"
    ]


def test_a_run_that_carries_something_has_no_problem(tmp_path: Path) -> None:
    path = {"rate": "2mbit", "rtt": "20ms", "buffer": "1514B"}
    assert problems(tmp_path / "run", path=path) == []


def test_a_flow_that_loses_against_others_is_no_problem_of_the_path() -> None:
    assert sentences(["a", "b"], [1], {}, "") == []
    assert sentences(["a", "b"], [0, 1], {}, "") == ["nothing was delivered"]
    assert sentences([], [], {}, "forward") == ["the queue forward passed no packet on"]


def _with_a_dead_cell() -> Any:
    return sweep(
        scenario={
            "duration": "2s", "warmup": "500ms",
            "path": {"rate": "2mbit", "rtt": "{rtt}", "buffer": "1bdp"},
            "flow": [{"cc": "{cc}"}],
        },
        axis={"rtt": ["5ms", "40ms"], "cc": ["bbr3", "cubic"]},
    )  # fmt: skip


def test_a_sweep_names_the_cells_and_no_chart_counts_them(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", _with_a_dead_cell())
    found = store.table("runs")["problems"].to_pylist()
    assert found.count(f"nothing was delivered: {TOO_SMALL}") == 4
    assert found.count("") == 4
    delay = "queue_delay_p95_rttmin"
    [heat] = make_chart(store, Request(delay, x="rtt", by="cc", kind="heat")).panels
    assert heat.heat is not None
    assert heat.heat.x_labels == ("5ms", "40ms")
    assert np.isnan(heat.heat.values[:, 0]).all() and not np.isnan(heat.heat.values[:, 1]).any()
    assert heat.heat.crossed == ((0, 0), (1, 0))
    chart = make_chart(store, Request(delay, x="goodput_bps", by="cc", kind="pareto"))
    assert all(min(trace.x) > 1 for trace in chart.panels[0].traces), "Mbit/s"
    assert f"left out, 4 runs: nothing was delivered: {TOO_SMALL}" in chart.note


@pytest.mark.parametrize("kind", ["matplotlib", "plotly"])
def test_a_crossed_cell_is_drawn(tmp_path: Path, kind: str) -> None:
    from fullpipe.plots import matplotlib_renderer, plotly_renderer

    store, _ = filled(tmp_path / "store", _with_a_dead_cell())
    chart = make_chart(store, Request("utilisation", x="rtt", by="cc", kind="heat"))
    if kind == "plotly":
        marks = [one for one in plotly_renderer._data(chart.panels[0]) if one["type"] == "scatter"]
        assert [(one["x"], one["y"]) for one in marks] == [(["5ms", "5ms"], ["bbr3", "cubic"])]
        return
    import matplotlib.pyplot as plt

    _, axes = plt.subplots()
    matplotlib_renderer._heat(axes, chart.panels[0], None)
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[0.0, 0.0]], [[0.0, 1.0]]]


@pytest.mark.usefixtures("without_page")
def test_compare_marks_a_path_that_carries_nothing(tmp_path: Path) -> None:
    words = ["compare", "cubic", "bbr3", "--rate", "2mbit", "--rtt", "5ms", "--repeat", "2",
             "--duration", "3s", "--warmup", "1s", "--out", str(tmp_path / "out")]  # fmt: skip
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert "UNHEALTHY" in found.output and TOO_SMALL in found.output
