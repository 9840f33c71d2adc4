"""A report of several groups: one plot a metric with all of them, a switch, and a bound in size."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fullpipe
from fullpipe.plots import plotly_script, style
from fullpipe.plots.matplotlib_renderer import figure_of as static
from fullpipe.plots.model import LEAST_POINTS, Plot, Trace, thinned, within
from fullpipe.plots.plotly_renderer import figure_of as interactive
from fullpipe.report.overlay import MAX_LINES, overlaid
from fullpipe.report.page import write_report
from fullpipe.report.runs import Group, grouped, read_run

PATH: dict[str, Any] = {"rate": "10mbit", "rtt": "20ms", "buffer": "1bdp"}


def groups(*changes: dict[str, Any]) -> list[Group]:
    runs: list[fullpipe.Recording] = []
    for change in changes:
        document = {"name": "s", "duration": "3s", "warmup": "1s", "path": PATH, **change}
        runs += fullpipe.run({"flow": [{"cc": "cubic"}], **document})
    return grouped([read_run(run) for run in runs])


def named(plots: list[Plot]) -> dict[str, Plot]:
    assert len({plot.key for plot in plots}) == len(plots)
    return {plot.key: plot for plot in plots}


def test_algorithms_share_one_plot_a_metric_each_in_its_colour() -> None:
    plots = named(overlaid(groups(*({"flow": [{"cc": cc}]} for cc in ("cubic", "bbr3", "reno")))))
    for key in ("throughput", "rtt", "queue"):
        lines = [trace for trace in plots[key].traces if not trace.is_reference]
        assert {line.name: line.colour for line in lines} == {
            cc: style.cc_colour(cc) for cc in ("cubic", "bbr3", "reno")
        }
        assert [line.run for line in lines] == [0, 1, 2]
    (rate,) = [trace for trace in plots["throughput"].traces if trace.is_reference]
    assert rate.name == "bottleneck rate" and rate.run == -1
    assert plots["phases"].rows == ("cubic", "bbr3")  # Reno has none


def test_runs_of_one_algorithm_have_a_colour_each_and_are_named_by_the_key() -> None:
    rates = ("10mbit", "20mbit")
    plots = named(overlaid(groups(*({"path": {**PATH, "rate": rate}} for rate in rates))))
    lines = [trace for trace in plots["throughput"].traces if not trace.is_reference]
    assert [line.name for line in lines] == ["path.rate=10mbit", "path.rate=20mbit"]
    assert len({line.colour for line in lines}) == 2
    levels = {line.name: line.y[0] for line in plots["throughput"].traces if line.is_reference}
    assert levels == {f"bottleneck rate: path.rate={rate}mbit": rate for rate in (10, 20)}


def test_of_many_flows_no_more_lines_are_drawn_than_can_be_told_apart() -> None:
    flows = [{"cc": cc, "count": 8} for cc in ("cubic", "reno")]
    buffers = ("1bdp", "2bdp", "4bdp")
    found = groups(*({"flow": flows, "path": {**PATH, "buffer": size}} for size in buffers))
    lines = [one for one in named(overlaid(found))["throughput"].traces if not one.is_reference]
    assert len(lines) == 6 <= MAX_LINES
    assert len({(line.colour, line.dash) for line in lines}) == 6


def test_the_warm_up_is_shaded_by_both_renderers() -> None:
    (group,) = groups({})
    throughput = named(overlaid([group]))["throughput"]
    assert throughput.warmup_s == 1.0
    (shape,) = interactive(throughput)["layout"]["shapes"]
    assert (shape["x0"], shape["x1"]) == (0, 1.0)
    assert len(static(throughput).axes[0].patches) == 1
    whole = replace(throughput, warmup_s=0.0)
    assert "shapes" not in interactive(whole)["layout"]
    assert not static(whole).axes[0].patches


def test_thinning_keeps_the_least_and_the_largest_and_their_interval() -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=10_000)
    trace = Trace("a", "#000000", np.arange(10_000.0), y, band=(y - 1, y + 1))
    few = thinned(trace, 100)
    assert few.x.size <= 100
    assert (few.y.min(), few.y.max()) == (y.min(), y.max())
    assert few.x[-1] == 9999
    assert few.band is not None
    np.testing.assert_array_equal(few.band[1], few.y + 1)


def test_plots_of_a_page_keep_within_the_points_that_it_may_have() -> None:
    y = np.sin(np.arange(5_000.0))
    plots = [Plot(str(i), "", "", "", [Trace("a", "#000000", y, y)] * 4) for i in range(10)]
    kept = within(plots, 20_000)
    assert len(kept) == 10
    assert all(len(plot.traces) == 4 for plot in kept)
    assert sum(trace.x.size for plot in kept for trace in plot.traces) <= 20_000
    least = within(plots, 1)
    assert {trace.x.size for plot in least for trace in plot.traces} <= {
        *range(1, LEAST_POINTS + 1)
    }


@pytest.mark.slow
def test_a_page_of_four_algorithms_is_small_and_loses_no_panel(tmp_path: Path) -> None:
    flows = ("cubic", "bbr3", "reno", "bbr1")
    runs = [
        run
        for cc in flows
        for run in fullpipe.run(
            {"name": "s", "duration": "30s", "path": PATH, "probe": [{"kind": "ping"}],
             "flow": [{"cc": cc, "count": 2}]},
        )
    ]  # fmt: skip
    text = write_report(runs, tmp_path / "r.html").read_text("utf-8")
    assert len(text) - len(plotly_script.script()) < 1_000_000
    found = grouped([read_run(run) for run in runs])
    drawn = set(re.findall(r'<div id="course-([\w-]+)"', text))
    assert drawn == {plot.key for plot in overlaid(found)}
    assert {f"#{key}" for key in drawn} <= set(re.findall(r'href="(#[\w-]+)"', text))
    identifiers = re.findall(r'<[a-z0-9]+ id="([^"]+)"', text.replace(plotly_script.script(), ""))
    assert len(set(identifiers)) == len(identifiers), "Plotly draws into the first of a name"
    assert "[sim]" not in text
    assert json.dumps(list(flows), separators=(",", ":")) in text  # what the switch needs
