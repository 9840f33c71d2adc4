"""What entries draw: every plot once, all lines named, the same bytes every time."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from experiment_entries import CATALOGUE, SMALL, MadeStore, entry_of, of_catalogue
from fullpipe.experiments import judge
from fullpipe.experiments.figures import Figure, _tukey, figures
from fullpipe.experiments.run_store import StoredRun
from fullpipe.experiments.verdicts import Results, collect
from fullpipe.plots.matplotlib_renderer import svg_document
from fullpipe.plots.model import Grid, Plot, Trace
from fullpipe.sweep.runs import Run

PLOTS = """
[[plot]]
of = "goodput"
x = "rate"
by = ["rtt"]
log_x = true

[[plot]]
kind = "cdf"
of = "queue_delay_rttmin"
by = ["rate"]
panel = ["rtt"]

[[plot]]
kind = "box"
of = "goodput_mbps"
x = "rate"

[[plot]]
kind = "cdf"
of = "ping_ms"
"""


class Drawn(MadeStore):
    """Runs with distributions: delays evenly from 0 to 1, two flows, no ping."""

    def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
        """The made run."""
        run = super().read(key, expressions)
        if run is None:
            return None
        delays = [i / 100 for i in range(101)]
        kept: dict[str, list[float]] = {
            "queue_delay_rttmin": delays, "goodput_mbps": [1.0, 2.0], "ping_ms": [],
        }  # fmt: skip
        return StoredRun(run.seed, run.metrics, kept)


def results(folder: Path) -> Results:
    entry = entry_of(folder, SMALL + PLOTS)
    return judge(entry, Drawn(folder, lambda plan, _: plan["path"]["rate_bps"] / 1e6)).results


def test_every_plot_is_drawn_once_with_its_lines_named(tmp_path: Path) -> None:
    drawn = figures(results(tmp_path))
    titles = [figure.title for figure in drawn]
    assert titles[:2] == ["Share of one", "Goodput"]
    assert len(drawn) == 4, "the three above with something to see, and the small entry's own"
    texts = [" ".join(ET.fromstring(figure.svg).itertext()) for figure in drawn]
    assert "rtt 10" in texts[1]
    assert "rtt 20" in texts[1]
    assert "goodput (Mbit/s)" in texts[1]
    assert "queueing delay (RTTmin)" in texts[2]
    assert "rate 4" in texts[2]


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (figures(results(tmp_path)) for _ in range(2))
    assert first == second


PANELS = """
[[plot]]
of = "goodput"
x = "rtt"
panel = ["rate"]
"""


def figure_of(folder: Path, plot: str, text: str = SMALL) -> Figure:
    """The last figure of an entry with this plot, over runs that have everything."""
    entry = entry_of(folder, text + plot)

    class Timed(Drawn):
        def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
            """Delays 0 to 10 of which all but the last lie below 1, and two flows over 3 s."""
            run = super().read(key, expressions)
            if run is None:
                return None
            delays = [i / 100 for i in range(100)] + [10.0]
            kept = {
                "queue_delay_rttmin": delays, "over_time_goodput_mbps_s": [1.0, 2.0, 3.0],
                "over_time_goodput_mbps": [1.0, 2.0, 3.0, 3.0, 2.0, 1.0],
            }  # fmt: skip
            return StoredRun(run.seed, run.metrics, kept)

    store = Timed(folder, lambda plan, _: plan["path"]["rate_bps"] / 1e6 + plan["seed"] / 100)
    return figures(judge(entry, store).results)[-1]


def test_goodput_over_time_has_a_line_for_each_flow(tmp_path: Path) -> None:
    drawn = figure_of(
        tmp_path, '[[plot]]\nkind = "time"\nof = "goodput_mbps"\npanel = ["rate", "rtt"]\n'
    )
    texts = list(ET.fromstring(drawn.svg).itertext())
    assert "flow 1" in texts and "flow 2" in texts and "time (s)" in texts
    assert drawn.note == "the run with seed 1"


def test_no_line_leads_from_one_algorithm_to_another(tmp_path: Path) -> None:
    named = SMALL.replace("rtt = [10, 20]", 'rtt = [10]\ncc = ["cubic", "reno"]')
    named = named.replace('by = ["rtt"]', 'by = ["rate"]')
    plot = '[[plot]]\nof = "goodput"\nx = "cc"\nby = ["rate"]\n'
    drawn = figure_of(tmp_path, plot, named)
    assert drawn.note.startswith("boxes: quartiles of the runs")
    numbered = figure_of(tmp_path, '[[plot]]\nof = "goodput"\nx = "rtt"\nby = ["rate"]\n')
    assert numbered.note.startswith("bands:")


def test_whiskers_end_within_one_and_a_half_boxes() -> None:
    quantiles = np.array([*(i / 100 for i in range(100)), 10.0])
    # Quartiles 0.25 and 0.75: up to 0.75 + 1.5 x 0.5 = 1.5, which the outlier of 10 exceeds.
    assert _tukey(quantiles) == (0.0, 0.99)


def test_a_long_series_is_drawn_with_few_points_and_all_its_extremes() -> None:
    x = np.arange(20_000.0)
    y = np.sin(x / 50)
    y[7_777], y[12_345] = 9.0, -9.0
    drawn = []
    svg_document(
        Grid("", [Plot("a", "", "x", "y", traces=[Trace("run", "#123456", x, y)])]),
        lambda figure: drawn.append(figure.axes[0].lines[0].get_ydata()),
    )
    (values,) = drawn
    assert len(values) < 1_000
    assert (values.max(), values.min()) == (9.0, -9.0)


def test_a_panel_far_above_the_first_keeps_its_points(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, SMALL.replace("rate = [2, 4]", "rate = [2, 400]") + PANELS)
    store = Drawn(tmp_path, lambda plan, _: plan["path"]["rate_bps"] / 1e6)
    drawn = figures(judge(entry, store).results)[-1]
    assert drawn.lost == ()
    assert "400" in " ".join(ET.fromstring(drawn.svg).itertext()), "the scale reaches the second"


def test_a_point_that_an_axis_cannot_show_is_told(tmp_path: Path) -> None:
    text = SMALL.replace("rate = [2, 4]", "rate = [0, 4]").replace("{rate}mbit", "2mbit")
    plot = '[[plot]]\nof = "goodput"\nx = "rate"\nlog_x = true\n'
    entry = entry_of(tmp_path, text + plot)
    drawn = figures(judge(entry, Drawn(tmp_path, lambda *_: 1.0)).results)[-1]
    assert drawn.lost == ("runs: 2 of 4 points",), "there is no logarithm of 0"


def test_a_series_keeps_its_colour_where_another_is_missing(tmp_path: Path) -> None:
    text = SMALL.replace("[metric.share]", "[[grid]]\nrate = [8]\nrtt = [20]\n\n[metric.share]", 1)
    plot = '[[plot]]\nof = "goodput"\nx = "rate"\nby = ["rtt"]\npanel = ["rate"]\n'
    entry = entry_of(tmp_path, text + plot)
    drawn = figures(judge(entry, Drawn(tmp_path, lambda *_: 1.0)).results)[-1]
    lines = re.findall(r"stroke: (#[0-9a-f]{6}); stroke-width: 1.2", drawn.svg)
    ten, twenty = lines[0], lines[1]
    assert ten != twenty
    assert lines[:5] == [ten, twenty, ten, twenty, twenty], "three panels, the last without 10 ms"


#: When the samples of a made run were taken.
SECONDS = [float(i) for i in range(101)]


@pytest.mark.slow
@pytest.mark.parametrize("path", CATALOGUE, ids=lambda path: str(path.stem))
def test_no_figure_of_the_catalogue_loses_a_series(path: Path, tmp_path: Path) -> None:
    """On numbers of very different size from cell to cell."""

    class Spread(MadeStore):
        def key(self, run: Run) -> str:
            """A name that says which cell it is: how many came before."""
            self.plans[str(len(self.plans))] = json.loads(run.plan)
            return str(len(self.plans) - 1)

        def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
            """The made run."""
            size = 10.0 ** (int(key) % 5 - 2)
            spread = [size * i for i in range(101)]
            names = (
                "queue_delay_rttmin", "ping_ms", "goodput_mbps", "total_goodput_mbps",
                "over_time_queue_delay_rttmin", "over_time_queue_delay_rttmin_s",
                "over_time_goodput_mbps", "over_time_goodput_mbps_s",
            )  # fmt: skip
            series = {name: SECONDS if name.endswith("_s") else spread for name in names}
            return StoredRun(1, dict.fromkeys(expressions.values(), size), series)

    found = collect(of_catalogue(path), Spread(tmp_path, lambda *_: 0.0), "default", None, 1, ())
    assert [text for figure in figures(found) for text in figure.lost] == []


def test_nothing_run_draws_nothing(tmp_path: Path) -> None:
    class Empty(MadeStore):
        def read(self, key: str, expressions: Mapping[str, str]) -> None:
            """Nothing was run."""

    entry = entry_of(tmp_path, SMALL + PLOTS)
    assert figures(judge(entry, Empty(tmp_path, lambda *_: 0.0)).results) == []
