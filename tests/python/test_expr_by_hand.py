"""Quantities, units and the expression language, against values done by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fullpipe.base import units
from fullpipe.base.units import UnitError
from fullpipe.expr.conditions import Condition
from fullpipe.expr.language import MAX_CHARACTERS, MAX_NODES, ExpressionError, literal, parse
from fullpipe.expr.quantities import COLUMN_UNITS, quantity, written

#: Text -> base unit's value, kind.
QUANTITIES: dict[Any, tuple[float, str]] = {
    "250ns": (2.5e-7, "time"), "250us": (2.5e-4, "time"), "40ms": (0.04, "time"),
    "1.5s": (1.5, "time"), "2min": (120, "time"),
    "9bit": (9, "rate"), "9kbit": (9e3, "rate"), "1.5Mbit": (1.5e6, "rate"),
    "2gbit": (2e9, "rate"),
    "3B": (24, "size"), "1KB": (8192, "size"), "1KiB": (8192, "size"), "1MB": (8 * 2**20, "size"),
    "1MiB": (8 * 2**20, "size"), "2GB": (16 * 2**30, "size"), "1gib": (8 * 2**30, "size"),
    "0.5bdp": (0.5, "bdp"), "100pkt": (100, "packets"), "1%": (0.01, "plain"), "7": (7, "plain"),
    ".5": (0.5, "plain"), 3: (3, "plain"), 2.5: (2.5, "plain"), " 40 ms ": (0.04, "time"),
}  # fmt: skip


@pytest.mark.parametrize("text", QUANTITIES)
def test_a_quantity_is_in_the_base_unit_of_its_kind(text: Any) -> None:
    found = quantity(text)
    assert found is not None
    value, kind = QUANTITIES[text]
    assert found.value == pytest.approx(value, rel=1e-12) and found.kind == kind
    assert found.kind == "plain" or found.kind in COLUMN_UNITS


@pytest.mark.parametrize("text", [True, False, None, "cubic", "-3", "3 apples", "", math.inf,
                                  math.nan, "1e3", [1]])  # fmt: skip
def test_other_values_are_no_quantities(text: Any) -> None:
    assert quantity(text) is None


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [
        (0.04, "1ms", "40ms"), (0.04, "1s", "0.04s"), (2e6, "1mbit", "2mbit"),
        (8192, "5KB", "1KB"), (0.5, "1%", "50%"), (1e-7, "1s", "0.0000001s"),
        (3e15, "1bit", "3000000000000000bit"), (1 / 3, "1s", "0.333333333333s"),
    ],
)  # fmt: skip
def test_a_base_value_is_written_in_the_unit_of_another(value: float, like: str, text: str) -> None:
    found = quantity(like)
    assert found is not None and written(value, found) == text


def test_a_plain_number_is_written_as_a_number() -> None:
    found = quantity(7)
    assert found is not None and written(1 / 3, found) == 0.333333333333


@pytest.mark.parametrize(
    ("read", "least", "below", "most", "above"),
    [
        (units.parse_rate, "1bit", "0bit", "1000gbit", "1000000000001bit"),
        (units.parse_time, "0", "-1s", "604800s", "604800000000001ns"),
        (units.parse_duration, "1ns", "0", "604800s", "604800000000001ns"),
        (units.parse_size, "1B", "0B", "1024GB", "1099511627777B"),
        (units.parse_buffer, "1pkt", "0pkt", "1000000pkt", "1000001pkt"),
        (units.parse_buffer, "0.001bdp", "0bdp", "1000000bdp", "1000000.1bdp"),
        (units.parse_spread, "0pkt", "-1pkt", "1000pkt", "1000.5pkt"),
        (units.parse_spread, "0", "-1ns", "604800s", "604800000000001ns"),
        (units.parse_ratio, "0", "-0.1", "100%", "100.1%"),
        (units.parse_ratio, 0, -0.001, 1, 1.001),
        (units.parse_dscp, 0, -1, 63, 64),
        (units.parse_dscp, "0", "-1", "63", "64"),
    ],
)
def test_units_take_their_range_and_no_more(
    read: Any, least: Any, below: Any, most: Any, above: Any
) -> None:
    read(least)
    read(most)
    for bad in (below, above, True, "x", None):
        with pytest.raises(UnitError):
            read(bad)


def test_units_are_read_into_integers() -> None:
    assert units.parse_rate("1.5Gbit") == 1_500_000_000
    assert units.parse_rate("3kbit") == 3000
    assert units.parse_time("2min") == 120 * 10**9 and units.parse_time("250us") == 250_000
    assert units.parse_time(0) == 0 and units.parse_time("1.5ns") == 2
    assert units.parse_size("64kB") == 65_536 and units.parse_size("1.5MB") == 3 * 2**19
    assert units.parse_ratio("12.5%") == 0.125 and units.parse_ratio("0.25") == 0.25
    assert units.parse_dscp("AF41") == 34 and units.parse_dscp("ef") == 46
    assert units.parse_dscp("CS6") == 48 and units.parse_dscp("LE") == 1
    assert units.parse_dscp("af13") == 14 and units.parse_dscp(" BE ") == 0
    assert units.parse_dscp("voice-admit") == 44
    for bad in ("12.5s", 1.5, "1 2ms"):
        with pytest.raises(UnitError):
            units.parse_ratio(bad)
    with pytest.raises(UnitError):
        units.parse_buffer("1.5pkt")


def test_a_number_without_a_unit_is_refused_and_zero_needs_none() -> None:
    assert units.parse_time("0") == 0 and units.parse_spread(0).value == 0
    for bad in (3, "3", 3.0, ["3s"]):
        with pytest.raises(UnitError):
            units.parse_time(bad)
    with pytest.raises(UnitError):
        units.parse_time("0" * 40 + "s")
    assert units.parse_time("0" * 39 + "s") == 0


def test_buffers_and_spreads_in_bytes_and_ns() -> None:
    # 10 Mbit/s x 40 ms are 50,000 B.
    assert units.parse_buffer("2bdp").limit_bytes(10_000_000, 40_000_000) == 100_000
    assert units.parse_buffer("64KB").limit_bytes(1, 1) == 65_536
    assert units.parse_buffer("100pkt").limit_bytes(1, 1) is None
    assert units.parse_buffer("0.000001bdp").limit_bytes(1000, 10**6) == 1
    for unit in ("pkt", "pkts", "packets", "p"):
        assert units.parse_buffer(f"7{unit}") == units.Buffer("packets", 7.0)
    # 1514 B at 10 Mbit/s take 1.2112 ms.
    assert units.parse_spread("2pkt").ns(10_000_000, 1514) == 2_422_400
    assert units.parse_spread("5ms").ns(1, 1) == 5_000_000


def test_values_are_shown_in_the_largest_unit_that_leaves_one() -> None:
    assert units.format_rate(1e9) == "1 Gbit/s" and units.format_rate(999e6) == "999 Mbit/s"
    assert units.format_rate(1500) == "1.5 kbit/s" and units.format_rate(0.5) == "0.5 bit/s"
    assert units.format_time(1e9) == "1 s" and units.format_time(40e6) == "40 ms"
    assert units.format_time(1500) == "1.5 us" and units.format_time(7) == "7 ns"
    assert units.format_size(65_536) == "64 KiB" and units.format_size(1023) == "1023 B"
    assert units.format_size(2**20) == "1 MiB" and units.format_size(3 * 2**29) == "1.5 GiB"
    assert units.format_time(-2e6) == "-2 ms"
    assert units.counted(1, "run") == "1 run" and units.counted(2, "run") == "2 runs"
    assert units.counted(0, "run") == "0 runs"


#: Condition -> whether it holds for FIELDS.
FIELDS = {"rate": "10mbit", "rtt": "40ms", "buffer": "50000B", "cc": "cubic", "n": 4, "on": True,
          "loss": "1%", "cc.n": 2}  # fmt: skip
CONDITIONS = {
    "rtt == 40ms": True, "rtt == 0.04s": True, "rtt < 40ms": False, "rtt <= 40ms": True,
    "rtt > 40ms": False, "rtt >= 40ms": True, "rtt != 40ms": False, "rtt == .04s": True,
    # 10 Mbit/s x 40 ms = 400,000 bit = 50,000 B.
    "rate * rtt == buffer": True, "buffer / rate <= rtt": True, "buffer == 50000B": True,
    "rate + 1mbit == 11mbit": True, "rate - 1mbit == 9mbit": True, "-n < 0": True,
    "n - 1 == 3": True, "2 < n < 5": True, "2 < n < 4": False, "5 > n > 4": False,
    "loss == 0.01": True, "loss == 1%": True, "loss < 2 %": True,
    "cc == 'cubic'": True, 'cc != "bbr3"': True, "cc in ['bbr3', 'cubic']": True,
    "cc in ('bbr3', 'reno')": False, "cc not in ['bbr3']": True, "cc not in ['cubic']": False,
    "rtt in [10ms, 40ms]": True, "n in [3, 4] and rtt > 1s": False, "n == 3 or rtt == 40ms": True,
    "not n == 3": True, "not (n == 4)": False, "on": True, "not on": False, "cc.n == 2": True,
    "cc == '40ms'": False, "n == 4 and (cc == 'reno' or rate > 5mbit)": True,
}  # fmt: skip


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_condition_computes_in_base_units(text: str) -> None:
    assert Condition(text).holds(FIELDS) is CONDITIONS[text]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rtt", "neither true nor false"), ("n", "neither true nor false"),
        ("n / 0 > 1", "divides by zero"), ("x == 1", "'x' is no axis; known: rate, rtt"),
        ("cc < 3", "cannot be compared"), ("cc + 1 > 2", "is not a number"),
        ("on + 1 > 2", "is not a number"), ("-cc == 1", "is not a number"),
        ("cc in 'cubic'", "needs a list"), ("max(n) > 1", "is not allowed here"),
        ("n[0] > 1", "is not allowed here"), ("n ** 2 > 1", "not part of the language"),
        ("n if n else 1", "not part of the language"), ("a.b() > 1", "only the listed functions"),
        ("n ==", "is not an expression"), ("n == None", "neither number nor text"),
        ("n == b'x'", "neither number nor text"),
    ],
)  # fmt: skip
def test_a_wrong_condition_says_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(ExpressionError, match=told):
        Condition(text).holds(FIELDS)


def test_conditions_know_their_names() -> None:
    found = Condition("buffer * rate < 1GB and cc.n > 1 or cc == 'x.y'")
    assert found.names == {"buffer", "rate", "cc"}
    assert found.full_names == {"buffer", "rate", "cc.n", "cc"}
    with pytest.raises(ExpressionError, match="is no thing"):
        Condition("y > 1", "thing").holds({})


def test_an_expression_has_bounds() -> None:
    parse("1" * MAX_CHARACTERS)
    with pytest.raises(ExpressionError, match="longer than"):
        parse("1" * (MAX_CHARACTERS + 1))
    # A sum of n numbers has the root, n numbers, n - 1 operations and as many operators; a minus
    # sign adds two.
    fits = (MAX_NODES + 1) // 3
    parse("-" + "+".join(["1"] * fits))
    with pytest.raises(ExpressionError, match="too long"):
        parse("+".join(["1"] * (fits + 1)))
    assert parse("  1 + 2 ").lineno == 1  # type: ignore[attr-defined]


def test_a_literal_is_a_constant_with_its_sign() -> None:
    assert literal(parse("3")) == 3 and literal(parse("-3.5")) == -3.5
    assert literal(parse("'a'")) == "a" and literal(parse("- -2")) == 2
    assert literal(parse("True")) is True
    for bad in ("-'a'", "1 + 2", "x", "not 1"):
        with pytest.raises(ExpressionError, match="is not a plain number or text"):
            literal(parse(bad))
