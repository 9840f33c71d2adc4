"""A run that is not to be trusted says so wherever a figure of it stands; what was not measured is
a dash and no zero.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import tomli_w

from fullpipe import cli
from fullpipe.engines.runner import run_scenario
from fullpipe.metrics import summarise
from fullpipe.recording.recording import Recording, empty_table
from fullpipe.report.distributions import box_plots
from fullpipe.report.figures import write_figures
from fullpipe.report.page import write_report
from fullpipe.report.provenance import commands
from fullpipe.report.runs import grouped, read_run
from fullpipe.scenario.model import make_scenario
from helpers import resealed

DOCUMENT = {
    "name": "short", "duration": "4s", "warmup": "1s",
    "path": {"rate": "10mbit", "rtt": "30ms"},
    "flow": [{"cc": "cubic"}, {"cc": "bbr3"}], "probe": [{"kind": "ping"}],
}  # fmt: skip
PROBLEM = "the virtual CPU was busy for 98 % of 3 s"


def record(folder: Path, count: int = 1) -> list[Recording]:
    folders = [folder / f"run-{index}" for index in range(count)]
    scenario = make_scenario(DOCUMENT)
    return run_scenario(scenario, tomli_w.dumps(DOCUMENT), folders, jobs=1).recordings


def retell(recording: Recording, **said: Any) -> Recording:
    metadata = {**recording.metadata, **said}
    (recording.path / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    resealed(recording.path)
    return Recording.open(recording.path)


def spoil(recording: Recording) -> Recording:
    return retell(recording, health={"problems": [PROBLEM]})


def test_an_unhealthy_run_is_marked_in_every_table_and_every_plot(tmp_path: Path) -> None:
    runs = record(tmp_path, 2)
    page = write_report([runs[0], spoil(runs[1])], tmp_path / "r.html").read_text("utf-8")
    body = page[page.index("<body>") :]
    assert f"unhealthy: {PROBLEM}" in body
    measured, _, _ = body.partition("What ran, and how to repeat it")
    tables = re.findall(r"<table>.*?</table>", measured, re.DOTALL)
    assert len(tables) >= 5
    assert [table for table in tables if "UNHEALTHY" not in table] == []
    # Plots over time are means of both runs, too.
    plots = re.findall(r"Plotly\.newPlot\(.*?</script>", measured, re.DOTALL)
    assert len(plots) >= 10
    assert [plot[:300] for plot in plots if "1 UNHEALTHY" not in plot] == []


def test_every_congestion_control_has_its_own_box_whatever_the_scenario_is_called(
    tmp_path: Path,
) -> None:
    named = {**DOCUMENT, "name": "cubic against bbr3"}
    folders = [tmp_path / str(index) for index in range(2)]
    runs = run_scenario(make_scenario(named), tomli_w.dumps(named), folders, jobs=1).recordings
    goodput = next(
        plot
        for plot in box_plots(grouped([read_run(run) for run in runs]))
        if plot.key == "goodput_box"
    )
    labels = [box.label for box in goodput.boxes]
    assert labels == [f"{cc} (n = 2 runs)" for cc in ("cubic", "bbr3")]


@pytest.mark.slow
def test_static_figures_and_the_terminal_carry_the_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = spoil(record(tmp_path)[0])
    drawn = [path for path in write_figures([run], tmp_path / "f") if path.suffix == ".svg"]
    assert drawn
    assert [path for path in drawn if PROBLEM not in path.read_text("utf-8")] == []
    out = str(tmp_path / "r.html")
    monkeypatch.setattr("sys.argv", ["fullpipe", "report", str(run.path), "--out", out])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code in (0, None)
    assert f"unhealthy: {PROBLEM}" in capsys.readouterr().err


@pytest.mark.slow
def test_a_recording_without_queue_samples_has_dashes_and_a_report(tmp_path: Path) -> None:
    folder = record(tmp_path)[0].path
    pq.write_table(empty_table("queue_samples"), folder / "queue_samples.parquet")
    resealed(folder)
    run = Recording.open(folder)
    path = summarise(run)["path"]
    assert path.pop("queue") == "forward"
    values = [list(one.values()) if isinstance(one, dict) else [one] for one in path.values()]
    assert {value for some in values for value in some} == {None}
    page = write_report([run], tmp_path / "r.html").read_text("utf-8")
    assert "Bottleneck queue" not in page
    assert write_figures([run], tmp_path / "f")


def test_runs_on_two_kernels_are_no_repetitions_and_each_says_how_to_repeat_it(
    tmp_path: Path,
) -> None:
    runs = record(tmp_path, 3)
    plain = retell(runs[0], engine="vm", kernel="6.12.1")
    other = retell(runs[1], engine="vm", kernel="6.1.0", options={"kernel": "6.1"})
    loaded = retell(runs[2], engine="vm", kernel="6.12.1", options={"background_processes": "3"})
    groups = grouped([read_run(run) for run in (plain, other, loaded)])
    assert [commands(group) for group in groups] == [
        ["fullpipe run scenario.toml --engine vm"],
        ["fullpipe run scenario.toml --engine vm --kernel 6.1"],
        ["fullpipe run scenario.toml --engine vm --background-processes 3"],
    ]
    assert len({group.label for group in groups}) == 3
