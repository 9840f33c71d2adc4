"""Plots of a store show the means and intervals that a hand calculation gives."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from scipy import stats
from typer.testing import CliRunner

from fullpipe import cli
from fullpipe.base.errors import UserError
from fullpipe.cli.app import app
from fullpipe.plots.plotly_renderer import grid_figure_of
from fullpipe.plots.style import CC_COLOURS
from fullpipe.statistics.factorial import factorial_anova
from fullpipe.statistics.groups import StatisticsError
from fullpipe.sweep.chart import KINDS, Request, make_chart, run_values
from fullpipe.sweep.store import Store
from sweep_files import filled, sweep


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("plots") / "store"
    return filled(folder, sweep(sweep={"seeds": 3}))[0]


def test_a_point_is_the_mean_over_runs_with_students_interval(store: Store) -> None:
    chart = make_chart(store, Request("share", "rtt", "cc", "buffer"))
    assert [panel.title for panel in chart.panels] == ["buffer 0.5", "buffer 1", "buffer 4"]
    panel = chart.panels[0]
    assert panel.x_title == "base RTT (ms)"
    line = next(one for one in panel.traces if one.name == "bbr3")
    assert line.x.tolist() == [10, 40]
    found = run_values(store, "share", [], "own_cc and buffer = 0.5 and rtt = '10ms'")[0]
    runs = np.array(found)
    assert runs.size == 3
    low, high = stats.t.interval(0.95, 2, runs.mean(), stats.sem(runs))
    assert line.y[0] == pytest.approx(runs.mean()) and line.band is not None
    assert (line.band[0][0], line.band[1][0]) == (pytest.approx(low), pytest.approx(high))


def test_lines_of_congestion_controls_have_their_colours_and_all_others_differ(
    store: Store,
) -> None:
    line, fair = make_chart(store, Request("share", "rtt", "cc")).panels[0].traces
    assert fair.is_reference
    assert line.colour == CC_COLOURS["bbr3"]
    others = make_chart(store, Request("utilisation", "rtt", "buffer")).panels[0].traces
    assert len({line.colour for line in others}) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_plotlys_own_classes_know_every_key_and_value_of_a_grid(store: Store, kind: str) -> None:
    x = "queue_delay_p95_ms" if kind == "pareto" else "rtt"
    chart = make_chart(store, Request("share", x, "cc", "buffer", kind))
    figure = grid_figure_of(chart)
    for layout in ("layout", "narrow"):
        checked = go.Figure(figure["data"], figure[layout]).to_dict()
        assert len(checked["data"]) == len(figure["data"]) >= 3
        tops = {axis["domain"][1] for name, axis in checked["layout"].items() if "yaxis" in name}
        assert len(tops) == (3 if layout == "narrow" else 1), "three panels in a column or a row"


def test_by_an_axis_of_flows_only_the_flows_with_its_value_count(tmp_path: Path) -> None:
    """The competitor is CUBIC too, begins late and sends 20 KB: it is no part of any line."""
    axes = {"rtt": ["10ms", "40ms"], "buffer": [1], "cc": ["bbr3", "cubic"]}
    store, _ = filled(tmp_path / "store", sweep(axis=axes))
    (asked,) = store.sweeps().values()
    cells = {row["key"]: (row["cc"], row["rtt_s"]) for row in asked.to_pylist()}
    wanted: dict[tuple[str, float], list[float]] = {}
    for row in store.table("flows").to_pylist():
        if row["flow_id"] == 0:
            wanted.setdefault(cells[row["key"]], []).append(row["share"])
    chart = make_chart(store, Request("share", "rtt", "cc"))
    assert chart.note.endswith("; only flows whose cc is the cell's")
    found = {
        (line.name, x / 1e3): y
        for line in chart.panels[0].traces
        if not line.is_reference
        for x, y in zip(line.x, line.y, strict=True)
    }
    assert found == pytest.approx({place: np.mean(values) for place, values in wanted.items()})
    values, factors = run_values(store, "share", ["cc"])
    assert sorted(values) == pytest.approx(sorted(one for some in wanted.values() for one in some))
    assert set(factors["cc"]) == {"bbr3", "cubic"}
    # Of metrics of the path and of runs there is one value a run, and one meaning.
    of_path = make_chart(store, Request("utilisation", "rtt", "cc"))
    assert {line.name for line in of_path.panels[0].traces} == {"bbr3", "cubic"}
    every = make_chart(store, Request("share", "rtt", "flow_cc"))
    names = {line.name for line in every.panels[0].traces if not line.is_reference}
    assert names == {"bbr3", "cubic"}
    assert "only flows" not in every.note


def test_a_heat_map_has_an_axis_in_the_order_of_its_quantities(store: Store) -> None:
    chart = make_chart(store, Request("utilisation", "rtt", "buffer", kind="heat"))
    heat = chart.panels[0].heat
    assert heat is not None and heat.values.shape == (3, 2)
    assert heat.x_labels == ("10ms", "40ms") and heat.y_labels == ("0.5", "1", "4")
    rows = store.table("path").to_pylist()
    assert np.nanmean(heat.values) == pytest.approx(np.mean([row["utilisation"] for row in rows]))


def test_a_cell_not_to_be_trusted_is_crossed_out_in_its_own_panel_row_and_column(
    tmp_path: Path,
) -> None:
    """A run carries nothing where its buffer, a share of rate x RTT, holds no packet of 1514 B."""
    rates, rtts, buffers = (2, 8), (5, 10, 40), (0.5, 4)
    scenario = {
        "duration": "2s", "warmup": "500ms", "flow": [{"cc": "reno"}],
        "path": {"rate": "{rate}", "rtt": "{rtt}", "buffer": "{buffer}bdp"},
    }  # fmt: skip
    axes = {"rate": [f"{n}mbit" for n in rates], "rtt": [f"{n}ms" for n in rtts],
            "buffer": list(buffers)}  # fmt: skip
    made, _ = filled(tmp_path / "store", sweep(scenario=scenario, axis=axes, sweep={"seeds": 1}))
    chart = make_chart(made, Request("utilisation", "rtt", "buffer", "rate", "heat"))
    assert [panel.title for panel in chart.panels] == [
        "bottleneck rate 2mbit",
        "bottleneck rate 8mbit",
    ]
    for rate, panel in zip(rates, chart.panels, strict=True):
        dead = [
            (row, column)
            for row, buffer in enumerate(buffers) for column, rtt in enumerate(rtts)
            if buffer * rate * rtt * 1000 / 8 < 1514
        ]  # fmt: skip
        assert len(dead) == {2: 2, 8: 0}[rate]
        assert panel.heat is not None and panel.heat.crossed == tuple(dead)
        assert panel.heat.x_labels == ("5ms", "10ms", "40ms")


def test_no_cell_of_a_front_is_beaten_in_both(store: Store) -> None:
    request = Request("goodput_bps", "queue_delay_p95_ms", kind="pareto")
    panel = make_chart(store, request).panels[0]
    cells, front = panel.traces
    points = list(zip(cells.x, cells.y, strict=True))
    assert front.name == "front" and front.x.size
    for delay, goodput in zip(front.x, front.y, strict=True):
        assert (delay, goodput) in points
        assert not any(d < delay and g > goodput for d, g in points)


def test_a_distribution_counts_every_run(store: Store) -> None:
    line = make_chart(store, Request("goodput_bps", kind="cdf")).panels[0].traces[0]
    assert line.x.size == 18 + 1, "and the point from which it rises"
    assert (np.diff(line.x) >= 0).all() and line.y[0] == 0 and line.y[-1] == 1


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
@pytest.mark.parametrize("kind", ["line", "heat", "box", "pareto"])
def test_every_kind_is_drawn_as_a_file_that_needs_nothing_else(
    store: Store, tmp_path: Path, kind: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / f"plot.{suffix}"
    x = "queue_delay_p50_ms" if kind == "pareto" else "rtt"
    arguments = ["plot", str(store.folder), "--y", "goodput_bps", "--x", x, "--by", "buffer",
                 "--kind", kind, "--out", str(out)]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["fullpipe", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    content = out.read_bytes()
    start = {"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!doctype html>"}[suffix]
    assert content.startswith(start)
    assert b"<script src=" not in content and [p.name for p in tmp_path.iterdir()] == [out.name]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request("beauty", "rtt"), "'beauty' is no metric; known are"),
        (Request("engine", "rtt"), "'engine' is no metric; known are completion_s, (?!.*key)"),
        (Request("share", "colour"), "'colour' is no column; there are"),
        (Request("share"), "needs --x"),
        (Request("share", "rtt", kind="pie"), "is not one of line"),
        (Request("share", "rtt", where="drop table"), "plot: "),
        (Request("share", "rtt", where="flow_cc = 'nobody'"), "no run fits"),
        (Request("share", "rtt", where="cc = 'bbr3'"), "axis_cc for the cell's value or flow_cc"),
    ],
)
def test_what_cannot_be_drawn_is_said(store: Store, request_: Request, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_chart(store, request_)


def test_a_balanced_two_way_table_has_the_textbooks_sums_of_squares() -> None:
    """By hand: cell means a1b1 = 2, a1b2 = 4, a2b1 = 6, a2b2 = 12, each twice with +-1. Grand mean
    6; SSA = 4 (3 - 6)^2 + 4 (9 - 6)^2 = 72; SSB = 4 (4 - 6)^2 + 4 (8 - 6)^2 = 32; between cells
    2 (16 + 4 + 0 + 36) = 112, so SSAB = 8; within 4 x 2 = 8 with 4 degrees of freedom."""
    values = [1, 3, 3, 5, 5, 7, 11, 13]
    factors = {"a": ["1"] * 4 + ["2"] * 4, "b": ["1", "1", "2", "2"] * 2}
    found = {effect.source: effect for effect in factorial_anova(values, factors)}
    squares = {name: effect.sum_of_squares for name, effect in found.items()}
    assert squares == pytest.approx({"a": 72, "b": 32, "a x b": 8, "residual": 8})
    assert found["a"].f == pytest.approx(72 / (8 / 4))
    assert found["a"].eta_squared == pytest.approx(72 / 120)
    assert found["a"].partial_eta_squared == pytest.approx(72 / 80)
    assert list(found) == ["a", "b", "a x b", "residual"]
    with pytest.raises(StatisticsError, match="has one value"):
        factorial_anova(values, {"a": ["1"] * 8})
    with pytest.raises(StatisticsError, match="there is no factor"):
        factorial_anova(values, {})


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ("", "--of: name axes, such as cc,rtt"),
        (" , ", "--of: name axes, such as cc,rtt"),
        ("cc,rtt,cc", "--of cc,rtt,cc: cc is named twice"),
    ],
)
def test_axes_of_effects_are_named_and_none_twice(store: Store, axes: str, said: str) -> None:
    answer = CliRunner().invoke(app, ["effects", str(store.folder), "--y", "share", "--of", axes])
    assert isinstance(answer.exception, UserError) and str(answer.exception) == said


@pytest.mark.parametrize("words", [("plot", "--x", "rtt"), ("effects", "--of", "rtt")])
def test_the_condition_that_the_help_shows_works(store: Store, words: tuple[str, ...]) -> None:
    command, *options = words
    told = " ".join(CliRunner().invoke(app, [command, "--help"]).output.split())
    shown = re.search(r'such as "([^"]+)"', told)
    assert shown
    given = [command, str(store.folder), "--y", "share", *options, "--where", shown[1]]
    assert CliRunner().invoke(app, given).exit_code == 0
