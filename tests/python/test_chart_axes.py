"""Axes of charts: round ticks in the units that people read, no joined categories, fair shares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fullpipe.base.errors import UserError
from fullpipe.plots.look import Look
from fullpipe.plots.matplotlib_renderer import figure_of, overlapping
from fullpipe.plots.model import Grid, Heat, Plot
from fullpipe.plots.plotly_renderer import grid_figure_of
from fullpipe.plots.style import MIDDLE, scale_around
from fullpipe.sweep.chart import KINDS, Request, make_chart
from fullpipe.sweep.chart_axes import all_shown, scale_of, shown, ticks
from fullpipe.sweep.store import Store
from sweep_files import filled, sweep


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    axes = {"rtt": ["7.53315ms", "40ms", "200ms"], "buffer": [1, 4], "cc": ["bbr3", "cubic"]}
    folder = tmp_path_factory.mktemp("axes") / "store"
    return filled(folder, sweep(axis=axes))[0]


@pytest.mark.parametrize(
    ("low", "high", "is_log", "texts"),
    [
        (1, 1000, True, ["1", "10", "100", "1000"]),
        (7.5, 200, True, ["10", "20", "50", "100", "200"]),
        (0, 30, False, ["0", "5", "10", "15", "20", "25", "30"]),
        (0.5, 4, False, ["1", "2", "3", "4"]),
        (7, 7, False, ["7"]),
    ],
)
def test_ticks_are_round_numbers_in_view(
    low: float, high: float, is_log: bool, texts: list[str]
) -> None:
    found = ticks(low, high, is_log)
    assert [text for _, text in found] == texts
    assert all(low <= place <= high for place, _ in found)


@pytest.mark.parametrize(
    ("name", "places", "title", "divisor"),
    [
        ("rtt_s", [0.01, 1.2], "base RTT (ms)", 1e-3),
        ("duration_s", [10, 60], "duration (s)", 1.0),
        ("rate_bps", [1e6, 1e9], "bottleneck rate (Mbit/s)", 1e6),
        ("buffer", [0.5, 4], "buffer", 1.0),
    ],
)
def test_times_are_in_ms_and_rates_in_mbits(
    name: str, places: list[float], title: str, divisor: float
) -> None:
    found = scale_of(name, places)
    assert (found.title, found.divisor) == (title, divisor)


def test_labels_have_three_digits_unless_that_makes_two_alike() -> None:
    assert [shown(value) for value in ("7.53315ms", "10ms", "1.234567mbit", "fq_codel", 0.5)] == [
        "7.53ms", "10ms", "1.23mbit", "fq_codel", "0.5",
    ]  # fmt: skip
    assert all_shown(["7.53315ms", "7.53316ms"]) == ["7.53315ms", "7.53316ms"]


def test_values_without_an_order_are_not_joined_and_stand_side_by_side(store: Store) -> None:
    (panel,) = make_chart(store, Request("utilisation", "cc", "buffer")).panels
    assert [text for _, text in panel.x_ticks] == ["bbr3", "cubic"]
    assert not any(line.joined for line in panel.traces)
    one, other = (line.x for line in panel.traces)
    assert not set(one) & set(other)
    assert [round(x) for x in (*one, *other)] == [0, 1, 0, 1]
    joined = make_chart(store, Request("utilisation", "rtt", "cc")).panels[0].traces
    assert all(line.joined for line in joined)


def test_an_axis_that_is_not_shown_is_said_to_be_averaged(store: Store) -> None:
    chart = make_chart(store, Request("utilisation", "rtt", "cc"))
    assert "averaged over buffer (2 values)" in chart.note
    whole = make_chart(store, Request("utilisation", "rtt", "cc", "buffer"))
    assert "averaged" not in whole.note
    one = make_chart(store, Request("utilisation", "rtt", "cc", where="buffer = 1"))
    assert "averaged" not in one.note


@pytest.mark.parametrize("name", ["flow_id", "seed"])
def test_numbers_of_flows_and_seeds_are_no_metrics(store: Store, name: str) -> None:
    with pytest.raises(UserError, match=f"'{name}' is no metric"):
        make_chart(store, Request(name, "rtt"))


def test_shares_have_their_neutral_middle_at_the_fair_share(store: Store) -> None:
    heat = make_chart(store, Request("share", "rtt", "cc", kind="heat"))
    assert heat.heat_middle == 0.5  # two flows
    low, high = heat.heat_range or (0, 0)
    assert (low + high) / 2 == pytest.approx(0.5)
    scale = grid_figure_of(heat)["layout"]["coloraxis"]["colorscale"]
    assert scale[1] == [pytest.approx(0.5), MIDDLE]
    assert "white: the fair share, 0.5" in heat.note
    (fair,) = [one for one in make_chart(store, Request("share", "rtt", "cc")).panels[0].traces
               if one.is_reference]  # fmt: skip
    assert fair.name == "fair share" and set(fair.y) == {0.5}
    assert scale_around(0, 1, 0.25)[1] == (0.25, MIDDLE)


@pytest.mark.parametrize("kind", KINDS)
def test_no_tick_labels_overlap_in_a_figure_of_one_column(store: Store, kind: str) -> None:
    x = "queue_delay_p95_ms" if kind == "pareto" else "rtt"
    chart = make_chart(store, Request("goodput_bps", x, "cc", "buffer", kind))
    assert overlapping(figure_of(chart, look=Look(width_in=3.3))) == []


@pytest.mark.parametrize("columns", [3, 12, 40])
def test_many_long_labels_of_a_heat_map_are_turned_or_thinned(columns: int) -> None:
    labels = tuple(f"{100 + 7 * index}mbit" for index in range(columns))
    heat = Heat(np.ones((2, columns)), labels, ("cubic", "bbr3"), "Goodput (Mbit/s)")
    chart = Grid("t", [Plot("", "", "rate", "cc", heat=heat)])
    figure = figure_of(chart, look=Look(width_in=3.3))
    assert overlapping(figure) == []
    seen = [label.get_text() for label in figure.axes[0].get_xticklabels() if label.get_text()]
    assert seen and set(seen) <= set(labels)


def test_a_wide_figure_keeps_all_of_its_labels(store: Store, tmp_path: Path) -> None:
    chart = make_chart(store, Request("utilisation", "rtt", "cc", kind="heat"))
    (axes, *_) = figure_of(chart).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["7.53ms", "40ms", "200ms"]
