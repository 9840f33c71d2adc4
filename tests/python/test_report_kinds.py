"""Kinds of figures: throughput against delay, completion times by size, all panels in one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fullpipe
from fullpipe.plots import style
from fullpipe.plots.model import ellipse
from fullpipe.report.combined import combined
from fullpipe.report.completions import completion_cdfs
from fullpipe.report.figures import write_figures
from fullpipe.report.overlay import overlaid
from fullpipe.report.runs import Group, grouped, read_run
from fullpipe.report.tradeoff import tradeoff
from made_recordings import PLAN, flow, recorded, samples

PATH = {"rate": "10mbit", "rtt": "20ms", "buffer": "2bdp"}


@pytest.fixture(scope="module")
def groups() -> list[Group]:
    runs = []
    for cc in ("cubic", "bbr3"):
        document = {"name": "s", "duration": "4s", "warmup": "1s", "path": PATH,
                    "start_spread": "200ms", "flow": [{"cc": cc}],
                    "probe": [{"kind": "ping"}]}  # fmt: skip
        runs += fullpipe.run(document, seeds=3)
    return grouped([read_run(run) for run in runs])


def test_an_ellipse_is_one_standard_deviation_along_the_axes_of_the_points() -> None:
    x, y = np.array([-3.0, 3, 0, 0]), np.array([0.0, 0, -1, 1])
    around = ellipse(x + 10, y + 5)
    deviations = np.sqrt([18 / 3, 2 / 3])  # by hand: sums of squares over n - 1
    assert (around[0].min(), around[0].max()) == pytest.approx(
        (10 - deviations[0], 10 + deviations[0])
    )
    assert (around[1].min(), around[1].max()) == pytest.approx(
        (5 - deviations[1], 5 + deviations[1])
    )


def test_each_algorithm_is_a_point_at_its_mean_in_its_colour(groups: list[Group]) -> None:
    plot = tradeoff(groups)
    points = {trace.name: trace for trace in plot.traces if trace.mark}
    assert {name: point.colour for name, point in points.items()} == {
        cc: style.cc_colour(cc) for cc in ("cubic", "bbr3")
    }
    rows = [run.summary["groups"][0] for run in groups[0].runs]
    assert points["cubic"].x[0] == pytest.approx(
        np.mean([row["rtt_us"]["p95"] for row in rows]) / 1e3
    )
    assert points["cubic"].y[0] == pytest.approx(
        np.mean([row["goodput_all_bps"] for row in rows]) / 1e6
    )
    assert sum(not trace.mark for trace in plot.traces) == 2, "an ellipse each"


def test_panels_of_one_figure_share_their_time(groups: list[Group]) -> None:
    grid = combined(overlaid(groups))
    assert grid is not None and grid.columns == 1 and grid.share_x and not grid.share_y
    assert [panel.key for panel in grid.panels] == ["throughput", "rtt", "ping", "queue"]
    assert [panel.x_title for panel in grid.panels] == ["", "", "", "time (s)"]


def test_completion_times_are_distributed_by_size(tmp_path: Path) -> None:
    small = [flow(n, completion_us=(n + 1) * 100_000, bytes_acked=5_000) for n in range(5)]
    large = [flow(n, completion_us=2_000_000, bytes_acked=50_000) for n in range(5, 10)]
    rows = [row for n in range(10) for row in samples(n, [0, 5_000])]
    path = {**PLAN["path"], "qdisc": {"aqm": {"kind": "fifo"}}}
    plan = {**PLAN, "path": path}
    view = recorded(tmp_path, plan=plan, flows=[*small, *large], flow_samples=rows)
    (plot,) = completion_cdfs([Group("g", [read_run(view.recording)])])
    assert [trace.name for trace in plot.traces] == [
        "bbr3, to 10,000 B (5 flows)", "bbr3, to 100,000 B (5 flows)",
    ]  # fmt: skip
    assert plot.traces[0].x == pytest.approx([100, 100, 200, 300, 400, 500])
    assert plot.traces[0].y == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert plot.log_x == 10


@pytest.mark.slow
def test_the_kinds_are_written_as_figures(groups: list[Group], tmp_path: Path) -> None:
    runs = [run.recording for group in groups for run in group.runs]
    names = {path.name for path in write_figures(runs, tmp_path)}
    assert {"tradeoff.pdf", "combined.pdf", "throughput.pdf"} <= names
    assert len(names) <= 3 * 20
