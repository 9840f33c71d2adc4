"""Plans that cells share are those that each cell would have alone, byte for byte."""

from __future__ import annotations

import hashlib
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.cells import Planner
from fullpipe.sweep.file import read_sweep
from fullpipe.sweep.keys import piece, run_key
from fullpipe.sweep.measures import version_of
from fullpipe.sweep.spool import joined
from fullpipe.sweep.templates import fields_of, fill_scenario

PATH = {"rate": "10mbit", "rtt": "{rtt}", "buffer": "{buffer}bdp"}
GRID = {"rtt": ["20ms", "40ms"], "buffer": [0.5, 1, 1.0001], "cc": ["bbr3", "reno"]}
SCENARIOS: dict[str, dict[str, Any]] = {
    "one open flow": {"path": PATH, "flow": [{"cc": "{cc}"}, {"cc": "cubic"}]},
    "several of one kind, named, some of them absent": {
        "path": {**PATH, "buffer": "1bdp"}, "start_spread": "3ms", "rtt_spread": "1pkt",
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
        "flow": [{"cc": "{cc}", "enter": "a"}], "probe": [{"kind": "ping"}], "rtt_spread": "9us",
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
        assert joined(spool, one.run.plan) == text
        version = version_of(alone)
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


#: Values that an axis may give keys of a scenario: right ones, and such as are refused, by
#: themselves or beside others.
VALUES: dict[str, tuple[list[Any], list[Any]]] = {
    "duration": (["2s", "5s", "1min"], ["0", "1s", 3]),
    "warmup": (["0", "500ms", "0.5s"], ["2s", "soon"]),
    "seed": ([1, 7, 2**40], [7.5, -1, "x"]),
    "start_spread": (["0", "3ms", "900ms"], ["2s"]),
    "rtt_spread": (["0", "1pkt", "0.5pkt"], ["-1pkt", "pkt", 1]),
    "sample_interval": (["100ms", "10ms"], ["1us"]),
    "name": (["a", "b"], [""]),
    "path.rate": (["10mbit", "0.01gbit", "12.5mbit"], ["10", "0bit", "9tbit"]),
    "path.rtt": (["20ms", "0.02s", "33333us", "1us"], ["0", "fast", 7]),
    "path.buffer": (["1bdp", "0.333bdp", "64KB", "100pkt"], ["1.5pkt", "0bdp", 1]),
    "path.qdisc": (["fifo", "fq_codel", "cake", "red", "tbf", "pie"], ["sfqq"]),
    "path.qdisc_options.target": (["5ms", "1ms"], ["x"]),
    "path.qdisc_options.flows": ([1, 64], [0]),
    "path.forward_delay": (["0", "5ms", "1us"], ["25ms"]),
    "path.reverse_rate": (["5mbit", "1mbit"], ["-1mbit"]),
    "path.mtu": ([1500, 9000, 576], [100, 1500.5]),
    "path.loss": ([0, 0.0, "1%", 0.25, -0.0], [2]),
    "path.loss_correlation": ([0, 0.0], [0.25]),
    "path.jitter": (["0", "2ms"], [True]),
    "path.ecn": ([True, False, "l4s", "classic"], [1, "no"]),
    "host.initial_cwnd": ([10, 1, 10.0], [0]),
    "host.access_rate": (["20mbit", "1gbit"], ["x"]),
    "host.tcp": (["6.1", "6.18"], ["2.4"]),
    "flow.0.cc": (["bbr3", "reno", "cubic[beta=0.8]"], ["renoo", 3]),
    "flow.0.count": ([0, 1, 3, 1.0], [2000]),
    "flow.0.rtt": (["20ms", "60ms", "0.02s"], ["1ns", "0"]),
    "flow.1.cc": (["cubic", "bbr1", "kernel:reno"], [""]),
    "flow.1.start": (["0", "1s"], ["9s"]),
    "flow.1.direction": (["up", "down"], ["left"]),
    "flow.1.jitter": (["0", "1ms"], ["1"]),
    "udp.0.payload": (["500B", "1472B"], ["1473B"]),
    "udp.0.rate": (["1mbit", "500kbit"], [1]),
    "probe.0.interval": (["200ms", "50ms"], ["1us"]),
    "page.0.cc": (["reno", "cubic"], ["no"]),
    "cc.reno.beta": ([0.5, 0.75], [7]),
    "link.0.rate": (["10mbit", "4mbit"], ["0"]),
    "link.0.delay": (["5ms", "1us"], ["soon"]),
    "link.1.buffer": (["1bdp", "20pkt"], ["1"]),
}  # fmt: skip
OTHERS: dict[str, Any] = {
    "duration": "2s", "path.rate": "10mbit", "path.rtt": "20ms", "flow.0.cc": "reno",
    "flow.1.cc": "cubic", "udp.0.rate": "1mbit", "page.0.cc": "reno",
    "page.0.levels": [["10kB"]], "probe.0.kind": "ping",
    "link.0.name": "a", "link.0.rate": "10mbit", "link.0.delay": "5ms",
    "link.1.name": "b", "link.1.rate": "20mbit",
}  # fmt: skip


@st.composite
def sweeps(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """A template that is open in up to four keys, and its axes; some keys share an axis."""
    has_links = draw(st.integers(0, 4)) == 0
    other = "link." if not has_links else "path."
    fitting = sorted(key for key in VALUES if not key.startswith(other))
    keys = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=4, unique=True))
    groups = {key.rpartition(".")[0] for key in keys} | {"flow.0", "flow.1"}
    groups |= {"link.0", "link.1"} if has_links else {"path"}
    found = {
        key: value for key, value in OTHERS.items()
        if key == "duration" or key.rpartition(".")[0] in groups or key in keys
    }  # fmt: skip
    axes: dict[str, list[Any]] = {}
    for number, key in enumerate(keys):
        axis = f"a{number}"
        right, wrong = VALUES[key]
        values = draw(st.lists(st.sampled_from(right), min_size=1, max_size=3, unique_by=str))
        if draw(st.integers(0, 7)) == 0:
            values.insert(draw(st.integers(0, len(values))), draw(st.sampled_from(wrong)))
        axes[axis], found[key] = values, f"{{{axis}}}"
        if draw(st.booleans()) and all(type(value) in (int, float) for value in values):
            found[key] = f"{{{axis}*1}}"
    if draw(st.booleans()) and "path.buffer" not in keys and not has_links:
        axes["n"], found["path.buffer"] = [0.5, 1, 1.0001], "{n*1.5}bdp"
        found["flow.0.amount"] = "{n}MB"
    return _nested(found), axes


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    """A scenario's document from keys with dots; numbers are places in lists."""
    document: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, last = key.split(".")
        place = document
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    for key, below in document.items():
        if isinstance(below, dict) and below.keys() <= {"0", "1"}:
            document[key] = [below[place] for place in sorted(below)]
    return document


@settings(max_examples=150, deadline=None)
@given(sweep=sweeps())
def test_of_any_template_each_cell_has_the_plan_or_the_refusal_that_it_has_alone(
    sweep: tuple[dict[str, Any], dict[str, list[Any]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    template, axes = sweep
    folder = tmp_path_factory.mktemp("sweep")
    found = read_sweep({"scenario": template, "axis": axes}, "sweep.toml", folder)
    planner = Planner(found, folder / "plans", {})
    for cell in planner.cells():
        where = ", ".join(f"{name} {value}" for name, value in cell.point.items())
        try:
            document = fill_scenario(template, cell.point, "sweep.toml: scenario")
            scenario = make_scenario(document, f"sweep.toml: scenario at {where}").repeated()
            alone: Any = to_json({**resolve(scenario), "name": ""})
        except UserError as error:
            alone = str(error)
        try:
            (one,) = planner.plan([cell], 1)
            together: Any = joined((folder / "plans").read_bytes(), one.run.plan)
        except UserError as error:
            together = str(error)
        assert together == alone


def test_keys_are_those_of_older_builds_but_where_a_stored_column_means_something_else() -> None:
    """Of runs without flows goodput was stored as 0 and is null now; of a row of links and of pages
    alone the path was that of a queue without data, and of downloads over a row the bottleneck
    that uploads would have. All other keys are as they were."""
    flow = {"cc": "reno"}
    path = {"rate": "10mbit", "rtt": "20ms"}
    row = [{"name": "a", "rate": "10mbit", "delay": "5ms"}]
    versions = {}
    for name, part in {
        "flows": {"path": path, "flow": [flow]},
        "downloads": {"path": path, "flow": [{**flow, "direction": "down"}]},
        "datagrams": {"path": path, "udp": [{"rate": "1mbit"}]},
        "links": {"link": row, "flow": [flow]},
        "downloads over links": {"link": row, "flow": [{**flow, "direction": "down"}]},
        "downloads over another way back": {
            "link": [{**row[0], "reverse": {"rate": "5mbit"}}],
            "flow": [{**flow, "direction": "down"}],
        },
        "pages": {"path": path, "page": [{**flow, "levels": [["10kB"]]}]},
    }.items():
        alone = resolve(make_scenario({"duration": "2s", **part}))
        versions[name] = version_of(alone)
    assert versions == {
        "flows": 1, "downloads": 1, "datagrams": 2, "links": 3, "downloads over links": 3,
        "downloads over another way back": 4, "pages": 3,
    }  # fmt: skip
    text = b'{"seed":1,"flows":[{}],"host":{}}'
    core = hashlib.sha256(f"core={_native.sim.components()['core']}".encode()).hexdigest()
    whole = hashlib.sha256(text + f"|{core}|sim|0|1|{{}}".encode()).hexdigest()
    assert run_key([piece(text)], "sim", 0, 1, {}) == whole[:32]
    split = [piece(part) for part in (b'{"seed":1,"flows":', b"[{}]", b',"host":{}}')]
    assert run_key(split, "sim", 0, 1, {}) == whole[:32] != run_key(split, "sim", 0, 2, {})[:32]


def test_plain_values_are_the_json_that_pydantic_writes() -> None:
    draw = random.Random(3)

    def some(depth: int) -> Any:
        kinds = 8 if depth else 6
        return [
            lambda: None,
            lambda: draw.random() < 0.5,
            lambda: draw.choice([0, -1, 2**63, 2**64 - 1, -(2**63), draw.randrange(10**9)]),
            lambda: draw.choice([0.1, -0.0, 1e16, 1e-7, 1.5e300, 5e-324, draw.uniform(-9, 9)]),
            lambda: draw.choice([math.inf, -math.inf, math.nan, float(draw.randrange(10**6))]),
            lambda: "".join(draw.choices('aé"\\\n\x00\x7f\u2028😀', k=draw.randrange(6))),
            lambda: [some(depth - 1) for _ in range(draw.randrange(4))],
            lambda: {str(key): some(depth - 1) for key in range(draw.randrange(4))},
        ][draw.randrange(kinds)]()

    for _ in range(2000):
        value = some(3)
        assert _native.to_json(value) == to_json(value)
    assert _native.to_json((1, [2])) == b"[1,[2]]"
    for wrong in ({1: 2}, {3}, b"a", 2**64):
        with pytest.raises((TypeError, OverflowError)):
            _native.to_json(wrong)


def test_hashes_of_texts_that_begin_alike_are_those_of_each_alone() -> None:
    draw = random.Random(4)
    for length in (0, 1, 63, 64, 65, 1000):
        head, tails = draw.randbytes(length), [draw.randbytes(size) for size in (0, 5, 64, 2000)]
        wanted = [hashlib.sha256(head + tail).hexdigest() for tail in tails]
        assert _native.sha256(head, tails) == wanted
        assert _native.sha256(head, tails, 32) == [digits[:32] for digits in wanted]
