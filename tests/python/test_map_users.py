"""The map of what users notice: cells that run, and verdicts that follow from their intervals."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from repository_scripts import bench


@pytest.fixture(scope="module")
def users() -> ModuleType:
    return bench("bench_map_users")


def test_every_cell_that_is_drawn_is_a_scenario(users: ModuleType) -> None:
    cells = users.cells(150, 5)
    assert cells[:20] == users.cells(20, 5)
    for cell in cells:
        assert resolve(make_scenario(users.document_of(cell, 3)), 3)
    kinds = ("call_kbps", "video_mbps", "page_bytes", "short_bytes", "outage_s", "step")
    assert all(any(kind in cell for cell in cells) for kind in kinds)
    assert {cell["up"]["qdisc"] for cell in cells} == users.QUEUES.keys()


def _runs(figure: str, values: list[float]) -> list[dict[str, Any]]:
    return [{"seed": seed, figure: value} for seed, value in enumerate(values)]


def test_a_cell_is_judged_by_the_interval_of_pairs(users: ModuleType) -> None:
    # The seeds span far more than the bound of 10 ms or a tenth; the pairs do not.
    kernel = [40.0, 80.0, 120.0, 60.0]
    simulator = [
        value + change for value, change in zip(kernel, (1.0, -1.0, 2.0, 0.0), strict=True)
    ]
    sim, vm = _runs("ping_p50", simulator), _runs("ping_p50", kernel)
    (row,) = users.compared({}, sim, list(reversed(vm)))
    low, high = ttest_rel(simulator, kernel).confidence_interval(0.95)
    assert row.mean == pytest.approx((low + high) / 2)
    assert row.half_width == pytest.approx((high - low) / 2)
    assert (row.bound, row.verdict) == (10, "agrees")


@pytest.mark.parametrize(
    ("change", "spread", "verdict"),
    [(0.0, 1.0, "agrees"), (30.0, 1.0, "differs"), (8.0, 20.0, "open"), (0.0, 40.0, "open")],
)
def test_what_is_too_wide_to_tell_does_not_agree(
    users: ModuleType, change: float, spread: float, verdict: str
) -> None:
    noise = np.array([-1.0, 1.0, -1.0, 1.0]) * spread
    sim, vm = _runs("ping_p50", list(50 + change + noise)), _runs("ping_p50", [50.0] * 4)
    (row,) = users.compared({}, sim, vm)
    assert row.verdict == verdict
    assert users.worst([row]) == verdict


def test_a_figure_that_some_runs_lack_is_compared_over_the_others(users: ModuleType) -> None:
    sim = _runs("page_p50", [100.0, float("nan"), 300.0, 500.0])
    vm = _runs("page_p50", [100.0, 200.0, float("nan"), 500.0])
    (row,) = users.compared({}, sim, vm)
    assert (row.kernel, row.simulator) == (300.0, 300.0)
    assert users.compared({}, sim[:1], vm[:1]) == []
