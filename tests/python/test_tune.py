"""A search finds the constant that a formula gives, repeats itself, and looks at held-out paths
once. The subject has a window that never changes, so the best one is the path's capacity."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fullpipe import cli
from fullpipe.base.errors import UserError
from fullpipe.base.toml import parse_toml
from fullpipe.statistics.intervals import wilson
from fullpipe.sweep.store import Store
from fullpipe.tune.file import read_search
from fullpipe.tune.objective import Objective
from fullpipe.tune.searching import Found, search
from fullpipe.tune.settings import Bench

STILL = """/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "cc.h"
#include "params.h"
#include "state.h"
#include "window.h"
#define still_CONTRACT 5
#define still_TITLE "a window that never changes"
#define still_FLAGS CC_OWNS_CWND
#define still_PARAMS(P)                                                                       \\
	P(window, 10, 1, 1000, 1, "packets", "not allowed", "test", "the window")             \\
	P(idle, 3, 0, 100, 1, "packets", "not allowed", "test", "has no effect")
struct still_params {
	still_PARAMS(CC_PARAM_FIELD)
};
struct still {
	u32 window; /* packets */
};
#define still_STATE(S) S(window, "packets", 1, s->window, "the window")
CC_INLINE void still_init(struct still *s, const struct still_params *p, const struct cc_conn *c,
	struct cc_ctl *ctl)
{
	s->window = p->window;
	ctl->cwnd = p->window;
}
CC_INLINE void still_on_ack(struct still *s, const struct still_params *p,
	const struct cc_conn *c, const struct cc_ack *ack, struct cc_ctl *ctl)
{
	ctl->cwnd = p->window;
}
CC_INLINE void still_on_event(struct still *s, const struct still_params *p,
	const struct cc_conn *c, const struct cc_event *event,
	struct cc_ctl *ctl)
{
	ctl->cwnd = p->window;
}
"""
#: The path holds 10 Mbit/s * 40 ms / (8 * 1514 bytes) = 33.0 packets.
CAPACITY = 33
DOCUMENT = """
[tune]
cc = "./still.h"
minimise = "own.delay + 100 * max(0, 0.97 - own.utilisation)"
trials = 40
against = ["cubic"]
[parameters]
window = { from = 2, to = 200, scale = "log" }
idle = { from = 0, to = 100, off = 0 }
[ablations]
"half of it" = { window = 16 }
[[row]]
id = "own"
[row.scenario]
duration = "4s"
warmup = "1s"
path = { rate = "10mbit", rtt = "{rtt}", buffer = "8bdp" }
flow = [{ cc = "{cc.name}", count = "{cc.n}", name = "subject" }]
[row.axis]
rtt = { from = "40ms", to = "41ms", count = 2 }
[row.sweep]
seeds = 1
sample = { kind = "latin-hypercube", cells = 2, seed = 1 }
[[row.measure]]
id = "delay"
title = "median queueing delay, ms"
column = "path.queue_delay_p50_ms"
[[row.measure]]
id = "utilisation"
title = "utilisation"
column = "path.utilisation"
[row.share]
full = "utilisation >= 0.97"
"""


TUNE = parse_toml(DOCUMENT)["tune"]


def row(*measures: dict[str, str], share: dict[str, str] | None = None) -> dict[str, Any]:
    """The document's row, with other measures or another share."""
    given = parse_toml(DOCUMENT)["row"][0]
    return {
        **given,
        "measure": list(measures) or given["measure"],
        "share": given["share"] if share is None and not measures else share or {},
    }


def measure(column: str) -> dict[str, str]:
    return {"id": "delay", "title": "delay", "column": column}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("tune")
    (found / "still.h").write_text(STILL)
    (found / "still.toml").write_text(DOCUMENT)
    return found


def changed(**changes: Any) -> dict[str, Any]:
    return {**parse_toml(DOCUMENT), **changes}


def searched(folder: Path, store: Path) -> Found:
    wanted = read_search(parse_toml(DOCUMENT), "still.toml", folder)
    bench = Bench(wanted, Store(store, create=True), jobs=1)
    return search(wanted, bench, wanted.options.trials, lambda _done, _least: None)


@pytest.fixture(scope="module")
def found(folder: Path) -> Found:
    return searched(folder, folder / "store")


@pytest.mark.slow
def test_it_finds_the_window_that_the_path_holds(found: Found) -> None:
    assert found.best is not None
    assert abs(int(found.best.setting["window"]) - CAPACITY) <= 1
    assert found.best.result.objective < 2


@pytest.mark.slow
def test_a_constant_without_effect_goes_back_to_its_default(found: Found) -> None:
    assert found.best is not None
    assert found.best.setting["idle"] == "3"


def test_half_the_window_uses_half_the_path(found: Found) -> None:
    (half,) = (one.result for one in found.variants if one.kind == "ablation")
    assert half.values["own.utilisation"] == pytest.approx(16 / CAPACITY, rel=0.03)
    assert half.values["own.full"] == 0


@pytest.mark.slow
def test_the_same_file_tries_the_same_and_runs_nothing_twice(folder: Path, found: Found) -> None:
    parts = sorted(path.name for path in (folder / "store" / "parts").iterdir())
    assert searched(folder, folder / "store") == found
    assert sorted(path.name for path in (folder / "store" / "parts").iterdir()) == parts


