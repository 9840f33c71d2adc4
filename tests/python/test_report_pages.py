"""The page on a narrow screen, in the dark, small, and as a folder of pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import tomli_w

from browsers import dumped
from fullpipe import cli
from fullpipe.engines.runner import run_scenario
from fullpipe.plots.plotly_renderer import figure_of
from fullpipe.recording.recording import Recording
from fullpipe.report.distributions import box_plots, cdf_plots
from fullpipe.report.page import write_pages, write_report
from fullpipe.report.runs import grouped, read_run
from fullpipe.report.timeline import time_plots
from fullpipe.scenario.model import make_scenario

#: Many flows: legends are long.
DOCUMENT: dict[str, Any] = {
    "name": "many", "duration": "6s", "warmup": "1s",
    "path": {"rate": "20mbit", "rtt": "20ms"},
    "flow": [{"cc": "bbr3", "count": 8}, {"cc": "cubic", "count": 8}],
    "probe": [{"kind": "ping"}],
}  # fmt: skip
#: Said by a page about itself, once everything is drawn.
MEASURE = """<script>
setTimeout(() => {
  const seen = [...document.querySelectorAll(".plotly-graph-div")].map((plot) => {
    const box = (name) => plot.querySelector(name)?.getBoundingClientRect();
    const axes = box(".cartesianlayer .bg") ?? box(".bglayer .bg") ?? box(".draglayer .nsewdrag");
    return { page: document.body.clientWidth, plot: box(".main-svg").width, axes: axes.height,
      axesWidth: axes.width, axesTop: axes.top, axesBottom: axes.bottom,
      buttons: box(".modebar")?.bottom ?? 0, legend: box(".legend")?.top ?? 1e6,
      legendBottom: box(".legend .bg")?.bottom ?? 0, drawnBottom: box(".main-svg").bottom,
      boxBottom: plot.parentElement.getBoundingClientRect().bottom };
  });
  document.title = JSON.stringify(seen);
}, 6000);
</script>"""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    """One run of DOCUMENT, and one of another scenario."""
    folder = tmp_path_factory.mktemp("pages")
    found = []
    for name in ("many", "other"):
        document = DOCUMENT | {"name": name}
        scenario = make_scenario(document)
        found += run_scenario(scenario, tomli_w.dumps(document), [folder / name]).recordings
    return found


@pytest.mark.browser
def test_on_a_narrow_screen_nothing_covers_or_squeezes_a_plot(
    recordings: list[Recording], tmp_path: Path
) -> None:
    page = write_report(recordings[:1], tmp_path / "report.html")
    text = page.read_text(encoding="utf-8").replace("</body>", MEASURE + "</body>")
    page.write_text(text, encoding="utf-8")
    dom, _ = dumped(page, tmp_path / "profile", "--window-size=500,900")
    title = re.search(r"<title>(\[.*?\])</title>", dom)
    assert title is not None
    plots = json.loads(title[1])
    assert len(plots) >= 8
    for plot in plots:
        assert plot["plot"] <= plot["page"] <= 500
        assert plot["axesWidth"] > 0.7 * plot["plot"]
        assert plot["axes"] > 100
        assert plot["buttons"] <= plot["axesTop"]
        assert plot["legend"] >= plot["axesBottom"]
        assert max(plot["legendBottom"], plot["drawnBottom"]) <= plot["boxBottom"] + 1


@pytest.mark.slow
def test_every_table_can_be_scrolled_sideways(recordings: list[Recording], tmp_path: Path) -> None:
    text = write_report(recordings, tmp_path / "report.html", light=True).read_text("utf-8")
    assert text.count("<table") == len(re.findall(r'<div class="wide"><table', text)) >= 5


def test_the_page_follows_the_browsers_preference_for_the_dark(
    recordings: list[Recording], tmp_path: Path
) -> None:
    text = write_report(recordings[:1], tmp_path / "r.html", light=True).read_text("utf-8")
    assert "@media (prefers-color-scheme: dark)" in text
    assert "color-scheme: light dark" in text


def test_a_light_page_is_small_and_needs_no_script(
    recordings: list[Recording], tmp_path: Path
) -> None:
    full = write_report(recordings[:1], tmp_path / "full.html").read_text("utf-8")
    page = write_report(recordings[:1], tmp_path / "light.html", light=True)
    light = page.read_text("utf-8")
    assert page.stat().st_size < 400_000
    assert "<script" not in light
    assert light.count("<svg") == full.count('class="plotly-graph-div"')
    assert write_report(recordings[:1], tmp_path / "again.html", light=True).read_text() == light


def test_a_hostile_name_stays_text_in_a_light_page(
    recordings: list[Recording], tmp_path: Path
) -> None:
    run = recordings[0]
    metadata = json.loads((run.path / "metadata.json").read_text(encoding="utf-8"))
    name = '<img src=x onerror="alert(1)">$x$'
    metadata["plan"]["name"] = name
    changed = Recording(run.path, metadata)
    text = write_report([changed, changed], tmp_path / "r.html", light=True).read_text("utf-8")
    assert "<img" not in text


def test_pages_of_a_folder_share_one_library(recordings: list[Recording], tmp_path: Path) -> None:
    index = write_pages(recordings, tmp_path / "pages")
    names = sorted(path.name for path in index.parent.iterdir())
    assert names[:3] == ["001.html", "002.html", "index.html"]
    (library,) = names[3:]
    for page in ("001.html", "002.html"):
        assert (index.parent / page).stat().st_size < 1_000_000
        assert f'<script src="{library}"></script>' in (index.parent / page).read_text("utf-8")
    assert re.findall(r'href="(\d+.html)">(\w+)', index.read_text("utf-8")) == [
        ("001.html", "many"), ("002.html", "other"),
    ]  # fmt: skip


@pytest.mark.slow
def test_the_command_line_writes_light_pages_into_a_folder(
    recordings: list[Recording], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [str(run.path) for run in recordings]
    folder = tmp_path / "pages"
    words = ["fullpipe", "report", *runs, "--light", "--pages", str(folder)]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["001.html", "002.html", "index.html"]


def test_plotlys_own_classes_know_every_key_and_value_of_a_figure(
    recordings: list[Recording],
) -> None:
    plots = time_plots(read_run(recordings[0]))
    plots += cdf_plots(grouped([read_run(recording) for recording in recordings]))
    plots += box_plots(grouped([read_run(recording) for recording in recordings]))
    assert len(plots) > 10
    for plot in plots:
        checked = go.Figure(**figure_of(plot, "an alarm"))
        assert checked.layout.height == figure_of(plot)["layout"]["height"]
        written = [one["y"] for one in figure_of(plot)["data"] if "opacity" in one]
        assert written == [
            go.Figure(go.Scatter(y=trace.y.astype(np.float32))).to_dict()["data"][0]["y"]
            for trace in plot.traces
        ]
