"""Axes, stopping, keys and costs of sweeps, against values done by hand."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from scipy import stats

from fullpipe.base.errors import UserError
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario
from fullpipe.sweep.axes import (
    MAX_VALUES,
    Axis,
    grid,
    read_axis,
    read_condition,
    samples,
    size_of_grid,
)
from fullpipe.sweep.cells import asked, cells_of, plan_runs, sweep_id
from fullpipe.sweep.file import read_sweep
from fullpipe.sweep.runs import cost_s, run_of
from fullpipe.sweep.stopping import check_metric, widths
from fullpipe.sweep.tables import SCHEMAS, unique_rows

SCENARIO = {
    "duration": "2s", "warmup": "500ms",
    "path": {"rate": "{rate}", "rtt": "20ms", "buffer": "1bdp"}, "flow": [{"cc": "{cc}"}],
}  # fmt: skip


def sweep(**more: Any) -> Any:
    axis = more.pop("axis", {"rate": ["5mbit", "10mbit"], "cc": ["cubic", "reno"]})
    options = {"name": "by hand", "seeds": 2, **more}
    return read_sweep({"scenario": SCENARIO, "axis": axis, "sweep": options}, "by hand")


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of a store's table; what they do not say is null."""
    schema = SCHEMAS[name]
    return pa.table(
        {field.name: pa.array([row.get(field.name) for row in rows], field.type)
         for field in schema}
    )  # fmt: skip


def test_a_cells_width_is_the_whole_interval_of_its_runs() -> None:
    keys = {0: ["a", "b", "c"], 1: ["d", "e"], 2: ["f"], 3: []}
    rates = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 4.0, "f": 5.0}
    rows = [{"key": key, "goodput_bps": value} for key, value in rates.items()]
    found = widths("jain", keys, {"runs": table("runs", [
        {"key": row["key"], "jain": row["goodput_bps"]} for row in rows])})  # fmt: skip
    # Two halves of t(0.975, 2) x 1 / sqrt(3); t is 4.30265.
    assert found[0] == pytest.approx(2 * 4.3026527 / math.sqrt(3), rel=1e-7)
    assert found[1] == 0 and found[2] == math.inf and found[3] == 0


def test_the_width_of_flows_is_that_of_the_widest_congestion_control() -> None:
    # Per run the mean over its flows of a congestion control: bbr3 2 and 4, cubic 1 and 9.
    values = {("a", "bbr3"): [1.0, 3.0], ("a", "cubic"): [1.0], ("b", "bbr3"): [4.0, None],
              ("b", "cubic"): [9.0]}  # fmt: skip
    rows = [{"key": key, "cc": cc, "share": value}
            for (key, cc), several in values.items() for value in several]  # fmt: skip
    found = widths("share", {0: ["a", "b"]}, {"flows": table("flows", rows)})
    assert found[0] == pytest.approx(2 * stats.t.ppf(0.975, 1) * 4)


def test_a_metric_to_stop_by_is_a_number_of_every_run() -> None:
    for name in ("utilisation", "share", "jain"):
        check_metric(name, "here")
    for bad in ("cc", "key", "seed", "queue", "nothing"):
        with pytest.raises(UserError, match=f"here: '{bad}' is no metric"):
            check_metric(bad, "here")


