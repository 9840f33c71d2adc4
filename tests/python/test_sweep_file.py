"""What stands in a sweep file: axes, ranges, conditions, samples; and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from fullpipe.base.errors import UserError
from sweep_files import document, sweep


def _values(axis: Any) -> list[Any]:
    found = sweep(axis={"rtt": axis, "buffer": [1], "cc": ["bbr3"]})
    return [point["rtt"] for point in found.points()]


def test_a_linear_range_has_equal_steps_in_the_unit_that_it_was_written_in() -> None:
    assert _values({"from": "10ms", "to": "50ms", "count": 5}) == [
        "10ms", "20ms", "30ms", "40ms", "50ms",
    ]  # fmt: skip
    assert _values({"from": "10ms", "to": "50ms", "step": "20ms"}) == ["10ms", "30ms", "50ms"]


def test_a_logarithmic_range_has_equal_factors() -> None:
    assert _values({"from": "1ms", "to": "1s", "count": 4, "scale": "log"}) == [
        "1ms", "10ms", "100ms", "1s",
    ]  # fmt: skip


def test_zipped_axes_step_together() -> None:
    axes = {"rtt": ["10ms", "40ms"], "buffer": [1, 4], "cc": ["bbr3", "cubic"]}
    found = sweep(axis=axes, sweep={"zip": [["rtt", "buffer"]]})
    assert [tuple(point.values()) for point in found.points()] == [
        ("10ms", 1, "bbr3"), ("10ms", 1, "cubic"), ("40ms", 4, "bbr3"), ("40ms", 4, "cubic"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("rtt < 20ms", 3),
        ("buffer * rtt >= 40ms", 3),
        ("rtt == 10ms and buffer in [1, 4]", 2),
        ("not cc == 'bbr3'", None),
        ("rtt * 10mbit < 40KB", 3),
    ],
)
def test_conditions_compute_with_quantities(condition: str, left: int | None) -> None:
    if left is None:
        with pytest.raises(UserError, match="no point fits"):
            sweep(sweep={"where": condition})
        return
    assert len(list(sweep(sweep={"where": condition}).points())) == left


@pytest.mark.parametrize("kind", ["sobol", "latin-hypercube"])
def test_samples_fill_the_space_and_are_the_same_for_a_seed(kind: str) -> None:
    axes = {"rtt": {"from": "1ms", "to": "100ms", "count": 2, "scale": "log"},
            "buffer": {"from": 0.5, "to": 8.0, "count": 2}, "cc": ["bbr3", "cubic"]}  # fmt: skip
    options = {"sample": {"kind": kind, "cells": 64, "seed": 3}}
    points = list(sweep(axis=axes, sweep=options).points())
    assert points == list(sweep(axis=axes, sweep=options).points())
    assert len(points) == 64
    assert sum(point["cc"] == "cubic" for point in points) == 32
    below = sum(float(point["rtt"].removesuffix("ms")) < 10 for point in points)
    assert below == 32  # half of a logarithmic range lies below its geometric mean


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"axis": {"nothing": [1]}}, "axis.nothing: names no key"),
        ({"axis": {"rtt": []}}, "axis.rtt: is empty"),
        ({"axis": {"rtt": ["10ms", "10mbit"]}}, "axis.rtt: units of different kinds"),
        ({"axis": {"rtt": {"from": "1ms", "to": "5mbit", "count": 3}}}, "one kind"),
        ({"axis": {"rtt": {"from": "9ms", "to": "5ms", "count": 3}}}, "must be above from"),
        ({"axis": {"rtt": {"from": "1ms", "to": "5ms"}}}, "either count or step"),
        ({"axis": {"rtt": {"from": "0ms", "to": "5ms", "count": 3, "scale": "log"}}}, "above 0"),
        ({"axis": {"rtt": {"from": "1ms", "to": "2ms", "step": "300us"}}}, "evenly"),
        ({"axis": {"rtt": "10ms"}}, "neither a list nor a range"),
        ({"axis": {"rtt": ["1ms", "1ms"]}}, "is listed twice"),
        ({"axis": {"seed": [1]}}, "is a column's name"),
        ({"axis": {"Bad-Name": [1]}}, "lower-case letters"),
        ({"sweep": {"where": "rtt <"}}, "sweep.where"),
        ({"sweep": {"where": "nobody < 3"}}, "nobody is no axis"),
        ({"sweep": {"seeds": 0}}, "sweep.seeds"),
        ({"sweep": {"seeds": {"least": 3, "until": "share < 0.1"}}}, "belong together"),
        ({"sweep": {"seeds": {"until": "soon", "most": 3}}}, "must read like"),
        ({"sweep": {"zip": [["rtt", "buffer"]]}}, "different lengths"),
        ({"sweep": {"colour": 1}}, "unknown key"),
        ({"sweep": {"sample": {"kind": "sobol", "cells": 0}}}, "sample"),
        ({"extra": 1}, "extra: unknown"),
        ({"scenario": {}}, r"needs \[scenario\]"),
    ],
)
def test_a_sweep_that_is_wrong_is_refused_with_file_key_and_what_is_allowed(
    change: dict[str, Any], message: str
) -> None:
    whole = document()
    if "axis" in change:
        change = {"axis": {**whole["axis"], **change["axis"]}}
    with pytest.raises(UserError, match=message) as raised:
        sweep(**change)
    assert str(raised.value).startswith("test.toml: ")


def test_a_thousand_million_cells_are_refused_before_they_are_made() -> None:
    long = {"from": 1, "to": 1000, "step": 1}
    with pytest.raises(UserError, match="1000000000 points"):
        sweep(
            axis={"rtt": {"from": "1ms", "to": "1000ms", "step": "1ms"}, "buffer": long, "n": long,
                  "cc": ["bbr3"]},
            scenario={**document()["scenario"], "name": "{n}"},
        )  # fmt: skip
