"""Figures for papers: formats, looks, many flows and repetitions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import tomli_w
from matplotlib.text import Text
from typer.testing import CliRunner

import fullpipe
from fullpipe.base.errors import UserError
from fullpipe.cli.app import app
from fullpipe.metrics import View
from fullpipe.plots.look import Look
from fullpipe.plots.matplotlib_renderer import figure_of, write_file
from fullpipe.plots.model import Plot, Trace
from fullpipe.report.distributions import box_plots, cdf_plots
from fullpipe.report.figures import write_figures
from fullpipe.report.repetitions import group_plots
from fullpipe.report.runs import grouped, read_run

PATH = {"rate": "20mbit", "rtt": "20ms", "buffer": "1bdp"}


def recordings(flows: list[dict[str, Any]], seeds: int = 1) -> fullpipe.Recordings:
    document = {"duration": "4s", "warmup": "1s", "path": PATH, "flow": flows}
    return fullpipe.run(document, seeds=seeds)


def plots(runs: fullpipe.Recordings) -> dict[str, Any]:
    (group,) = grouped([read_run(run) for run in runs])
    return {plot.key: plot for plot in group_plots(group)}


@pytest.mark.slow
def test_a_figure_is_a_pdf_an_svg_and_a_png_named_after_what_it_shows(tmp_path: Path) -> None:
    one, other = recordings([{"cc": "bbr3"}]), recordings([{"cc": "cubic"}])
    names = {path.name for path in write_figures([*one, *other], tmp_path)}
    assert {f"throughput.{suffix}" for suffix in ("pdf", "svg", "png")} <= names
    alone = {path.name for path in write_figures(one, tmp_path)}
    assert {f"bbr3_throughput.{suffix}" for suffix in ("pdf", "svg", "png")} <= alone


@pytest.mark.slow
def test_a_figure_has_the_width_and_the_labels_that_were_asked_for(tmp_path: Path) -> None:
    look = Look(width_in=3.3, title=False, labels={"goodput (Mbit/s)": "Rate in Mbit/s"})
    write_figures(recordings([{"cc": "bbr3"}, {"cc": "cubic"}]), tmp_path, look)
    drawn = (tmp_path / "bbr3_cubic_throughput.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", drawn)
    assert box is not None
    assert float(box[1]) == pytest.approx(3.3 * 72, abs=0.01)
    picture = (tmp_path / "bbr3_cubic_throughput.svg").read_bytes()
    assert b"Throughput" not in picture and b"Rate in Mbit/s" in picture


def test_a_label_that_names_nothing_is_refused(tmp_path: Path) -> None:
    runs = recordings([{"cc": "bbr3"}])
    with pytest.raises(UserError, match="gooodput"):
        write_figures(runs, tmp_path, Look(labels={"gooodput": "Goodput"}))


def test_of_many_flows_each_group_has_its_sum_and_none_is_missing() -> None:
    runs = recordings([{"cc": "bbr3", "count": 12}, {"cc": "cubic", "count": 13}])
    (bbr, cubic, capacity) = plots(runs)["throughput"].traces
    assert (bbr.name, cubic.name) == ("bbr3 (12 flows)", "cubic (13 flows)")
    assert capacity.is_reference
    view = View(runs[0], start_s=0.0)
    carried = sum(view.flow_samples(flow)["bytes_delivered"][-1] for flow in range(25))
    seconds = np.diff(np.concatenate(([0.0], bbr.x)))
    drawn = float(np.sum((bbr.y + cubic.y) * seconds)) * 1e6 / 8
    assert drawn == pytest.approx(carried, rel=0.02)


def test_of_repetitions_a_line_is_the_mean_with_students_interval() -> None:
    runs = recordings([{"cc": "bbr3"}, {"cc": "cubic"}], seeds=3)
    line = plots(runs)["cwnd"].traces[0]
    views = [View(run, start_s=0.0).flow_samples(0) for run in runs]
    at = 20
    values = np.array([samples["cwnd_packets"][at] for samples in views])
    assert line.x[at] == pytest.approx(views[0]["t_us"][at] / 1e6)
    assert line.y[at] == pytest.approx(values.mean())
    assert line.band is not None
    # Student's t of 97.5 % with two degrees of freedom is 4.303.
    assert line.band[1][at] - line.y[at] == pytest.approx(
        4.3027 * values.std(ddof=1) / 3**0.5, rel=1e-4
    )


def test_an_interval_of_what_cannot_be_negative_ends_at_zero() -> None:
    runs = recordings([{"cc": "reno"}, {"cc": "bbr3"}], seeds=3)
    lowest = []
    for plot in plots(runs).values():
        for line in plot.traces:
            if line.band is not None:
                low, high = (side[~np.isnan(side)] for side in line.band)
                assert (low >= 0).all()
                lowest.append((2 * line.y[~np.isnan(line.y)] - high).min())
    assert min(lowest) < 0  # Student's interval is symmetric, and would go below


def test_of_two_repetitions_there_is_a_mean_and_no_interval() -> None:
    drawn = plots(recordings([{"cc": "bbr3"}], seeds=2))["cwnd"]
    assert drawn.traces[0].band is None
    assert drawn.note == "mean of 2 runs; an interval needs 3"


@pytest.mark.slow
def test_nothing_is_cut_off_at_the_edges_of_a_figure_of_one_column() -> None:
    flows = [{"cc": "bbr3", "count": 3}, {"cc": "cubic", "count": 3}, {"cc": "reno", "count": 3}]
    groups = grouped([read_run(run) for run in recordings(flows, seeds=2)])
    drawn = [*group_plots(groups[0]), *box_plots(groups), *cdf_plots(groups)]
    for plot in drawn:
        figure = figure_of(plot, look=Look(width_in=3.3))
        figure.draw_without_rendering()
        whole = figure.bbox.padded(1)
        for text in figure.findobj(Text):
            if re.search(r"[a-z]", text.get_text()):  # numbers beyond an axis are not drawn
                box = text.get_window_extent()
                assert whole.x0 <= box.x0 and box.x1 <= whole.x1, f"{plot.key}: {text.get_text()}"


@pytest.mark.slow
def test_a_run_writes_figures_of_the_size_that_was_asked_for(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(tomli_w.dumps({"duration": "2s", "path": PATH, "flow": [{"cc": "reno"}]}))
    words = ["run", scenario, "--out", tmp_path / "out", "--figures", tmp_path / "figures"]
    done = CliRunner().invoke(app, [*map(str, words), "--no-report", "--width", "84mm"])
    assert done.exit_code == 0, done.output
    drawn = (tmp_path / "figures" / "reno_throughput.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ", drawn)
    assert box is not None and float(box[1]) == pytest.approx(84 / 25.4 * 72, abs=0.01)


#: As papers and pages want figures: equal bytes, and text that stays text.
SETTINGS: Any = {
    "svg.hashsalt": "fullpipe", "svg.fonttype": "none", "pdf.fonttype": 42,
    "font.size": Look.font_pt, "font.family": "sans-serif",
}  # fmt: skip
UNDATED = {
    ".pdf": ("CreationDate", "Creator", "Producer"),
    ".svg": ("Date", "Creator"),
    ".png": ("Software",),
}


@pytest.mark.parametrize("suffix", UNDATED)
def test_a_figure_that_is_drawn_once_is_the_one_that_savefig_draws(
    tmp_path: Path, suffix: str
) -> None:
    """savefig() draws a figure for its layout first; here with a legend and a second axis."""
    line = Trace("a flow", "#000000", np.arange(5.0), np.array([3.0, 1, 4, 1, 5]))
    plot = Plot("y", "Drawn once", "time (s)", "rate (Mbit/s)", [line], right=("share", 0.5))
    once, twice = (tmp_path / f"{name}{suffix}" for name in ("once", "twice"))
    write_file(plot, once)
    with mpl.rc_context(SETTINGS):
        figure_of(plot).savefig(twice, dpi=150, metadata=dict.fromkeys(UNDATED[suffix]))
    assert once.read_bytes() == twice.read_bytes()