def read(given: Any) -> Axis:
    return read_axis("x", given, "axis.x")


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ([1, 2.5, "3ms"], (1, 2.5, "3ms")),
        ({"from": 1, "to": 5, "count": 5}, (1, 2, 3, 4, 5)),
        ({"from": 1, "to": 4, "count": 3}, (1.0, 2.5, 4.0)),
        ({"from": 1, "to": 2, "count": 2}, (1, 2)),
        ({"from": "10ms", "to": "30ms", "step": "10ms"}, ("10ms", "20ms", "30ms")),
        ({"from": "10ms", "to": "30ms", "step": "5ms"},
         ("10ms", "15ms", "20ms", "25ms", "30ms")),
        ({"from": "1ms", "to": "1s", "count": 4, "scale": "log"}, ("1ms", "10ms", "100ms", "1s")),
        ({"from": 1, "to": 100, "count": 3, "scale": "log"}, (1, 10, 100)),
        ({"from": 1.0, "to": 8.0, "count": 4, "scale": "log"}, (1.0, 2.0, 4.0, 8.0)),
        ({"from": 1, "to": 3, "count": 5, "scale": "log"}, (1, 2, 3)),
        ({"from": -1, "to": 1, "count": 3}, (-1, 0, 1)),
    ],
)  # fmt: skip
def test_an_axis_has_these_values(given: Any, values: tuple[Any, ...]) -> None:
    found = read(given).values
    assert found == values and [type(one) for one in found] == [type(one) for one in values]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "is empty"), ([1, 1], "listed twice"), (["1ms", "1mbit"], "different kinds"),
        ([None], "no text, number or table"), ([{"a": 1}], "needs a label"),
        ("x", "neither a list"),
        ({"from": 1}, "a range has from, to"), ({"from": 1, "to": 2, "count": 2, "by": 1}, "'by'"),
        ({"from": 1, "to": 1, "count": 2}, "must be above"), ({"from": 2, "to": 1, "count": 2},
         "must be above"), ({"from": "x", "to": 1, "count": 2}, "must be quantities"),
        ({"from": "1ms", "to": "1mbit", "count": 2}, "different kinds"),
        ({"from": 1, "to": 2}, "either count or step"),
        ({"from": 1, "to": 2, "count": 2, "step": 1}, "either count or step"),
        ({"from": 1, "to": 2, "count": 1}, "a whole number, 2 to"),
        ({"from": 1, "to": 2, "count": MAX_VALUES + 1}, "a whole number, 2 to"),
        ({"from": 1, "to": 2, "count": True}, "a whole number, 2 to"),
        ({"from": 1, "to": 2, "count": 2.0}, "a whole number, 2 to"),
        ({"from": 1, "to": 2, "step": 0}, "above 0"), ({"from": 1, "to": 2, "step": "1ms"},
         "above 0"), ({"from": 1, "to": 2, "step": 0.3}, "does not divide"),
        ({"from": 1, "to": 2, "step": 1, "scale": "log"}, "belongs to a linear range"),
        ({"from": 0, "to": 2, "count": 2, "scale": "log"}, "must begin above 0"),
        ({"from": 1, "to": 2, "count": 2, "scale": "cubic"}, "is not \"linear\""),
        ({"from": 0, "to": MAX_VALUES + 1, "step": 1}, "more than"),
    ],
)  # fmt: skip
def test_a_wrong_axis_says_what_is_wrong(given: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        read(given)


def test_an_axis_knows_its_kind_and_takes_sizes_of_three_kinds() -> None:
    assert read(["1ms", "2s"]).kind == "time" and read(["cubic"]).kind == ""
    assert read([1, "2ms"]).kind == "" and read(["1bdp", "10pkt", "64KB"]).kind == ""
    assert read({"from": 0, "to": MAX_VALUES, "step": 1}).values[-1] == MAX_VALUES


def test_a_share_of_an_axis_is_a_place_on_it() -> None:
    listed = read(["a", "b", "c"])
    assert [listed.at(share) for share in (0, 0.33, 0.34, 0.66, 0.67, 1)] == list("aabbcc")
    ranged = read({"from": "10ms", "to": "30ms", "count": 2})
    assert [ranged.at(share) for share in (0, 0.25, 1)] == ["10ms", "15ms", "30ms"]
    log = read({"from": "1ms", "to": "1s", "count": 2, "scale": "log"})
    # 1 ms x 1000^(1/2), to six digits.
    assert log.at(0.5) == "31.6228ms" and log.at(1) == "1s"
    assert read({"from": 1, "to": 9, "count": 2}).at(0.3) == 3


def test_a_grid_is_every_combination_and_zipped_axes_advance_together() -> None:
    axes = [Axis("a", (1, 2)), Axis("b", ("x", "y")), Axis("c", (3, 4))]
    points = list(grid(axes, []))
    assert len(points) == size_of_grid(axes, []) == 8
    assert points[0] == {"a": 1, "b": "x", "c": 3} and points[1] == {"a": 1, "b": "x", "c": 4}
    zipped = list(grid(axes, [["a", "c"]]))
    assert size_of_grid(axes, [["a", "c"]]) == 4
    assert [(p["a"], p["c"], p["b"]) for p in zipped] == [
        (1, 3, "x"), (1, 3, "y"), (2, 4, "x"), (2, 4, "y"),
    ]  # fmt: skip


def test_samples_are_scipys_and_the_same_for_a_seed() -> None:
    axes = [read({"from": 0.0, "to": 1.0, "count": 2}), Axis("c", ("x", "y"))]
    axes[0] = Axis("a", axes[0].values, axes[0].ends)
    found = list(samples(axes, "sobol", 5, 3))
    expected = stats.qmc.Sobol(2, seed=3).random_base2(3)[:5]
    assert [one["a"] for one in found] == pytest.approx(expected[:, 0].tolist(), rel=1e-9)
    assert [one["c"] for one in found] == ["x" if share < 0.5 else "y" for share in expected[:, 1]]
    assert len(list(samples(axes, "sobol", 1, 3))) == 1
    cube = list(samples(axes, "latin-hypercube", 4, 3))
    assert sorted(int(4 * one["a"]) for one in cube) == [0, 1, 2, 3]
    expected = stats.qmc.LatinHypercube(2, seed=3).random(4)
    assert [one["a"] for one in cube] == pytest.approx(expected[:, 0].tolist(), rel=1e-9)


def test_a_condition_names_axes_alone() -> None:
    assert read_condition("a > 1", ["a"], "where").holds({"a": 2})
    with pytest.raises(UserError, match="b is no axis; axes are a"):
        read_condition("a > 1 and b > 1", ["a"], "where")
    with pytest.raises(UserError, match="where: "):
        read_condition("a >", ["a"], "where")


def test_the_cost_of_a_run_by_hand() -> None:
    plan = {"path": {"rate_bps": 12_000_000, "reverse_rate_bps": None, "mtu_bytes": 1500},
            "duration_ns": 10 * 10**9, "flows": [1, 2]}  # fmt: skip
    # 12 Mbit/s for 10 s are 10,000 packets of 1500 B.
    assert cost_s(plan, "sim") == pytest.approx(5e-5 + 2 * 3e-5 + 10_000 * 1.5e-7)
    assert cost_s(plan, "vm") == pytest.approx(1.5 + 10 * 0.1 + 10_000 * 6e-5)
    both = {**plan, "path": {**plan["path"], "reverse_rate_bps": 12_000_000}}
    assert cost_s(both, "sim") == pytest.approx(5e-5 + 2 * 3e-5 + 20_000 * 1.5e-7)


def test_a_run_has_a_key_of_what_decides_it_and_of_nothing_else() -> None:
    document = {
        "duration": "1s",
        "path": {"rate": "5mbit", "rtt": "20ms"},
        "flow": [{"cc": "reno"}],
    }
    run = run_of(make_scenario(document), 3, "sim")
    assert run.facts.seed == 3 and len(run.facts.key) == 32 and not run.has_applications
    named = run_of(make_scenario({**document, "name": "other"}), 3, "sim")
    assert named.facts.key == run.facts.key
    changes: list[dict[str, Any]] = [
        {"warmup": "100ms"}, {"duration": "2s"}, {"flow": [{"cc": "cubic"}]},
        {"path": {"rate": "5mbit", "rtt": "21ms"}},
    ]  # fmt: skip
    keys = {run_of(make_scenario({**document, **one}), 3, "sim").facts.key for one in changes}
    keys |= {run.facts.key, run_of(make_scenario(document), 4, "sim").facts.key}
    keys.add(run_of(make_scenario(document), 3, "sim", {"a": "1"}).facts.key)
    assert len(keys) == len(changes) + 3


def test_cells_count_seeds_up_and_further_runs_continue(tmp_path: Any) -> None:
    wanted = sweep()
    cells = cells_of(wanted)
    assert [cell.index for cell in cells] == [0, 1, 2, 3]
    assert cells[1].point == {"rate": "5mbit", "cc": "reno"}
    told: list[int] = []
    planned = plan_runs(wanted, cells, 2, told.append)
    assert told == [0, 1, 2, 3] and [one.run.facts.seed for one in planned[:3]] == [1, 2, 1]
    again = plan_runs(wanted, cells[:1], 1)
    assert [one.run.facts.seed for one in again] == [3]
    assert [len(cell.keys) for cell in cells] == [3, 2, 2, 2]
    rows = asked(cells).to_pydict()
    assert rows["cell"] == [0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert rows["seed"] == [1, 2, 3, 1, 2, 1, 2, 1, 2]
    assert rows["rate_bps"][:4] == [5e6] * 4 and rows["rate"][-1] == "10mbit"
    assert rows["key"] == [key for cell in cells for key in cell.keys]


def test_a_sweep_is_named_by_what_decides_its_cells() -> None:
    assert sweep_id(sweep()) == sweep_id(sweep()) and len(sweep_id(sweep())) == 16
    assert sweep_id(sweep(axis={"rate": ["5mbit"], "cc": ["cubic"]})) != sweep_id(sweep())


def test_equal_rows_are_kept_once_in_the_order_of_their_identity() -> None:
    rows = pa.table({"key": ["b", "a", "b", "a"], "n": [1, 2, 3, 4], "x": [1.0, 2.0, 3.0, 4.0]})
    assert unique_rows(rows, ["key"]).to_pydict() == {"key": ["a", "b"], "n": [2, 1], "x": [2, 1]}
    assert unique_rows(rows, ["key", "n"]).num_rows == 4


def test_a_plan_of_a_sweep_is_the_scenarios() -> None:
    wanted = sweep()
    (planned, *_) = plan_runs(wanted, cells_of(wanted)[:1], 1)
    assert b'"rate_bps":5000000' in planned.run.plan
    document = {**SCENARIO, "path": {"rate": "5mbit", "rtt": "20ms", "buffer": "1bdp"},
                "flow": [{"cc": "cubic"}]}  # fmt: skip
    plan = resolve(make_scenario(document).repeated(), 1)
    assert planned.run.cost_s == pytest.approx(cost_s(plan, "sim"))
