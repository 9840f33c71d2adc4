"""Predictions of models: computed once, by `run`, and only within a model's domain."""

from __future__ import annotations

from pathlib import Path

from experiment_entries import entry_of
from fullpipe.experiments import Store, judge, run_entries
from fullpipe.experiments.predictions import lacking

TEXT = """
paper = "sarpkaya2025"
figure = "Fig. 0"
title = "One BBRv1 flow against one CUBIC flow"
shows = "Half a second of it; the models predict the steady state."
repetitions = 1

[scenario]
duration = "500ms"
path = { rate = "10mbit", rtt = "40ms", buffer = "{buffer}bdp" }

[[scenario.flow]]
cc = "bbr1"

[[scenario.flow]]
cc = "cubic"

[[grid]]
buffer = [4, 64]

[metric.share]
value = "link_share('bbr1')"
predict = "share:bbr1"

[metric.occupancy]
value = "occupancy()"
predict = "occupancy"

[[claim]]
id = "formula"
text = "The steady-state model says what its formula gives by hand: 0.6288 and 0.3670."
check = "abs(max(predicted(share, 'steady state of BBRv1')) - 0.6288) < 1e-4 and abs(min(predicted(share, 'steady state of BBRv1')) - 0.3670) < 1e-4"

[[claim]]
id = "silent"
text = "It says nothing of the queue."
check = "mae(predicted(occupancy, 'steady state of BBRv1'), occupancy) < 9"
"""  # noqa: E501


def test_predictions_are_computed_once_and_stored_with_the_runs(tmp_path: Path) -> None:
    entry, store = entry_of(tmp_path, TEXT), Store(tmp_path / "store")
    before = judge(entry, store).verdicts[0]
    assert (before.status, before.reason) == (
        "not testable here", "no prediction of that model for these cells",
    )  # fmt: skip
    assert len(lacking(entry, "default", store)) == 2
    assert len(lacking(entry, "default", store, where="buffer == 64")) == 1
    run_entries([entry], store, jobs=2)
    assert lacking(entry, "default", store) == {}
    formula, silent = judge(entry, store).verdicts
    assert formula.status == "reproduced"
    assert silent.status == "not testable here"


def test_an_occupancy_is_the_models_queue_over_the_buffer(tmp_path: Path) -> None:
    entry, store = entry_of(tmp_path, TEXT), Store(tmp_path / "store")
    run_entries([entry], store, jobs=2)
    beside = judge(entry, store).results.beside
    values = beside["predicted", "occupancy", "fluid model"]
    assert set(values) == {0, 1}
    # 4 BDP are filled further than 64 by the same two flows; neither beyond its buffer.
    assert 1 >= values[0] > values[1] > 0
