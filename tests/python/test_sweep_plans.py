"""Plans that cells share are those that each cell would have alone, byte for byte."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from fullpipe import _native
from fullpipe.errors import UserError
from fullpipe.plan import resolve
from fullpipe.scenario import make_scenario
from fullpipe.sweep.cells import Planner
from fullpipe.sweep.file import read_sweep
from fullpipe.sweep.keys import piece, run_key
from fullpipe.sweep.measures import facts_of, version_of
from fullpipe.sweep.templates import fields_of, fill_scenario

PATH = {"rate": "10mbit", "rtt": "{rtt}", "buffer": "{buffer}bdp"}
GRID = {"rtt": ["20ms", "40ms"], "buffer": [0.5, 1, 1.0001], "cc": ["bbr3", "reno"]}
SCENARIOS: dict[str, dict[str, Any]] = {
    "one open flow": {"path": PATH, "flow": [{"cc": "{cc}"}, {"cc": "cubic"}]},
    "several of one kind, named, some of them absent": {
        "path": {**PATH, "buffer": "1bdp"}, "start_spread": "3ms",
        "flow": [{"cc": "{cc}", "count": "{buffer}"}, {"cc": "{cc}", "name": "mine", "count": 2},
                 {"cc": "cubic", "rtt": "50ms", "direction": "down"}],
    },
    "constants of a name": {
        "path": PATH, "flow": [{"cc": "{cc}"}, {"cc": "bbr3"}], "cc": {"bbr3": {"beta": 0.8}},
    },
    "more than a name": {
        "path": PATH, "flow": [{"cc": "{cc}"}, {"cc": "cubic[beta=0.8]"}],
    },
    "a row of links, a probe, a page": {
        "link": [{"name": "a", "rate": "10mbit", "delay": "{rtt}", "buffer": "{buffer}bdp"},
                 {"name": "b", "rate": "20mbit", "delay": "1ms"}],
        "flow": [{"cc": "{cc}", "enter": "a"}], "probe": [{"kind": "ping"}],
        "page": [{"cc": "{cc}", "levels": [["10kB"]]}],
    },
    "sections without holes": {
        "path": PATH, "name": "{cc}", "wifi": {"station": [{"name": "a", "count": 2}]},
        "flow": [{"cc": "bbr3", "station": "a.2"}, {"cc": "cubic", "rtt": "60ms", "count": 2}],
        "page": [{"cc": "reno", "levels": [["10kB"]]}], "probe": [{"kind": "udp"}],
        "host": {"initial_cwnd": 20}, "udp": [{"rate": "1mbit", "payload": "500B"}],
    },
    "tables, numbers, times, seeds": {
        "seed": "{start}", "start_spread": "{spread}", "flow": [{"cc": "{place.cc}"}],
        "path": {"rate": "10mbit", "rtt": "{place.rtt}", "loss": "{loss*0.5}"},
        "host": {"initial_cwnd": "{start}"},
    },
    "nothing but datagrams": {
        "path": {**PATH, "ecn": True}, "name": "{cc}",
        "udp": [{"rate": "1mbit", "payload": "1000B"}],
    },
}  # fmt: skip
#: Where a scenario needs other values than those of GRID.
AXES: dict[str, dict[str, Any]] = {
    "several of one kind, named, some of them absent": {**GRID, "rtt": ["20ms"], "buffer": [0, 2]},
    "more than a name": {**GRID, "cc": ["reno", "cubic[beta=0.9]", "kernel:cubic"]},
    "tables, numbers, times, seeds": {
        "start": [3, 5],
        "spread": ["0", "2ms"],
        "loss": [0, 0.25, 1],
        "place": [
            {"label": "near", "rtt": "9ms", "cc": "reno"},
            {"label": "far", "rtt": "90ms", "cc": "cubic[beta=0.8]"},
        ],
    },
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_cells_have_the_plans_that_each_has_alone(name: str, tmp_path: Path) -> None:
    template = {"duration": "2s", "warmup": "500ms", **SCENARIOS[name]}
    axes = AXES.get(name, GRID)
    if name.startswith("several"):
        template["path"] = {**PATH, "buffer": "1bdp"}
    document = {"scenario": template, "axis": axes, "sweep": {"seeds": 2}}
    found = read_sweep(document, "sweep.toml", tmp_path)
    planner = Planner(found, tmp_path / "plans", {})
    cells = list(planner.cells())
    planned = planner.plan(cells, 2)
    assert len(planned) == 2 * len(cells) == 2 * len(list(found.points()))
    spool = (tmp_path / "plans").read_bytes()
    for index, one in enumerate(planned):
        point = one.cell.point
        scenario = make_scenario(fill_scenario(template, fields_of(point), "alone")).repeated()
        alone = {**resolve(scenario, scenario.seed + index % 2), "name": ""}
        text = to_json(alone)
        assert spool[one.run.offset :][: one.run.plan_bytes] == text
        facts = facts_of("", alone, alone["seed"], "sim", scenario.warmup)
        version = version_of(alone, facts.queue)
        key = run_key([piece(text)], "sim", scenario.warmup, version, {})
        assert one.run.facts.key == key == one.cell.keys[index % 2]
        assert one.run.facts.seed == alone["seed"]


def test_a_cell_that_is_no_scenario_is_named_whichever_of_its_kin_it_is(tmp_path: Path) -> None:
    template = {"duration": "2s", "path": PATH, "flow": [{"cc": "{cc}"}]}
    for axes, reason in (
        ({**GRID, "cc": ["reno", "renoo"]}, "at rtt 20ms, buffer 0.5, cc renoo: .*renoo"),
        ({**GRID, "rtt": ["20ms", "never"]}, "at rtt never, buffer 0.5, cc bbr3: path.rtt"),
        ({**GRID, "cc": ["reno", 7]}, "cc 7: flow.0.cc"),
    ):
        found = read_sweep({"scenario": template, "axis": axes}, "sweep.toml", tmp_path)
        planner = Planner(found, tmp_path / "plans", {})
        with pytest.raises(UserError, match=reason):
            planner.plan(list(planner.cells()), 1)


def test_keys_are_those_of_older_builds_but_where_a_stored_column_means_something_else() -> None:
    """Of runs without flows goodput was stored as 0 and is null now; of a row of links and of pages
    alone the path was that of a queue without data. All other keys are as they were."""
    flow = {"cc": "reno"}
    path = {"rate": "10mbit", "rtt": "20ms"}
    row = [{"name": "a", "rate": "10mbit", "delay": "5ms"}]
    versions = {}
    for name, part in {
        "flows": {"path": path, "flow": [flow]},
        "downloads": {"path": path, "flow": [{**flow, "direction": "down"}]},
        "datagrams": {"path": path, "udp": [{"rate": "1mbit"}]},
        "links": {"link": row, "flow": [flow]},
        "pages": {"path": path, "page": [{**flow, "levels": [["10kB"]]}]},
    }.items():
        plan = resolve(make_scenario({"duration": "2s", **part}))
        versions[name] = version_of(plan, facts_of("", plan, 1, "sim", 0).queue)
    assert versions == {"flows": 1, "downloads": 1, "datagrams": 2, "links": 3, "pages": 3}
    text = b'{"seed":1,"flows":[{}],"host":{}}'
    core = hashlib.sha256(f"core={_native.sim.components()['core']}".encode()).hexdigest()
    whole = hashlib.sha256(text + f"|{core}|sim|0|1|{{}}".encode()).hexdigest()
    assert run_key([piece(text)], "sim", 0, 1, {}) == whole[:32]
    split = [piece(part) for part in (b'{"seed":1,"flows":', b"[{}]", b',"host":{}}')]
    assert run_key(split, "sim", 0, 1, {}) == whole[:32] != run_key(split, "sim", 0, 2, {})[:32]
