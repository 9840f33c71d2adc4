"""What a sweep keeps of pages, streams of datagrams, probes and flows that come and go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from typer.testing import CliRunner

from fullpipe.cli import main  # noqa: F401 - the commands
from fullpipe.cli.app import app
from fullpipe.metrics.kinds import KINDS
from fullpipe.sweep.chart import Request, make_chart, view_of
from fullpipe.sweep.chart_axes import metric_title
from fullpipe.sweep.file import Sweep, read_sweep
from fullpipe.sweep.query import ask
from fullpipe.sweep.store import Store
from sweep_files import filled

PATH = {"rate": "10mbit", "rtt": "{rtt}", "buffer": "1bdp"}
SENDERS: dict[str, Any] = {
    "flow": [{"cc": "cubic"}],
    "page": [
        {"cc": "cubic", "name": "news", "levels": [["20KB"], ["10KB", "10KB"]], "interval": "1s"}
    ],
    "udp": [{"name": "call", "rate": "1mbit"}, {"name": "video", "rate": "1mbit", "frames": 25}],
    "probe": [{"name": "near"}, {"name": "far", "interval": "500ms"}],
    "traffic": [{"cc": "reno", "name": "web", "load": 0.1, "sizes": "10KB"}],
}


def _sweep(**senders: Any) -> Sweep:
    scenario = {"duration": "4s", "warmup": "500ms", "path": PATH, **senders}
    return read_sweep({"scenario": scenario, "axis": {"rtt": ["10ms", "20ms"]}}, "test.toml")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return filled(tmp_path_factory.mktemp("sweep") / "store", _sweep(**SENDERS))[0]


def test_the_figures_are_those_that_a_single_run_prints(store: Store, tmp_path: Path) -> None:
    scenario = {
        "duration": "4s",
        "warmup": "500ms",
        "start_spread": "5ms",
        "seed": ask(store, "select min(seed) as seed from runs")["seed"][0].as_py(),
        "path": {**PATH, "rtt": "20ms"},
        **SENDERS,
    }
    (tmp_path / "s.toml").write_text(tomli_w.dumps(scenario))
    words = ["run", str(tmp_path / "s.toml"), "--json", "--no-report", "--out", str(tmp_path / "r")]
    printed = CliRunner().invoke(app, words)
    assert printed.exit_code == 0, printed.output
    summary = json.loads(printed.stdout)
    for kind in KINDS:
        swept = ask(store, f"select * from {kind.key} where rtt = '20ms'").to_pylist()
        assert {row[kind.named] for row in swept} == {row[kind.named] for row in summary[kind.key]}
        for row in summary[kind.key]:
            (beside,) = (other for other in swept if other[kind.named] == row[kind.named])
            for figure in kind.figures:
                assert beside[figure.column] == pytest.approx(figure.read(row)), figure.column


def test_counts_are_those_of_the_scenario(store: Store) -> None:
    (page,) = ask(store, "select * from pages where rtt = '10ms'").to_pylist()
    assert (page["page_objects"], page["page_mib"]) == (3, 40 / 1024)
    probes = ask(store, "select probe, probe_sent from probes where rtt = '10ms'").to_pylist()
    sent = {row["probe"]: row["probe_sent"] for row in probes}
    # Over 3.5 s, every 200 and every 500 ms; the last has no time to return.
    assert sent["near"] == pytest.approx(17, abs=1)
    assert sent["far"] == pytest.approx(7, abs=1)


def test_a_chart_draws_a_figure_of_an_application(store: Store) -> None:
    assert view_of("page_time_p50_ms") == "pages"
    assert metric_title("page_time_p50_ms") == "Page time, median (ms)"
    (panel,) = make_chart(store, Request("page_time_p50_ms", "rtt")).panels
    means = ask(store, "select avg(page_time_p50_ms) as y from pages group by rtt_s order by rtt_s")
    assert list(panel.traces[0].y) == pytest.approx(means["y"].to_pylist())


def test_runs_without_applications_store_no_rows_of_them(tmp_path: Path) -> None:
    bare, _ = filled(tmp_path / "store", _sweep(flow=[{"cc": "cubic"}]))
    assert not list(bare.folder.glob("parts/*/applications.parquet"))
    assert ask(bare, "select * from probes").num_rows == 0


def test_an_axis_named_as_a_page_is_told_from_the_page(tmp_path: Path) -> None:
    page = {"cc": "cubic", "name": "news", "levels": [["{page}"]], "loads": 1}
    scenario = {"duration": "2s", "path": {**PATH, "rtt": "10ms"}, "page": [page]}
    axis = {"page": ["10KB", "20KB"]}
    store, _ = filled(
        tmp_path / "store", read_sweep({"scenario": scenario, "axis": axis}, "test.toml")
    )
    rows = ask(store, "select axis_page, page_page from pages order by 1").to_pylist()
    assert [(row["axis_page"], row["page_page"]) for row in rows] == [
        ("10KB", "news"), ("20KB", "news"),
    ]  # fmt: skip
