"""Rows of long runs go to a file while they come, and are the rows of a run that kept them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fullpipe import _native
from fullpipe.engines.runner import run_scenario
from fullpipe.engines.sim import SimEngine
from fullpipe.engines.tables import arrow_tables
from fullpipe.metrics import View, summarise, view
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import TABLES, PiecewiseTables, Recording
from fullpipe.scenario.model import make_scenario

#: 20,000 samples of two flows and two queues.
LONG = {
    "duration": "200s", "sample_interval": "10ms", "path": {"rate": "1mbit", "rtt": "20ms"},
    "flow": [{"cc": "bbr3"}, {"cc": "cubic"}], "probe": [{"kind": "ping"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("long") / "run"
    return run_scenario(make_scenario(LONG), "", [folder]).recordings[0]


def test_rows_that_were_spooled_are_those_that_a_run_without_a_spool_has(
    recording: Recording,
) -> None:
    plan = resolve(make_scenario(LONG))
    kept = arrow_tables(_native.sim.run(json.dumps(plan)))
    spooled = SimEngine().run(plan, lambda _done: True, {}).tables
    assert isinstance(spooled, PiecewiseTables)
    for name in TABLES:
        assert spooled[name].equals(kept[name]) and recording.table(name).equals(kept[name])
    assert kept["flow_samples"].num_rows > 2 * 16384
    pieces = list(spooled.pieces("flow_samples"))
    assert len(pieces) > 2 and all(piece.num_rows <= 16384 for piece in pieces)


def test_a_short_run_spools_nothing(tmp_path: Path) -> None:
    plan = resolve(make_scenario({**LONG, "duration": "2s"}))
    assert isinstance(SimEngine().run(plan, lambda _done: True, {}).tables, dict)


def test_columns_that_are_not_kept_give_the_same_metrics(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = summarise(recording)
    samples = View(recording).flow_samples(1)
    queue = View(recording).queue()
    monkeypatch.setattr(view, "_KEPT_ROWS", 0)
    assert summarise(recording) == kept
    for whole, lazy in (
        (samples, View(recording).flow_samples(1)),
        (queue, View(recording).queue()),
    ):
        assert list(lazy) == list(whole)
        for name, values in whole.items():
            np.testing.assert_array_equal(lazy[name], values)
