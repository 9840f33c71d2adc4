"""What leaves the house is read by others' tools: tshark the capture, Chromium the report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import tomli_w

from browsers import dumped
from fullpipe import _native
from fullpipe.engines.runner import run_scenario
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import Recording
from fullpipe.report.figures import write_figures
from fullpipe.report.page import write_report
from fullpipe.scenario.model import make_scenario
from helpers import column, resealed

DOCUMENT = {
    "name": "capture", "duration": "8s",
    "path": {"rate": "10mbit", "rtt": "30ms", "buffer": "1bdp", "ecn": True,
             "loss": 0.005, "qdisc": "fq_codel"},
    "flow": [{"cc": "cubic"}, {"cc": "bbr3", "ecn": False}],
    "probe": [{"kind": "ping"}],
}  # fmt: skip


def test_tshark_reads_a_capture_and_counts_our_retransmissions(tmp_path: Path) -> None:
    tshark = shutil.which("tshark")
    assert tshark is not None
    capture = tmp_path / "run.pcap"
    with capture.open("wb") as file:
        plan = json.dumps(resolve(make_scenario(DOCUMENT)))
        raw = _native.sim.run(plan, None, os.dup(file.fileno()))

    def fields(condition: str, *names: str) -> list[list[str]]:
        command = [tshark, "-r", str(capture), "-Y", condition, "-T", "fields"]
        for name in names:
            command += ["-e", name]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        return [line.split("\t") for line in answer.stdout.splitlines()]

    assert fields("_ws.malformed || _ws.expert.severity == error", "ip.src") == []
    assert len(fields("tcp.options.sack_le", "ip.src")) > 5
    assert fields("ip.dsfield.ecn == 2 && tcp.len > 0", "ip.src")
    # A data packet whose sequence number was sent before is a retransmission.
    seen: set[tuple[str, str]] = set()
    again = 0
    for source, sequence in fields("tcp.len > 0", "ip.src", "tcp.seq_raw"):
        again += (source, sequence) in seen
        seen.add((source, sequence))
    assert again == column(raw, "flows", "packets_retransmitted").sum()
    assert again > 0


def record(folder: Path, count: int) -> list[Recording]:
    scenario = make_scenario(DOCUMENT)
    folders = [folder / str(index) for index in range(count)]
    return run_scenario(scenario, tomli_w.dumps(DOCUMENT), folders).recordings


@pytest.mark.browser
@pytest.mark.smoke
def test_chromium_draws_every_plot_of_a_report_without_an_error(tmp_path: Path) -> None:
    page = write_report(record(tmp_path / "runs", 2), tmp_path / "report.html")
    text = page.read_text(encoding="utf-8")
    plots = text.count('class="plotly-graph-div"')
    dom, said = dumped(
        page, tmp_path / "profile", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--enable-logging=stderr",
    )  # fmt: skip
    console = [line for line in said.splitlines() if "CONSOLE" in line]
    assert console == []
    assert plots >= 9
    drawn = dom.count('class="plot-container plotly"')
    assert drawn == plots


def test_a_hostile_name_in_a_foreign_recording_stays_text(tmp_path: Path) -> None:
    recording = record(tmp_path / "runs", 1)[0]
    metadata = json.loads((recording.path / "metadata.json").read_text(encoding="utf-8"))
    metadata["plan"]["name"] = "<script>alert(1)</script>"
    (recording.path / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    resealed(recording.path)
    page = write_report([Recording.open(recording.path)], tmp_path / "report.html")
    assert "<script>alert(1)" not in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_figures_are_written_and_repeat_to_the_byte(tmp_path: Path) -> None:
    recordings = record(tmp_path / "runs", 1)
    first = write_figures(recordings, tmp_path / "a")
    again = write_figures(recordings, tmp_path / "b")
    assert len(first) >= 16
    for one, other in zip(first, again, strict=True):
        assert one.stat().st_size > 5000
        assert one.read_bytes() == other.read_bytes()
