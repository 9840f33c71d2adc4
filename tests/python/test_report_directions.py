"""What metrics and plots say of data that goes up and down, over ways with rates of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from fullpipe.engines.runner import run_scenario
from fullpipe.metrics import summarise
from fullpipe.plots.model import Plot
from fullpipe.recording.recording import Recording
from fullpipe.report.provenance import path_line
from fullpipe.report.runs import read_run
from fullpipe.report.timeline import time_plots
from fullpipe.scenario.model import make_scenario

BOTH: dict[str, Any] = {
    "duration": "6s", "warmup": "1s",
    "path": {"rate": "5mbit", "buffer": "64KB", "rtt": "30ms", "reverse_rate": "50mbit"},
    "flow": [
        {"cc": "cubic", "name": "up"},
        {"cc": "cubic", "name": "down", "direction": "down", "count": 2},
    ],
}  # fmt: skip
#: Slowest on the way up is the first link, on the way down the second.
ROW: dict[str, Any] = {
    "duration": "6s", "warmup": "2s",
    "link": [
        {"name": "a", "rate": "5mbit", "delay": "5ms", "reverse": {"rate": "50mbit"}},
        {"name": "b", "rate": "20mbit", "delay": "5ms",
         "reverse": {"rate": "40mbit", "buffer": "100KB"}},
    ],
    "flow": [{"cc": "cubic", "direction": "down"}],
}  # fmt: skip


def run_of(document: dict[str, Any], folder: Path) -> Recording:
    scenario = make_scenario(document)
    return run_scenario(scenario, tomli_w.dumps(document), [folder / "run"]).recordings[0]


def plots_of(document: dict[str, Any], folder: Path) -> dict[str, Plot]:
    return {plot.key: plot for plot in time_plots(read_run(run_of(document, folder)))}


def levels(plot: Plot) -> dict[str, float]:
    """Lines across a plot, by name."""
    return {t.name: float(t.y[0]) for t in plot.traces if t.x.size == 2 and t.y[0] == t.y[1]}


def test_each_direction_is_held_against_its_own_rate_and_its_own_queue(tmp_path: Path) -> None:
    plots = plots_of(BOTH, tmp_path)
    rates = {"bottleneck rate, up": 5.0, "bottleneck rate, down": 50.0}
    assert levels(plots["throughput"]) == rates
    names = [trace.name for trace in plots["throughput"].traces]
    assert "all downloads" in names and "all uploads" not in names and "all flows" not in names
    queue = plots["queue"]
    assert {"queue, up", "queue, down"} <= {trace.name for trace in queue.traces}
    assert levels(queue) == pytest.approx({"limit, up": 64, "limit, down": 187_500 / 1024})
    assert queue.note.startswith("1 KiB is 1.64 ms up, 0.164 ms down at the bottleneck's rate")
    assert queue.right is None


def test_where_both_directions_have_one_rate_there_is_one_line(tmp_path: Path) -> None:
    document = {**BOTH, "path": {"rate": "5mbit", "rtt": "30ms"}}
    plots = plots_of(document, tmp_path)
    assert levels(plots["throughput"]) == {"bottleneck rate": 5.0}
    assert plots["queue"].right is not None
    one_way = {**document, "flow": [{"cc": "cubic", "count": 2}]}
    (tmp_path / "one way").mkdir()
    plots = plots_of(one_way, tmp_path / "one way")
    assert "all flows" in [trace.name for trace in plots["throughput"].traces]


def test_the_path_in_a_line_has_the_way_down_where_it_is_another(tmp_path: Path) -> None:
    line = path_line([read_run(run_of(BOTH, tmp_path))])
    assert line == (
        "5 Mbit/s, base RTT 30 ms, fifo queue of 64 KiB (3.5 BDP); "
        "down 50 Mbit/s, fifo queue of 183.1 KiB (1 BDP)"
    )


def test_downloads_over_a_row_of_links_fill_the_link_that_is_slowest_on_their_way(
    tmp_path: Path,
) -> None:
    recording = run_of(ROW, tmp_path)
    found = summarise(recording)
    (link,) = [one for one in found["links"] if (one["link"], one["direction"]) == ("b", "reverse")]
    path = found["path"]
    assert path["utilisation"] == pytest.approx(link["throughput_bps"] / 40e6)
    assert 0.9 < path["utilisation"] <= 1.001
    assert path["queue_bytes"]["max"] == link["queue_bytes"]["max"] > 0
    delay_ms = path["queue_delay_rttmin"]["p50"] * 20  # base RTT
    assert delay_ms == pytest.approx(link["queue_delay_ms"]["p50"])
    assert path_line([read_run(recording)]).startswith("40 Mbit/s, base RTT 20 ms, fifo queue")
