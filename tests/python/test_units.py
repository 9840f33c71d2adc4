"""Quantities are read once, and only with their units."""

import pytest

from fullpipe.base import units


@pytest.mark.parametrize(
    ("text", "rate_bps"),
    [("100mbit", 10**8), ("1.5Gbit", 1_500_000_000), ("64 kbit", 64_000), ("1bit", 1)],
)
def test_rates_use_powers_of_ten(text: str, rate_bps: int) -> None:
    assert units.parse_rate(text) == rate_bps


@pytest.mark.parametrize(
    ("text", "time_ns"),
    [("40ms", 40_000_000), ("1.5s", 1_500_000_000), ("250us", 250_000), ("0", 0), (0, 0)],
)
def test_times_become_nanoseconds(text: object, time_ns: int) -> None:
    assert units.parse_time(text) == time_ns


def test_a_duration_is_a_time_above_zero() -> None:
    assert units.parse_duration("1ms") == 1_000_000
    for zero in (0, "0", "0ms"):
        with pytest.raises(units.UnitError, match="above 0"):
            units.parse_duration(zero)


def test_sizes_use_powers_of_two() -> None:
    assert units.parse_size("64KB") == 65536
    assert units.parse_size("1MiB") == 2**20


def test_a_bdp_is_rate_times_rtt() -> None:
    # 10 Mbit/s x 40 ms = 400,000 bit = 50,000 bytes.
    assert units.parse_buffer("1bdp").limit_bytes(10_000_000, 40_000_000) == 50_000
    assert units.parse_buffer("0.5bdp").limit_bytes(10_000_000, 40_000_000) == 25_000
    assert units.parse_buffer("100pkt").limit_bytes(10_000_000, 40_000_000) is None


@pytest.mark.parametrize("text", ["1%", "0.01", 0.01])
def test_ratios_are_fractions_or_percentages(text: object) -> None:
    assert units.parse_ratio(text) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_rate, "100"), (units.parse_rate, 100), (units.parse_rate, "-1mbit"),
        (units.parse_rate, "0mbit"), (units.parse_rate, "nanmbit"), (units.parse_rate, "1e9bit"),
        (units.parse_rate, "9" * 30 + "gbit"), (units.parse_rate, "100ms"),
        (units.parse_time, "40"), (units.parse_time, "-40ms"), (units.parse_time, "9999999999s"),
        (units.parse_time, "ms"), (units.parse_size, "64"), (units.parse_size, "0KB"),
        (units.parse_buffer, "0bdp"), (units.parse_buffer, "1.5pkt"), (units.parse_buffer, ""),
        (units.parse_ratio, "101%"), (units.parse_ratio, -0.1), (units.parse_ratio, True),
        (units.parse_ratio, float("nan")),
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_an_example(parse: object, text: object) -> None:
    with pytest.raises(units.UnitError, match="such as"):
        parse(text)  # type: ignore[operator]


def test_a_list_is_told_from_a_value_without_a_unit() -> None:
    with pytest.raises(units.UnitError, match=r"is a list: write one value.*fullpipe sweep"):
        units.parse_time(["10ms", "30ms"])
