"""A flow's statistics are over its own life: nothing that follows its end changes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fullpipe.engines.runner import run_scenario
from fullpipe.metrics import View
from fullpipe.recording.recording import Recording
from fullpipe.scenario.model import make_scenario

#: An upload that takes 8.8 s on a path whose queue fills.
UPLOAD = {
    "path": {"rate": "20mbit", "rtt": "14ms", "buffer": "1MB"},
    "flow": [{"cc": "cubic", "amount": "20MB", "start": "1s"}],
}


def run(folder: Path, **changes: Any) -> Recording:
    [made] = run_scenario(make_scenario({**UPLOAD, **changes}), "", [folder]).recordings
    return made


def test_the_length_of_a_run_changes_no_metric_of_a_flow_that_ended(tmp_path: Path) -> None:
    made = [run(tmp_path / f"{one}", duration=f"{one}s") for one in (10, 40, 300)]
    first, *others = (View(recording).flow_metrics for recording in made)
    assert 8 < first[0]["completion_s"] < 9
    # The queue was full when it ended: its RTT then is the largest of its life.
    assert 400e3 < first[0]["rtt_p95_us"] < 420e3
    for other in others:
        np.testing.assert_equal(other, first)


def test_a_flow_that_comes_later_changes_nothing_of_one_that_ended(tmp_path: Path) -> None:
    later = {"cc": "bbr3", "direction": "down", "start": "12s", "amount": "5MB"}
    alone = View(run(tmp_path / "alone", duration="20s"))
    beside = View(run(tmp_path / "beside", duration="20s", flow=[*UPLOAD["flow"], later]))
    np.testing.assert_equal(beside.flow_metrics[0], alone.flow_metrics[0])


def test_a_plot_has_no_state_of_a_flow_after_its_end(tmp_path: Path) -> None:
    view = View(run(tmp_path / "run", duration="20s"))
    end_us = view.flows["completion_us"][0]
    rows = view.flow_samples(0)
    over = rows["t_us"] > end_us
    assert over.any() and not over.all()
    for name in ("srtt_us", "min_rtt_us", "cwnd_packets", "inflight_packets"):
        assert np.isnan(rows[name][over]).all() and not np.isnan(rows[name][~over]).all()
    # Counters stay: what arrived, arrived.
    assert (rows["bytes_delivered"][over] == 20 * 2**20).all()
    variables = view.samples("cc_samples")
    assert variables["t_us"].size and variables["t_us"].max() <= end_us
