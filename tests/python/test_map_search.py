"""The search for cells in which simulator and kernel differ, over engines that are made up."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from repository_scripts import bench

#: What the simulator has more of a metric in a scenario than the kernel.
Apart = Callable[[Mapping[str, Any]], dict[str, float]]


@pytest.fixture
def search() -> ModuleType:
    return bench("bench_map_search")


def found_by(
    search: ModuleType, apart: Apart, folder: Path, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> dict[str, Any]:
    """The findings where runs are 0.5 with a standard deviation of 0.002 and engines differ so."""

    def values_of(
        document: Mapping[str, Any], engine: str, _options: Any, metrics: Mapping[str, Any]
    ) -> dict[str, float]:
        draw = np.random.default_rng([document["seed"], engine == "sim"])
        extra = apart(document) if engine == "sim" else {}
        noise = draw.normal(0.5, 0.002, len(metrics))
        return {name: extra.get(name, 0.0) + noise[i] for i, name in enumerate(metrics)}

    monkeypatch.setattr(search, "values_of", values_of)
    options = {"runs": 300, "cpu": 1e9, "seed": 1, "without": "", "most_mbps": 100.0}
    search.search(argparse.Namespace(folder=folder, **{**options, **more}))
    found: dict[str, Any] = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    return found


def test_engines_that_differ_by_chance_alone_give_no_finding(
    search: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = found_by(search, lambda _: {}, tmp_path, monkeypatch)
    assert found["findings"] == []
    assert found["runs"] <= 300


def test_a_difference_of_one_discipline_is_found_and_loses_all_that_it_does_not_need(
    search: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apart(document: Mapping[str, Any]) -> dict[str, float]:
        return {"loss": 0.05} if document["path"]["qdisc"] == "pie" else {}

    found = found_by(search, apart, tmp_path, monkeypatch)
    assert found["findings"]
    for row in found["findings"]:
        one = row["simple"]
        assert one["metric"] == "loss"
        assert abs(one["difference"] - 0.05) < 0.01
        cell = one["cell"]
        assert (cell["qdisc"], cell["loss"], cell["jitter_ms"]) == ("pie", 0, 0)
        assert (cell["own_flows"], cell["other_flows"]) == (1, 0)
    text = (tmp_path / found["findings"][0]["scenario"]).read_text(encoding="utf-8")
    assert 'qdisc = "pie"' in text


def test_what_a_difference_needs_stays(
    search: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apart(document: Mapping[str, Any]) -> dict[str, float]:
        return {"utilisation": -0.1} if document["path"]["loss"] else {}

    found = found_by(search, apart, tmp_path, monkeypatch)
    assert found["findings"]
    assert all(row["simple"]["cell"]["loss"] > 0 for row in found["findings"])
    assert any(row["simple"]["cell"]["qdisc"] == "fifo" for row in found["findings"])


def test_a_search_goes_on_with_the_runs_that_it_has(
    search: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_by(search, lambda _: {}, tmp_path, monkeypatch, runs=40)
    before = (tmp_path / "vm.jsonl").read_text(encoding="utf-8").splitlines()
    found_by(search, lambda _: {}, tmp_path, monkeypatch, runs=40)
    after = (tmp_path / "vm.jsonl").read_text(encoding="utf-8").splitlines()
    assert after[: len(before)] == before
    runs = [(json.loads(line)["cell"], json.loads(line)["seed"]) for line in after]
    assert len(runs) == len(set(runs)) <= 80


def test_what_is_left_out_is_not_searched(
    search: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_by(
        search, lambda _: {}, tmp_path, monkeypatch, runs=80, without="bbr1,bbr2", most_mbps=20.0
    )
    lines = (tmp_path / "vm.jsonl").read_text(encoding="utf-8").splitlines()
    for cell in (json.loads(json.loads(line)["cell"]) for line in lines):
        names = {cell["own"]} | ({cell["other"]} if cell["other_flows"] else set())
        assert not names & {"bbr1", "bbr2"}
        assert cell["rate_mbps"] <= 20