@pytest.mark.slow
def test_held_out_paths_are_others_and_are_looked_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def tune(*more: str) -> tuple[int, str, str]:
        words = [str(folder / "still.toml"), "--out", str(folder / "out"), "--jobs", "1", "--json"]
        monkeypatch.setattr(sys, "argv", ["fullpipe", "tune", *words, *more])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return (int(ended.value.code or 0), *capsys.readouterr())

    first = json.loads(tune()[1])
    held_out = json.loads(tune("--held-out")[1])
    names = [result["cc"] for result in held_out["results"]]
    assert names == [first["best"]["cc"], "still", "cubic"]
    assert held_out["results"][0]["values"] != first["best"]["values"]

    # The same constants: what was seen is printed again. Other constants: refused.
    assert json.loads(tune("--held-out")[1]) == held_out
    document = json.loads((folder / "out" / "tune.json").read_text())
    document["best"]["setting"]["window"] = "50"
    (folder / "out" / "tune.json").write_text(json.dumps(document))
    status, _, said = tune("--held-out")
    assert status == 2
    assert "no longer held out" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"parameters": {"gain": {"from": 1, "to": 2}}}, "parameters.gain: still has no such"),
        ({"parameters": {"window": {"from": 9, "to": 2}}}, "from 9 must be below to"),
        ({"parameters": {"window": {"from": 2, "to": 5000}}}, "out of range: 1 to 1000 packets"),
        ({"parameters": {}}, "parameters: 1 to 20 constants"),
        ({"ablations": {"x": {"y": 1}}}, "ablations.x: unknown constant y"),
        ({"row": []}, "row: is missing"),
        ({"row": [{"id": "a", "item": "rfc1"}]}, "row.0.item: 'rfc1' is no item"),
        ({"rows": []}, "rows: unknown; a search has"),
        ({"tune": {"cc": "kernel:cubic", "minimise": "1"}}, "has no constants"),
        ({"tune": {"cc": "cubic", "minimise": "own.delay"}}, "cubic has no such constant"),
        ({"tune": {"cc": "./still.h", "minimise": "own.speed"}}, "tune.minimise: 'own.speed'"),
        ({"tune": {"cc": "./still.h", "minimise": "exit()"}}, "known functions are abs, max, min"),
        (
            {"tune": {**TUNE, "against": ["nope"]}},
            "tune.against: unknown congestion control 'nope'",
        ),
        (
            {"tune": {**TUNE, "against": ["kernel:bbr"]}},
            "tune.against: kernel:bbr runs in a kernel",
        ),
        (
            {"row": [row(measure("path.nope"))]},
            "row.0.measure.0.column: 'nope' is no column of path",
        ),
        ({"row": [row(measure("path.queue"))]}, "'queue' is no column of path; there are"),
        (
            {"row": [row(measure("links.delay"))]},
            "'links.delay' is no TABLE.COLUMN; the tables are",
        ),
        (
            {"row": [row(measure("flows.share"))]},
            "row.0.measure.0.group: belongs to columns of flows",
        ),
        (
            {"row": [row(share={"full": "utilisatio >= 0.97"})]},
            "row.0.share.full: 'utilisatio' is no measured value; known: delay, utilisation",
        ),
        (
            {"row": [row(share={"full": "delay > 9 and utilisatio >= 0.97"})]},
            "row.0.share.full: 'utilisatio' is no measured value",
        ),
        (
            {"row": [{"id": "own", "item": "rfc9743-5.1.2", "scenario": {"duration": "4s"}}]},
            "row.0.scenario: rfc9743-5.1.2 has its own",
        ),
    ],
)
def test_a_wrong_file_is_refused_by_key(folder: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        read_search(changed(**changes), "still.toml", folder)
    assert said in str(caught.value)


def test_an_objective_without_a_measurement_is_the_worst() -> None:
    wanted = Objective("max(1, a.b) + abs(0 - 2)", ["a.b"])
    assert wanted.value({"a.b": 3.0}) == 5.0
    assert wanted.value({"a.b": float("nan")}) == float("inf")


@pytest.mark.parametrize(
    ("minimise", "why"),
    [
        ("1 / 0 + own.delay", "'1 / 0 + own.delay' divides by 0"),
        ("own.delay + own.other", "none of the first 8 has a value of own.other"),
    ],
)
def test_a_search_whose_objective_never_has_a_value_is_refused(
    folder: Path, minimise: str, why: str
) -> None:
    document = changed(tune={**TUNE, "minimise": minimise})
    nobody = {"id": "other", "title": "of no flow", "column": "flows.share", "group": "nobody"}
    document["row"][0]["measure"].append(nobody)
    del document["parameters"]["idle"]
    wanted = read_search(document, "still.toml", folder)
    bench = Bench(wanted, Store(folder / "never", create=True), jobs=1)
    with pytest.raises(UserError) as caught:
        search(wanted, bench, wanted.options.trials, lambda _done, _least: None)
    said = str(caught.value)
    assert said == f"still.toml: tune.minimise has no value for any setting: {why}"


def test_a_file_to_measure_against_is_seen_from_the_searchs_folder(folder: Path) -> None:
    wanted = read_search(changed(tune={**TUNE, "against": ["./still.h"]}), "still.toml", folder)
    assert wanted.options.against == [str(folder.resolve() / "still.h")]


def test_wilsons_interval_is_that_of_the_formula() -> None:
    # 8 of 10 with z = 1.959964: centre (0.8 + z^2/20) / (1 + z^2/10), half-width likewise.
    low, high = wilson(8, 10)
    assert (low, high) == pytest.approx((0.490162, 0.943318), abs=1e-5)
