"""Plots as both renderers draw them, and the figures of reports, against values done by hand."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tomli_w
from matplotlib.figure import Figure
from scipy import stats

from fullpipe.plan.resolve import resolve
from fullpipe.plots import style
from fullpipe.plots.look import Look, dressed, unknown_labels
from fullpipe.plots.matplotlib_renderer import draw, points_outside
from fullpipe.plots.matplotlib_renderer import figure_of as static
from fullpipe.plots.model import Box, Grid, Heat, Plot, Spans, Trace, box_of, cdf, thin
from fullpipe.plots.plotly_renderer import as_json, grid_figure_of
from fullpipe.plots.plotly_renderer import figure_of as interactive
from fullpipe.plots.style_file import read_style
from fullpipe.report.comparison import compare_harm, compare_runs, compare_shares, compare_values
from fullpipe.report.distributions import MIN_CDF_FLOWS, box_plots, cdf_plots
from fullpipe.report.headline import headline
from fullpipe.report.predictions import compare
from fullpipe.report.provenance import commands, facts, path_line
from fullpipe.report.repetitions import group_plots
from fullpipe.report.runs import Group, grouped, read_run
from fullpipe.report.timeline import time_plots, window_s
from fullpipe.report.variables import variable_plots
from fullpipe.scenario.model import make_scenario
from made_recordings import flow, of_a_link, queue, recorded, samples

MB = 1_000_000


def trace(**more: Any) -> Trace:
    usual = {"name": "a", "colour": "#102030", "x": np.array([0.0, 1, 2]),
             "y": np.array([1.0, 3, 2])}  # fmt: skip
    return Trace(**{**usual, **more})


def plot(*traces: Trace, **more: Any) -> Plot:
    return Plot("k", "t", "x", "y", list(traces), **more)


def numbers(packed: dict[str, str]) -> list[float]:
    return np.frombuffer(base64.b64decode(packed["bdata"]), "<f4").tolist()


def test_a_style_file_says_everything_but_the_labels(tmp_path: Path) -> None:
    path = tmp_path / "style.toml"
    path.write_text("")
    assert read_style(path) == Look()
    path.write_text(
        'width = "84mm"\nfont_size = 8\ntitle = false\nlog_x = true\nlog_y = true\n'
        'legend = "below"\n'
    )
    look = read_style(path)
    assert look.width_in == pytest.approx(84 / 25.4)
    assert look == Look(look.width_in, 8, False, True, True, "below")


@pytest.mark.parametrize(
    ("shape", "steps", "plotly"),
    [("linear", "default", "linear"), ("before", "steps-pre", "vh"), ("after", "steps-post", "hv")],
)
def test_a_value_holds_since_the_point_before_or_until_the_next(
    shape: str, steps: str, plotly: str
) -> None:
    # plotly.com/javascript/reference: hv goes across at the old value first, as steps-post does.
    line = static(plot(trace(shape=shape))).axes[0].lines[0]
    assert line.get_drawstyle() == steps
    assert interactive(plot(trace(shape=shape)))["data"][0]["line"]["shape"] == plotly


@pytest.mark.parametrize(
    ("dash", "drawn"), [("solid", "-"), ("dot", ":"), ("dash", "--"), ("dashdot", "-.")]
)
def test_both_renderers_know_every_dash(dash: str, drawn: str) -> None:
    line = static(plot(trace(dash=dash))).axes[0].lines[0]
    assert line.get_linestyle() == drawn and line.get_linewidth() == pytest.approx(0.7 * 1.5)
    assert interactive(plot(trace(dash=dash)))["data"][0]["line"]["dash"] == dash


def test_marks_stand_alone_unless_they_are_joined() -> None:
    alone, joined = trace(mark="triangle"), trace(mark="square", joined=True)
    axes = static(plot(alone, joined)).axes[0]
    assert [line.get_linestyle() for line in axes.lines] == ["None", "-"]
    assert [line.get_marker() for line in axes.lines] == ["^", "s"]
    assert [line.get_fillstyle() for line in axes.lines] == ["none", "full"]
    modes = [one["mode"] for one in interactive(plot(alone, joined, trace()))["data"]]
    assert modes == ["markers", "lines+markers", "lines"]


def test_a_band_lies_around_its_line() -> None:
    band = (np.array([0.0, 2, 1]), np.array([2.0, 5, 3]))
    low, high, line = interactive(plot(trace(band=band)))["data"]
    assert (numbers(low["y"]), numbers(high["y"])) == ([0, 2, 1], [2, 5, 3])
    assert high["fill"] == "tonexty" and high["fillcolor"] == "rgba(16,32,48,0.18)"
    assert numbers(line["y"]) == [1, 3, 2]
    (joined,) = interactive(plot(trace(band=band, mark="dot", joined=True)))["data"]
    assert numbers(joined["error_y"]["array"]) == [1, 2, 1]
    assert numbers(joined["error_y"]["arrayminus"]) == [1, 1, 1]
    drawn = static(plot(trace(band=band))).axes[0].collections[0].get_paths()[0].vertices
    assert (drawn[:, 1].min(), drawn[:, 1].max()) == (0, 5)


def test_the_right_axis_is_the_left_one_times_a_factor() -> None:
    found = interactive(plot(trace(), right=("other", 4.0)))["layout"]
    assert found["yaxis"]["range"] == pytest.approx([0, 3.15])
    assert found["yaxis2"]["range"] == pytest.approx([0, 12.6])
    figure = Figure()
    axes = figure.subplots()
    draw(axes, plot(trace(), right=("other", 4.0)))
    figure.draw_without_rendering()
    (right,) = axes.child_axes
    assert right.get_ylim() == pytest.approx(tuple(4 * one for one in axes.get_ylim()))
    assert axes.get_ylim()[0] == 0 and right.get_ylabel() == "other"


def test_axes_begin_at_zero_unless_told() -> None:
    high = trace(y=np.array([10.0, 12, 11]))
    assert static(plot(high)).axes[0].get_ylim()[0] == 0
    assert static(plot(high, zero=False)).axes[0].get_ylim()[0] > 5
    assert static(plot(high, log_y=True)).axes[0].get_yscale() == "log"
    over = interactive(plot(trace(), over_time=True))["layout"]
    assert over["xaxis"]["range"] == [0, 2] and over["margin"]["autoexpand"] is False


def test_rows_and_boxes_go_from_the_top_down() -> None:
    spans = Spans("s", "#111111", np.array([1.0]), np.array([2.0]), np.array([5.0]))
    rowed = plot(spans=[spans], rows=("a", "b"))
    axes = static(rowed).axes[0]
    assert axes.get_ylim() == (1.5, -0.5) and axes.patches[0].get_x() == 2
    assert axes.patches[0].get_width() == 3
    found = interactive(rowed)
    assert found["layout"]["yaxis"]["range"] == [1.5, -0.5]
    assert found["layout"]["xaxis"]["range"] == pytest.approx([0, 5.25])
    assert numbers(found["data"][0]["x"]) == pytest.approx([2, 5, 5, 2, 2, np.nan], nan_ok=True)
    assert numbers(found["data"][0]["y"])[:4] == pytest.approx([0.64, 0.64, 1.36, 1.36])
    box = box_of("b", "#111111", np.array([1.0, 2, 3, 4, 5]))
    assert (box.low, box.q1, box.median, box.q3, box.high) == (1, 2, 3, 4, 5)
    drawn = interactive(plot(boxes=[box]))["data"][0]
    assert (drawn["lowerfence"], drawn["q1"], drawn["q3"], drawn["upperfence"]) == (
        [1], [2], [4], [5],
    )  # fmt: skip
    assert drawn["orientation"] == "h" and drawn["y"] == ["b"]
    upright = interactive(plot(boxes=[Box("b", "#111111", 1, 2, 3, 4, 5, at=7.0)]))["data"][0]
    assert upright["x"] == [7] and "orientation" not in upright


def test_ticks_of_a_logarithmic_axis_are_1_2_and_5_of_up_to_four_decades() -> None:
    def ticks(low: float, high: float) -> list[float]:
        wide = trace(x=np.array([low, high]), y=np.ones(2))
        found: list[float] = interactive(plot(wide, log_x=10))["layout"]["xaxis"]["tickvals"]
        return found

    assert ticks(2, 50) == pytest.approx([1, 2, 5, 10, 20, 50, 100, 200, 500])
    assert len(ticks(1, 1e4)) == 15 and ticks(1, 1.1e4) == pytest.approx([10**n for n in range(6)])
    assert len(ticks(0, 50)) == 6


def test_panels_share_a_page_with_gaps() -> None:
    panels = [plot(trace(name=name)) for name in ("a", "b", "a")]
    grid = Grid("g", panels)
    layout = grid_figure_of(grid)["layout"]
    # Three in a row: two gaps of 0.05 leave 0.3 each.
    assert layout["xaxis"]["domain"] == pytest.approx([0, 0.3])
    assert layout["xaxis2"]["domain"] == pytest.approx([0.35, 0.65])
    assert layout["xaxis3"]["domain"] == pytest.approx([0.7, 1])
    narrow = grid_figure_of(grid)["narrow"]
    assert narrow["yaxis"]["domain"] == pytest.approx([1 - 0.8 / 3, 1])
    assert narrow["yaxis3"]["domain"] == pytest.approx([0, 0.8 / 3])
    assert [one["showlegend"] for one in grid_figure_of(grid)["data"]] == [True, True, False]
    assert [Grid("", panels[:1] * n).columns for n in (1, 2, 3, 4, 5)] == [1, 2, 3, 2, 3]
    assert layout["yaxis2"]["matches"] == "y" and "matches" not in layout["yaxis"]


def test_the_range_of_heat_maps_is_common() -> None:
    def heat(*values: float) -> Plot:
        return plot(heat=Heat(np.array([values]), ("a",) * len(values), ("b",), "h"))

    assert Grid("", [heat(1, math.nan), heat(5, 3)]).heat_range == (1, 5)
    assert Grid("", [heat(math.nan)]).heat_range is None and Grid("", [plot()]).heat_range is None
    assert plot().empty and not heat(1).empty and plot(trace(y=np.full(3, math.nan))).empty
    assert not plot(trace()).empty


def test_thinning_keeps_first_least_and_largest_of_each_stretch() -> None:
    x = np.arange(100.0)
    y = np.zeros(100)
    y[17], y[63], y[40] = 9, -9, math.nan
    few_x, few_y = thin(x, y, 10)
    assert len(few_x) <= 10 and {0, 17, 63, 99} <= set(few_x) and (np.diff(few_x) > 0).all()
    assert few_y[list(few_x).index(17)] == 9
    assert thin(x[:10], y[:10], 10)[0].size == 10 and thin(x[:11], y[:11], 10)[0].size <= 10


def test_a_distribution_begins_at_share_zero() -> None:
    x, y = cdf(np.array([3.0, 1, math.nan, 1, 5]))
    assert x.tolist() == [1, 1, 1, 3, 5] and y.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert cdf(np.array([math.nan]))[0].size == cdf(np.array([math.nan]))[1].size == 0


def test_a_look_changes_scales_and_names() -> None:
    one = plot(trace(), spans=[Spans("s", "#1", *(np.ones(1),) * 3)])
    log: Any = dressed(one, Look(log_x=True, log_y=True, title=False, labels={"a": "b", "y": "z"}))
    assert (log.log_x, log.log_y, log.zero, log.title) == (10, True, False, "")
    assert log.traces[0].name == "b" and log.y_title == "z" and log.x_title == "x"
    usual: Any = dressed(one, Look())
    assert (usual.log_x, usual.log_y, usual.zero, usual.title) == (0, False, True, "t")
    heat: Any = dressed(plot(heat=Heat(np.ones((1, 1)), ("a",), ("b",), "h"), rows=("r",)),
                        Look(log_x=True, log_y=True))  # fmt: skip
    assert heat.log_x == 0 and not heat.log_y
    assert unknown_labels([one], Look(labels={"a": "", "s": "", "x": "", "q": ""})) == ["q"]


def test_lines_of_one_colour_differ() -> None:
    looks = [(style.dash(n), style.opacity(n)) for n in range(16)]
    assert len(set(looks)) == 16 and looks[0] == ("solid", 1.0) and looks[4] == ("solid", 0.7)
    assert style.line_colour(0) == style.line_colour(12) != style.line_colour(11)
    assert style.phase_order({"up", "zeta", "startup", "alpha"}) == [
        "startup",
        "up",
        "alpha",
        "zeta",
    ]
    assert style.cc_colour("cubic") == "#0072b2" and style.cc_colour("my") == style.cc_colour("my")


def test_a_file_keeps_its_colour_and_no_other_line_has_that_of_an_algorithm() -> None:
    assert style.cc_colour("mine@0123") == style.cc_colour("mine@4567") == style.cc_colour("mine")
    assert not {style.line_colour(place) for place in range(12)} & set(style.CC_COLOURS.values())


def test_points_beyond_the_axes_are_told() -> None:
    figure = static(plot(trace()))
    assert points_outside(figure) == []
    figure.axes[0].set_xlim(0, 1.5)
    assert points_outside(figure) == ["a: 1 of 3 points"]
    assert as_json({"a": [1.0, math.nan], "b": math.inf}) == '{"a":[1.0,null],"b":null}'


def summary(**more: Any) -> dict[str, Any]:
    usual = {
        "goodput_bps": 5e6, "jain": 0.9, "ping_ms": {"p50": 20.0, "p95": 30.0}, "flows": [],
        "completion": None,
        "limit": {"utilisation": 0.5, "loss_ratio": 0.01, "wait_ms": None,
                  "queue_delay_ms": {"p50": 5.0, "p95": 15.0},
                  "queue_delay_rttmin": {"p50": 0.25, "p95": 0.75}},
    }  # fmt: skip
    return {**usual, **more}


def test_rows_of_a_comparison_are_in_the_units_that_people_read() -> None:
    rows = compare_runs({"a": [summary()], "b": [summary(jain=None)]})
    assert {(row.metric, row.unit): row.cells["a"].mean for row in rows} == {
        ("goodput", "Mbit/s"): 5, ("utilisation", "%"): 50, ("loss", "%"): 1,
        ("queueing delay p50", "ms"): 5, ("queueing delay p95", "ms"): 15,
        ("queueing delay p50", "RTTmin"): 0.25, ("queueing delay p95", "RTTmin"): 0.75,
        ("ping p50", "ms"): 20, ("ping p95", "ms"): 30,
    }  # fmt: skip


@pytest.mark.parametrize("runs", [1, 2, 3, 4])
def test_a_cell_has_an_interval_from_three_runs_on(runs: int) -> None:
    values = [1.0, 2.0, 4.0, 8.0][:runs]
    row = compare_values("m", "", 3, {"a": values})
    assert row is not None and row.test is None
    cell = row.cells["a"]
    assert (cell.n, cell.mean, cell.values) == (runs, pytest.approx(np.mean(values)), values)
    assert (cell.low is None) == (cell.method is None) == (runs < 3)
    if cell.low is not None and cell.high is not None:
        # Student's t of a table: 4.303 for three runs, 3.182 for four.
        half = {3: 4.303, 4: 3.182}[runs] * np.std(values, ddof=1) / runs**0.5
        assert cell.high - cell.mean == pytest.approx(half, rel=1e-3)
        assert cell.low == 0 if runs == 3 else cell.low == pytest.approx(max(cell.mean - half, 0))
    equal = compare_values("m", "", 3, {"a": [2.0] * runs})
    assert equal is not None
    assert equal.cells["a"].method == ("constant" if runs >= 3 else None)


def test_groups_are_tested_by_welch_and_by_ranks() -> None:
    first, second = [1.0, 2, 3], [4.0, 6, 9, 5]
    row = compare_values("m", "", 3, {"a": first, "b": second})
    assert row is not None and row.test is not None and row.test.name == "Welch's t-test"
    assert row.test.p_value == pytest.approx(stats.ttest_ind(first, second, equal_var=False).pvalue)
    assert row.test.kruskal_wallis_p == pytest.approx(stats.kruskal(first, second).pvalue)
    three = compare_values("m", "", 3, {"a": first, "b": second, "c": [1.0, 5]})
    assert three is not None and three.test is not None and three.test.name == "Welch's ANOVA"
    told = {
        "needs 2 runs of each": {"a": [1.0], "b": [1.0, 2]},
        "all runs of a are equal": {"a": [1.0, 1], "b": [1.0, 2]},
        "runs do not vary, the means differ": {"a": [1.0, 1], "b": [2.0, 2]},
        "runs do not vary, the means are equal": {"a": [1.0, 1], "b": [1.0, 1]},
    }
    for missing, groups in told.items():
        found = compare_values("m", "", 3, groups)
        assert found is not None and found.test is not None
        assert found.test.missing == missing and found.test.p_value is None
    for unknown in (None, math.nan, math.inf):
        assert compare_values("m", "", 3, {"a": [1.0, unknown], "b": [1.0, 2]}) is None
    assert compare_values("m", "", 3, {"a": [], "b": [1.0]}) is None


def shares(*flows: tuple[str, str, float | None]) -> dict[str, Any]:
    return {"flows": [dict(zip(("cc", "direction", "share"), one, strict=True)) for one in flows]}


def test_shares_are_sums_over_flows_and_unknown_where_one_is() -> None:
    run = shares(("bbr3", "up", 0.5), ("bbr3", "up", 0.2), ("cubic", "up", 0.3))
    (row,) = compare_shares([run])
    assert {name: cell.mean for name, cell in row.cells.items()} == {
        "bbr3": pytest.approx(0.7), "cubic": pytest.approx(0.3),
    }  # fmt: skip
    assert row.test is None and row.metric == "share of goodput"
    # The share of a congestion control of which one flow is unknown is unknown.
    assert (
        compare_shares([shares(("bbr3", "up", 0.5), ("bbr3", "up", None), ("cubic", "up", 0.5))])
        == []
    )
    assert compare_shares([shares(("bbr3", "up", 1.0))]) == []
    both = shares(("bbr3", "up", 1.0), ("bbr3", "down", 0.4), ("reno", "down", 0.6))
    (row,) = compare_shares([both])
    assert list(row.cells) == ["bbr3, up", "bbr3, down", "reno, down"]


def test_harm_is_of_the_last_group_seed_by_seed() -> None:
    def run(goodput: float, ping: float, again: float) -> dict[str, Any]:
        groups = [{"group": "own"}, {"group": "others.1-2", "goodput_bps": {"mean": goodput},
                                     "retransmit_ratio": again}]  # fmt: skip
        return {"groups": groups, "ping_ms": {"p95": ping}}

    rows = compare_harm([run(8, 20, 0), run(4, 40, 0)], {"x": [run(4, 40, 0), run(3, 40, 0)]})
    values = {row.metric: row.cells["x"].values for row in rows}
    # Nothing was sent again in either, so that there is no harm to it.
    assert values == {"harm: goodput": [0.5, 0.25], "harm: ping p95": [0.5, 0]}


def of_runs(folder: Path, deliveries: list[list[int]], ccs: tuple[str, ...] = ("bbr3",)) -> Group:
    """A group of runs; of each the bytes that its first flow delivered by each second."""
    runs = []
    for number, delivered in enumerate(deliveries):
        path = {**of_a_link()["path"], "qdisc": {"limit_bytes": 40_960, "aqm": {"kind": "fifo"}}}
        plan = {**of_a_link(), "path": path, "sample_interval_ns": 10**9,
                "duration_ns": len(delivered) * 10**9}  # fmt: skip
        rows = [row for n in range(len(ccs)) for row in samples(n, delivered)]
        flows = [flow(n, cc=cc) for n, cc in enumerate(ccs)]
        view = recorded(folder / str(number), plan=plan, flows=flows, flow_samples=rows,
                        queue_samples=queue([0, 10_240] * (len(delivered) // 2)),
                        metadata={"seed": number})  # fmt: skip
        runs.append(read_run(view.recording))
    return Group("g", runs)


def test_repetitions_are_a_mean_with_students_interval_cut_at_zero(tmp_path: Path) -> None:
    deliveries = [[MB, 2 * MB], [2 * MB, 2 * MB], [3 * MB, 5 * MB]]
    throughput = next(
        p for p in group_plots(of_runs(tmp_path, deliveries)) if p.key == "throughput"
    )
    line = throughput.traces[0]
    # 8, 16, 24 Mbit/s in the first second, 8, 0, 16 in the next.
    half = 4.3026527 * 8 / math.sqrt(3)
    assert line.y == pytest.approx([16, 8]) and line.shape == "before" and line.band is not None
    assert line.band[1] == pytest.approx([16 + half, 8 + half])
    assert line.band[0] == pytest.approx([max(0, 16 - half), 0])
    assert "mean of 3 runs with its 95 % interval" in throughput.note
    two = next(p for p in group_plots(of_runs(tmp_path / "two", deliveries[:2]))
               if p.key == "throughput")  # fmt: skip
    assert two.traces[0].band is None and "an interval needs 3" in two.note


def test_plots_over_time_are_in_the_units_of_their_axes(tmp_path: Path) -> None:
    group = of_runs(tmp_path, [[MB, 3 * MB]])
    plots = {one.key: one for one in time_plots(group.runs[0])}
    throughput = plots["throughput"].traces
    assert throughput[0].y == pytest.approx([8, 16]) and throughput[0].shape == "before"
    reference = throughput[-1]
    assert reference.is_reference and reference.y.tolist() == [8, 8]
    backlog = plots["queue"]
    assert backlog.traces[0].y == pytest.approx([0, 10])
    # A KiB at 8 Mbit/s takes 1.024 ms, of 20 ms; the limit of 40 KiB is more than 3 x 10.
    assert backlog.right == ("delay (RTTmin)", pytest.approx(1.024 / 20))
    assert [one.name for one in backlog.traces] == ["queue"] and "limit 40 KiB" in backlog.note


@pytest.mark.parametrize(
    ("seconds", "sample_s", "window"),
    [
        (10, 0.01, 0.05),
        (10, 0.1, 0.1),
        (100, 0.01, 0.5),
        (41, 0.01, 0.5),
        (40, 0.01, 0.2),
        (2, 0.03, 0.06),
    ],
)
def test_a_window_is_round_and_whole_samples(
    seconds: float, sample_s: float, window: float
) -> None:
    # At least a 200th of the run and two round trips of 20 ms.
    run: Any = SimpleNamespace(
        metadata=SimpleNamespace(plan=SimpleNamespace(sample_interval_ns=sample_s * 1e9))
    )
    view: Any = SimpleNamespace(rtt_min_s=0.02, start_s=0.0, end_s=seconds)
    assert window_s(run, view) == pytest.approx(window)


def test_distributions_of_flows_are_in_mbit_from_five_flows_on(tmp_path: Path) -> None:
    ccs = ("bbr3",) * MIN_CDF_FLOWS + ("cubic",) * (MIN_CDF_FLOWS - 1)
    group = of_runs(tmp_path, [[MB, 2 * MB]], ccs)
    plots = {one.key: one for one in cdf_plots([group])}
    (line,) = plots["goodput_cdf"].traces
    assert line.shape == "after" and set(line.x) == {8} and line.y[-1] == 1
    delays = plots["queue_cdf"].traces[0]
    # 10,240 B at 1 MB/s over 20 ms.
    assert delays.x == pytest.approx([0, 0, 0.512]) and delays.y == pytest.approx([0, 0.5, 1])
    boxes = {one.key: one for one in box_plots([group])}["goodput_box"].boxes
    assert [(box.median, box.points.size) for box in boxes] == [(8, 5), (8, 4)]


def test_decades_of_static_axes_have_plain_numbers() -> None:
    def labels(low: float, high: float, base: float = 10) -> list[str]:
        found = static(plot(trace(x=np.array([low, high]), y=np.ones(2)), log_x=base))
        found.axes[0].set_xlim(low, high)
        axis = found.axes[0].xaxis
        places = [one for one in axis.get_majorticklocs() if low <= one <= high]
        return [axis.get_major_formatter()(one, 0) for one in places]

    assert labels(1, 100) == ["1", "2", "5", "10", "20", "50", "100"]
    assert labels(1, 10_000) == ["1", "10", "100", "1000", "10000"]
    assert "2" not in labels(4, 16, 2)  # powers of two as Matplotlib writes them


def test_figures_are_as_wide_as_asked_and_as_high_as_their_rows() -> None:
    def size(made: Plot, **look: Any) -> tuple[float, float]:
        width, height = static(made, look=Look(**look)).get_size_inches()
        return float(width), float(height)

    assert size(plot(trace())) == (7.5, 2.8)
    rows = plot(rows=("a", "b", "c"))
    assert size(rows) == (7.5, pytest.approx(2.1)) and size(plot(rows=("a",)))[1] == 1.8
    boxes = [Box("b", "#111111", 1, 2, 3, 4, 5)] * 4
    assert size(plot(boxes=boxes))[1] == pytest.approx(2.4)
    assert size(plot(boxes=[Box("b", "#111111", 1, 2, 3, 4, 5, at=1.0)]))[1] == 2.8
    # Narrow figures keep their shape, and have their legend below.
    assert size(plot(trace()), width_in=4.0) == (4, pytest.approx(2.72))
    assert size(plot(trace()), width_in=5.0)[1] == 2.8
    two = size(plot(trace(), trace(name="b")), width_in=4.0)
    assert two[1] == pytest.approx(2.72 + 0.016 * 9)
    assert size(rows, width_in=4.0)[1] == pytest.approx(2.1)
    panels = Grid("g", [plot(trace())] * 3)
    found = static(panels).get_size_inches()
    assert found == pytest.approx([3 * 3.3 + 1.6, 2.7 + 0.6])


def test_rows_over_time_end_with_the_run() -> None:
    spans = Spans("s", "#111111", np.array([0.0]), np.array([1.0]), np.array([4.0]))
    over = interactive(plot(spans=[spans], rows=("a",), over_time=True))["layout"]
    assert over["xaxis"]["range"] == [0, 4]
    alarm = interactive(plot(trace()), "a < b")["layout"]["annotations"][0]
    assert alarm["text"] == "<b>a &lt; b</b>"
    assert "annotations" not in interactive(plot(trace()))["layout"]
    heights = [interactive(plot(*[trace(name=str(n)) for n in range(count)]))["layout"]["height"]
               for count in (1, 11, 12, 24, 30)]  # fmt: skip
    assert heights == [330, 330, 340, 580, 580]
    assert interactive(plot(rows=("a", "b")))["layout"]["height"] == 130 + 68


def of_one(folder: Path, **tables: Any) -> Any:
    """The only run of a recording of 10 s with these tables."""
    path = {**of_a_link()["path"], "qdisc": {"limit_bytes": 10_240, "aqm": {"kind": "fifo"}}}
    plan = {**of_a_link(), "path": path, "sample_interval_ns": 10**9,
            **tables.pop("plan", {})}  # fmt: skip
    flows = tables.pop("flows", [flow(0)])
    metadata = tables.pop("metadata", {})
    rows = tables.pop("flow_samples", samples(0, [MB * n for n in range(10)]))
    view = recorded(folder, plan=plan, flows=flows, flow_samples=rows, metadata=metadata, **tables)
    return read_run(view.recording)


def drawn(run: Any) -> dict[str, Plot]:
    return {one.key: one for one in time_plots(run)}


def test_windows_round_trips_and_rates_over_time_in_their_units(tmp_path: Path) -> None:
    count = range(10)
    rows = samples(0, [0] * 10, cwnd_packets=[10 + n for n in count], srtt_us=[25_000] * 10,
                   inflight_packets=[5] * 10, pacing_rate_bps=[4_000_000] * 10)  # fmt: skip
    own = [{"t_us": (n + 1) * MB, "flow_id": 0, "phase": "up" if n < 4 else "down",
            "bw_bps": 3_000_000} for n in count]  # fmt: skip
    events = [{"t_us": 2_500_000, "flow_id": 0, "event": "recovery"},
              {"t_us": 3 * MB, "flow_id": 0, "event": "start"}]  # fmt: skip
    pings = [{"t_us": MB, "probe": "p", "seq": 0, "rtt_us": 30_000}]
    plots = drawn(of_one(tmp_path, flow_samples=rows, cc_samples=own, events=events,
                         ping_samples=pings, queue_samples=queue([5120] * 10)))  # fmt: skip
    window, inflight, mark = plots["cwnd"].traces
    assert window.x[0] == 1 and window.y[-1] == 19 and set(inflight.y) == {5}
    # The event at 2.5 s stands on the window of 2 s.
    assert (mark.x.tolist(), mark.y.tolist(), mark.mark) == ([2.5], [11], "x")
    rtt, base = plots["rtt"].traces
    assert set(rtt.y) == {25} and base.is_reference and set(base.y) == {20}
    paced, estimate, capacity = plots["rates"].traces
    assert (set(paced.y), set(estimate.y), set(capacity.y)) == ({4}, {3}, {8})
    assert plots["ping"].traces[0].y.tolist() == [30]
    down, up = sorted(plots["phases"].spans, key=lambda one: one.name)
    assert (up.starts.tolist(), up.ends.tolist()) == ([0], [4])
    assert (down.starts.tolist(), down.ends.tolist()) == ([4], [10])
    # A limit of 10 KiB is within 3 x 5 KiB, so that it is drawn.
    limit = plots["queue"].traces[1]
    assert limit.is_reference and set(limit.y) == {10}


def test_a_rate_in_steps_is_drawn_until_the_end(tmp_path: Path) -> None:
    plan = of_a_link(rate_steps=[[4 * 10**9, 4_000_000], [20 * 10**9, 1_000_000]])
    plots = drawn(of_one(tmp_path, plan={"links": plan["links"]}, queue_samples=queue([4000] * 10)))
    rate = plots["throughput"].traces[-1]
    assert (rate.x.tolist(), rate.y.tolist(), rate.shape) == ([0, 4, 10], [8, 4, 4], "after")
    delay = plots["queue_delay"]
    # 4000 B at 1 MB/s take 4 ms, at half of it 8.
    assert delay.traces[0].y == pytest.approx([4] * 3 + [8] * 7)
    assert delay.right == ("delay (RTTmin)", pytest.approx(1 / 20))


def test_flows_of_one_direction_are_added_up(tmp_path: Path) -> None:
    flows = [flow(0), flow(1), flow(2, direction="down")]
    rows = [row for n in range(3) for row in samples(n, [MB // 4 * k for k in range(10)])]
    traces = {one.name: one for one in drawn(of_one(tmp_path, flows=flows, flow_samples=rows))[
        "throughput"].traces}  # fmt: skip
    assert traces["all uploads"].y[1:] == pytest.approx([4] * 9)
    assert "all downloads" not in traces


def test_variables_are_in_units_that_people_read(tmp_path: Path) -> None:
    about = {"bbr3": {"wait_us": {"unit": "us", "meaning": "a wait"},
                      "bound_bps": {"unit": "bit/s", "meaning": "a bound"}}}  # fmt: skip
    view = recorded(tmp_path, flows=[flow(0)], flow_samples=samples(0, [0] * 2))
    own: Any = {"flow_id": np.zeros(2), "t_us": np.array([MB, 2 * MB]),
                "wait_us": np.array([1500.0, 2500]), "bound_bps": np.array([2e6, 3e6])}  # fmt: skip
    view.samples = lambda _table: own  # type: ignore[method-assign]
    described: Any = {cc: {name: SimpleNamespace(**one) for name, one in some.items()}
                      for cc, some in about.items()}  # fmt: skip
    line: Any = SimpleNamespace(id=0, name="f")
    plots = {one.y_title: one for one in variable_plots(view, described, [line])}
    assert plots["ms"].traces[0].y == pytest.approx([1.5, 2.5])
    assert plots["Mbit/s"].traces[0].y == pytest.approx([2, 3])
    assert plots["ms"].traces[0].name == "f wait" and plots["ms"].traces[0].x.tolist() == [1, 2]


def test_page_times_are_drawn_in_ms_and_the_median_load_as_a_waterfall(tmp_path: Path) -> None:
    page = {"name": "home", "cc": {"name": "bbr3"}, "objects": [{"bytes": 1024}]}
    loads = [{"page_id": 0, "load": n, "start_us": n * MB, "done_us": n * MB + took}
             for n, took in enumerate((300_000, 100_000, 200_000))]  # fmt: skip
    objects = [{"page_id": 0, "load": 2, "object": 0, "asked_us": 2 * MB + 50_000,
                "first_byte_us": 2 * MB + 80_000, "done_us": 2 * MB + 200_000}]  # fmt: skip
    run = of_one(tmp_path, plan={"pages": [page]}, page_loads=loads, page_objects=objects)
    plots = drawn(run)
    assert plots["page_time"].traces[0].y == pytest.approx([300, 100, 200])
    first, last = plots["waterfall0"].spans
    assert (first.starts.tolist(), first.ends.tolist()) == ([50], [80])
    assert (last.starts.tolist(), last.ends.tolist()) == ([80], [200])
    assert "load 3, whose 200 ms are the median of 3 loads" in plots["waterfall0"].note
    assert plots["waterfall0"].rows == ("1: 1 KiB",)
    curve = next(one for one in cdf_plots([Group("g", [run])]) if one.key == "page_cdf").traces[0]
    # A distribution in ms, as steps.
    assert curve.x == pytest.approx([100, 100, 200, 300]) and curve.shape == "after"


def test_slowdown_over_size_is_of_parts_of_twenty_flows(tmp_path: Path) -> None:
    group = {"name": "web", "cc": {"name": "cubic"}, "direction": "up"}
    usual = {"group_id": 0, "base_rtt_us": 20_000, "pause_us": 0, "chunks": 1, "packets_sent": 1,
             "packets_retransmitted": 0, "timeouts": 0}  # fmt: skip
    rows = [
        {**usual, "number": n, "start_us": n * 10_000, "completion_us": n * 10_000 + 50_000,
         "size_bytes": 1000 if n < 20 else 100_000}
        for n in range(40)
    ]  # fmt: skip
    run = of_one(tmp_path, plan={"traffic": [group]}, traffic=rows)
    plots = {one.key: one for one in cdf_plots([Group("g", [run])])}
    line = plots["slowdown_size"].traces[0]
    assert line.x == pytest.approx([3, 5])
    small, large = (0.05 / (size * 1514 / 1448 / 1e6 + 0.02) for size in (1000, 100_000))
    assert line.y == pytest.approx([small, large])
    assert plots["slowdown_cdf"].traces[0].shape == "after"
    counts = drawn(run)["at_once"].traces[0]
    assert counts.shape == "after" and counts.y.max() == 5


def test_runs_are_grouped_by_what_is_equal_but_the_seed(tmp_path: Path) -> None:
    one = of_one(tmp_path / "a", metadata={"seed": 1}, plan={"seed": 1})
    two = of_one(tmp_path / "b", metadata={"seed": 2}, plan={"seed": 2})
    other = of_one(tmp_path / "c", metadata={"seed": 1, "engine": "vm"}, plan={"seed": 1})
    named = of_one(tmp_path / "d", metadata={"seed": 1}, plan={"seed": 1, "name": "else"})
    longer = of_one(
        tmp_path / "e", metadata={"seed": 1}, plan={"seed": 1, "duration_ns": 9 * 10**9}
    )
    groups = grouped([one, two, other, named, longer])
    assert [(group.label, len(group.runs)) for group in groups] == [
        ("by hand, a", 2), ("by hand, c", 1), ("else", 1), ("by hand, e", 1),
    ]  # fmt: skip
    assert groups[0].count == "n = 2 runs" and groups[1].count == "n = 1 run"


def test_commands_repeat_seeds_in_a_row(tmp_path: Path) -> None:
    def run(seed: int) -> Any:
        return SimpleNamespace(
            metadata=SimpleNamespace(seed=seed, engine="sim", options={"a_b": "c d"}),
            recording=SimpleNamespace(document={"name": "x"}),
        )

    def of(*seeds: int) -> list[str]:
        group: Any = SimpleNamespace(runs=[run(seed) for seed in seeds])
        return [line.removeprefix("fullpipe run scenario.toml --engine sim --a-b 'c d'")
                for line in commands(group)]  # fmt: skip

    assert of(1) == [""] and of(2) == [" --set seed=2"] and of(2, 1, 3) == [" --repeat 3"]
    assert of(1, 2, 5, 6, 7, 9) == [
        " --repeat 2", " --set seed=5 --repeat 3", " --set seed=9",
    ]  # fmt: skip


def test_a_path_in_one_line(tmp_path: Path) -> None:
    run = of_one(tmp_path)
    # 8 Mbit/s x 20 ms are 20,000 B.
    assert path_line([run]) == "8 Mbit/s, base RTT 20 ms, fifo queue of 10 KiB (0.512 BDP)"


def test_models_are_drawn_beside_what_was_measured(tmp_path: Path) -> None:
    document = {"name": "m", "duration": "2s", "path": {"rate": "8mbit", "rtt": "20ms"},
                "flow": [{"cc": "bbr1"}, {"cc": "cubic"}]}  # fmt: skip
    plan = resolve(make_scenario(document))
    rows = samples(0, [MB // 2, MB]) + samples(1, [MB // 4, MB // 2])
    flows = [flow(0, cc="bbr1"), flow(1, cc="cubic")]
    view = recorded(tmp_path, plan=json.loads(json.dumps(plan)), flows=flows, flow_samples=rows,
                    queue_samples=queue([0, 1000]), metadata={"seed": 1},
                    scenario=tomli_w.dumps(document))  # fmt: skip
    found = compare(Group("g", [read_run(view.recording)]))
    assert found is not None and found.ccs == ["bbr1", "cubic"]
    first = found.rows[0]
    assert first["shares"] == {"bbr1": pytest.approx(0.5), "cubic": pytest.approx(0.25)}
    assert first["queue_bytes"] == 500 and first["measured"]
    assert first["jain"] == pytest.approx(9 / 10)
    points = found.plot.traces[0]
    assert points.x == pytest.approx([0.5]) and points.y.tolist() == [0]
    model = found.plot.traces[2]
    assert model.y[:2] == pytest.approx([-0.35, 0.35]) and np.isnan(model.y[2])
    assert found.rows[1]["shares"]["bbr1"] == pytest.approx(model.x[0])


def test_static_boxes_and_heat_maps_stand_where_they_belong() -> None:
    low = Box("a", "#111111", 1, 2, 3, 4, 5, points=np.array([2.0, 4.0]))
    axes = static(plot(boxes=[low, low])).axes[0]
    assert axes.get_ylim() == (1.5, -0.5)
    # The median of the second box is a vertical line in its row.
    medians = [line for line in axes.lines if set(line.get_xdata()) == {3}]
    assert [np.mean(line.get_ydata()) for line in medians] == pytest.approx([0, 1])
    points = [line for line in axes.lines if line.get_marker() == "."]
    assert points[0].get_xdata().tolist() == [2, 4]
    assert points[0].get_ydata() == pytest.approx([-0.1, -0.05])
    upright = Box("a", "#111111", 1, 2, 3, 4, 5, at=7.0, width=2.0)
    axes = static(plot(boxes=[upright])).axes[0]
    (median,) = [line for line in axes.lines if list(line.get_ydata()) == [3, 3]]
    assert np.mean(median.get_xdata()) == 7 and np.ptp(median.get_xdata()) == 2
    heat = Heat(np.array([[0.0, 4.0], [1.9, 2.1]]), ("a", "b"), ("c", "d"), "h")
    axes = static(plot(heat=heat)).axes[0]
    # White on what is dark: below the middle of 0 and 4.
    assert [(text.get_text(), text.get_color()) for text in axes.texts] == [
        ("0", "white"), ("4", "black"), ("1.9", "white"), ("2.1", "black"),
    ]  # fmt: skip
    assert axes.images[0].get_clim() == (0, 4)
    for lines, columns, is_shown in ((10, 15, True), (11, 14, False)):
        labels = ("a",) * columns, ("b",) * lines
        large = Heat(np.ones((lines, columns)), *labels, "h")
        assert bool(static(plot(heat=large)).axes[0].texts) == is_shown


def test_long_ticks_are_turned_and_none_stands_at_zero_of_a_logarithm() -> None:
    def turned(letters: int) -> float:
        made = plot(trace(), x_ticks=tuple((at / 2, "x" * letters) for at in range(5)))
        return float(static(made).axes[0].get_xticklabels()[1].get_rotation())

    assert (turned(4), turned(40)) == (0, 45)
    ticks = ((0.0, "0"), (1.0, "1"))
    assert static(plot(trace(), x_ticks=ticks, log_x=10)).axes[0].get_xticks().tolist() == [1]
    assert static(plot(trace(), x_ticks=ticks)).axes[0].get_xticks().tolist() == [0, 1]


def test_a_box_shows_its_points_up_to_two_hundred(tmp_path: Path) -> None:
    def shown(flows: int) -> int:
        rows = [row for n in range(flows) for row in samples(n, [0, MB])]
        run = of_one(tmp_path / str(flows), flows=[flow(n) for n in range(flows)],
                     flow_samples=rows, queue_samples=queue([10, 20]))  # fmt: skip
        plots = {one.key: one for one in box_plots([Group("g", [run])])}
        assert plots["queue_box"].boxes[0].points.size == 0  # samples are no points
        return plots["goodput_box"].boxes[0].points.size

    assert (shown(200), shown(201)) == (200, 0)


def warned(*warnings: str) -> Any:
    run = SimpleNamespace(warnings=list(warnings), ccs=["x"])
    run.mark = ", ".join(dict.fromkeys(text.split()[0].rstrip(":").upper() for text in warnings))
    return run


def test_a_group_says_how_many_runs_are_not_to_be_trusted() -> None:
    fine = Group("g", [warned()])
    assert (fine.count, fine.mark, fine.alarm) == ("n = 1 run", "", "")
    bad = Group("g", [warned("unhealthy: a"), warned(), warned("unhealthy: b", "interrupted")])
    assert bad.mark == "1 UNHEALTHY, 1 UNHEALTHY, INTERRUPTED"
    assert bad.alarm == "g: 2 of 3: unhealthy: a; unhealthy: b; interrupted"


def test_facts_of_a_group_say_what_ran(tmp_path: Path) -> None:
    runs = [of_one(tmp_path / str(seed), flows=[flow(0), flow(1), flow(2, cc="cubic")],
                   metadata={"seed": seed, "kernel": "6.1", "health": {"load": 3, "problems": []}})
            for seed in (4, 5)]  # fmt: skip
    found = dict(facts(Group("g", runs)))
    assert found["flows"] == "2 x bbr3, 1 x cubic" and found["duration"] == "10 s"
    assert found["seeds"] == "4, 5" and found["commit"] == "not recorded"
    assert (
        found["kernel"] == "6.1" and found["the instrument's own figures, first run"] == "load: 3"
    )
    assert found["warm-up, left out of metrics"] == "0 ns"


def test_a_headline_has_five_figures_and_shares(tmp_path: Path) -> None:
    rows = samples(0, [MB // 2, MB]) + samples(1, [MB // 4, MB // 2])
    run = of_one(tmp_path, flows=[flow(0), flow(1, cc="cubic")], flow_samples=rows,
                 queue_samples=queue([0, 10_000], sent_bytes=[0, MB]))  # fmt: skip
    found = headline(Group("g", [run]))
    figures = {one.name: (one.cell.mean, one.unit) for one in found.figures}
    assert figures["Utilisation"] == (pytest.approx(50), "%")
    assert figures["Fairness (Jain)"] == (pytest.approx(0.9), "")
    assert figures["Queueing delay, median"] == (pytest.approx(5), "ms")
    assert {one.name: one.cell.mean for one in found.shares} == {
        "bbr3": pytest.approx(2 / 3), "cubic": pytest.approx(1 / 3),
    }  # fmt: skip
    assert found.shares[1].colour == style.cc_colour("cubic") and found.error == ""


def test_a_trace_of_opportunities_is_drawn_as_means_of_windows(tmp_path: Path) -> None:
    # A packet of 1514 B each 10 ms: 1.2112 Mbit/s.
    file = tmp_path / "trace"
    file.write_text("".join(f"{10 * n}\n" for n in range(1, 101)))
    known = {"path": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    links = of_a_link(rate_trace=known)["links"]
    plots = drawn(of_one(tmp_path, plan={"links": links}))
    rate = plots["throughput"].traces[-1]
    assert rate.shape == "before" and rate.x[0] == 1 and rate.x.size == 10
    # What may leave at the very end of a window counts in the next.
    assert rate.y == pytest.approx([0.99 * 1.2112, *[1.2112] * 9])
