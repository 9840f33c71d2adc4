"""Cells of a sweep are the scenarios that a user would write by hand; their keys name what ran."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.cells import cells_of, plan_runs, scenario_of
from fullpipe.sweep.file import read_sweep
from fullpipe.sweep.keys import run_key

PATH = {"rate": "10mbit", "rtt": "{rtt}", "buffer": "{buffer}bdp"}
GRID = {"rtt": ["20ms", "40ms"], "buffer": [0.5, 1, 1.0001], "cc": ["bbr3", "reno"]}


def test_a_cell_runs_the_scenario_that_its_values_spell_out(tmp_path: Path) -> None:
    template = {
        "name": "{place}", "duration": "2s", "warmup": "500ms",
        "path": {"rate": "10mbit", "rtt": "{place.rtt}", "buffer": "{n*1.5}bdp", "loss": "{loss}"},
        "flow": [{"cc": "{place.cc}", "count": "{n}"}, {"cc": "cubic[beta=0.8]"}],
    }  # fmt: skip
    axes = {
        "place": [
            {"label": "near", "rtt": "9ms", "cc": "reno"},
            {"label": "far", "rtt": "90ms", "cc": "bbr3"},
        ],
        "n": [1, 2],
        "loss": [0, 0.25],
    }
    found = read_sweep({"scenario": template, "axis": axes}, "sweep.toml", tmp_path)
    planned = plan_runs(found, cells_of(found), 2)
    assert len(planned) == 2 * 2 * 2 * 2
    flows = [{"cc": "bbr3", "count": 2}, {"cc": "cubic[beta=0.8]"}]
    cell, run = next(
        one for one in planned
        if one.cell.point == {"place": axes["place"][1], "n": 2, "loss": 0.25}
    )  # fmt: skip
    by_hand = make_scenario({
        "name": "far", "duration": "2s", "warmup": "500ms", "start_spread": "5ms",
        "path": {"rate": "10mbit", "rtt": "90ms", "buffer": "3bdp", "loss": 0.25}, "flow": flows,
    })  # fmt: skip
    assert json.loads(run.plan) == json.loads(json.dumps(resolve(by_hand, by_hand.seed)))
    assert (run.facts.seed, run.facts.plan.start_s) == (by_hand.seed, 0.5)
    second = [run for one, run in planned if one is cell][1]
    assert json.loads(second.plan) == json.loads(json.dumps(resolve(by_hand, by_hand.seed + 1)))
    assert cell.keys == [run.facts.key, second.facts.key]
    document, scenario = scenario_of(found, cell)
    assert document["flow"] == flows and scenario == by_hand


def test_a_flow_whose_count_is_0_is_not_there(tmp_path: Path) -> None:
    flows = [{"cc": "reno", "count": "{n}"}, {"cc": "cubic"}]
    document = {"duration": "2s", "path": {"rate": "10mbit", "rtt": "20ms"}, "flow": flows}
    found = read_sweep({"scenario": document, "axis": {"n": [0, 1]}}, "sweep.toml", tmp_path)
    plans = [json.loads(run.plan) for _, run in plan_runs(found, cells_of(found), 1)]
    names = [[flow["name"] for flow in plan["flows"]] for plan in plans]
    assert names == [["cubic.1"], ["reno.1", "cubic.1"]]


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ({"cc": ["reno", "renoo"]}, "at rtt 20ms, buffer 0.5, cc renoo: .*renoo"),
        ({"rtt": ["20ms", "never"]}, "at rtt never, buffer 0.5, cc bbr3: path.rtt"),
        ({"cc": ["reno", 7]}, "cc 7: flow.0.cc"),
    ],
)
def test_a_cell_that_is_no_scenario_is_named(
    axes: dict[str, list[Any]], reason: str, tmp_path: Path
) -> None:
    template = {"duration": "2s", "path": PATH, "flow": [{"cc": "{cc}"}]}
    document = {"scenario": template, "axis": {**GRID, **axes}}
    found = read_sweep(document, "sweep.toml", tmp_path)
    with pytest.raises(UserError, match=reason):
        plan_runs(found, cells_of(found), 1)


def test_a_key_is_a_hash_of_plan_code_engine_warm_up_and_version() -> None:
    plan = b'{"seed":1,"flows":[{"cc":{"algorithm":"reno"}}],"host":{}}'
    parts = _native.sim.components()
    used = " ".join(f"{name}={parts[name]}" for name in ("cc:reno", "core"))
    code = hashlib.sha256(used.encode()).hexdigest()
    whole = hashlib.sha256(plan + f"|{code}|sim|0|1|{{}}".encode()).hexdigest()
    assert run_key(plan, "sim", 0, 1, {}) == whole[:32]
    others = [
        run_key(plan.replace(b":1,", b":2,"), "sim", 0, 1, {}),
        run_key(plan.replace(b"reno", b"cubic"), "sim", 0, 1, {}),
        run_key(plan, "sim", 1, 1, {}), run_key(plan, "sim", 0, 2, {}),
        run_key(plan, "sim", 0, 1, {"kernel": "6.1"}),
    ]  # fmt: skip
    assert len({whole[:32], *others}) == 6


def test_a_scenarios_name_is_no_part_of_its_key(tmp_path: Path) -> None:
    template = {"name": "{title}", "duration": "2s", "flow": [{"cc": "reno"}],
                "path": {"rate": "10mbit", "rtt": "20ms"}}  # fmt: skip
    document = {"scenario": template, "axis": {"title": ["one", "two"]}}
    found = read_sweep(document, "sweep.toml", tmp_path)
    one, two = plan_runs(found, cells_of(found), 1)
    assert one.run.facts.key == two.run.facts.key and one.run.plan != two.run.plan
