"""Which way a group of a sweep runs each of its runs, and which of them it says failed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fullpipe.base.errors import RunError
from fullpipe.sweep import worker
from fullpipe.sweep.cells import cells_of, plan_runs
from fullpipe.sweep.runs import Run
from fullpipe.sweep.store import Store
from fullpipe.sweep.worker import Cells
from sweep_files import rows, sweep

SCENARIO = {
    "duration": "1s", "warmup": "500ms",
    "path": {"rate": "10mbit", "rtt": "{rtt}", "buffer": "1bdp"}, "flow": [{"cc": "{cc}"}],
}  # fmt: skip


@pytest.fixture
def runs() -> list[Run]:
    """Three runs of one flow each, without applications."""
    asked = sweep(scenario=SCENARIO, axis={"rtt": ["10ms"], "cc": ["reno"]}, sweep={"seeds": 3})
    return [planned.run for planned in plan_runs(asked, cells_of(asked), 3)]


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The engines by name that were asked to run a plan; each refuses."""
    asked: list[str] = []

    def refusing(name: str) -> Any:
        def run(*_: Any) -> None:
            asked.append(name)
            raise RunError(f"{name} refuses")

        return SimpleNamespace(run=run)

    monkeypatch.setattr(worker, "engine", refusing)
    return asked


def done(folder: Path, runs: list[Run], name: str = "sim", keep: bool = False) -> Any:
    """The failures by index, and the seeds in the store."""
    store = Store(folder / "store", create=True)
    failures = Cells(store.folder, name, {}, keep)(runs)
    return {item.index: item.reason for item in failures}, sorted(
        row["seed"] for row in rows(store)["runs"]
    )


def test_the_simulator_takes_plain_plans_without_an_engine(
    tmp_path: Path, runs: list[Run], engines: list[str]
) -> None:
    assert done(tmp_path, runs) == ({}, [1, 2, 3])
    assert engines == []


@pytest.mark.parametrize("own", [{"external": ("own.py:Own",)}, {"has_applications": True}])
def test_algorithms_from_files_and_applications_need_the_engine(
    tmp_path: Path, runs: list[Run], engines: list[str], own: dict[str, Any]
) -> None:
    group = [runs[0], runs[1]._replace(**own), runs[2]]
    assert done(tmp_path, group) == ({1: "sim refuses"}, [1, 3])
    assert engines == ["sim"]


def test_recordings_need_the_engine(tmp_path: Path, runs: list[Run], engines: list[str]) -> None:
    assert done(tmp_path, runs, keep=True) == (dict.fromkeys(range(3), "sim refuses"), [])
    assert engines == ["sim"] * 3


def test_no_other_engine_is_replaced_by_the_simulator(
    tmp_path: Path, runs: list[Run], engines: list[str]
) -> None:
    assert done(tmp_path, runs, name="vm") == (dict.fromkeys(range(3), "vm refuses"), [])
    assert engines == ["vm"] * 3


def test_a_failure_is_told_by_its_index_in_the_group_however_it_was_run(
    tmp_path: Path, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is stored already, and of the others one goes through the engine."""
    assert done(tmp_path, runs[:1]) == ({}, [1])
    group = [runs[0], runs[1]._replace(has_applications=True), runs[2]._replace(plan=b"{}")]
    failures, seeds = done(tmp_path, group)
    assert (list(failures), seeds) == ([2], [1, 2])

    def failing(name: str) -> Any:
        return SimpleNamespace(run=lambda *_: SimpleNamespace(failure=f"{name} broke off"))

    monkeypatch.setattr(worker, "engine", failing)
    failures, seeds = done(tmp_path / "other", group)
    assert (failures[1], sorted(failures), seeds) == ("sim broke off", [1, 2], [1])
