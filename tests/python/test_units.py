"""Quantities are read once, and only with their units."""

from typing import Any

import pytest

from fullpipe.base import units
from fullpipe.expr.quantities import quantity
from fullpipe.metrics.titles import title_of


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


@pytest.mark.parametrize("unit", ["KB", "kB", "kb", "KiB", "kib"])
def test_sizes_are_powers_of_two_however_they_are_written(unit: str) -> None:
    # tc(8): "kb or k: Kilobytes" are 1024 bytes.
    assert units.parse_size(f"64{unit}") == 65_536
    assert units.parse_buffer(f"64{unit}").limit_bytes(10**9, 10**9) == 65_536
    number = quantity(f"64{unit}")
    assert number is not None and (number.value, number.kind) == (8 * 65_536, "size")


@pytest.mark.parametrize("size_bytes", [1, 1000, 65_536, 10 * 2**20, 3 * 2**30])
def test_a_printed_size_is_read_as_the_same_size(size_bytes: int) -> None:
    assert units.parse_size(units.format_size(size_bytes)) == size_bytes


def test_plots_divide_bytes_by_the_unit_that_they_name() -> None:
    title, divisor = title_of("queue_p95_bytes")
    assert title == "Backlog, 95th percentile (KiB)"
    assert divisor == units.parse_size("1KiB")


def test_a_bdp_is_rate_times_rtt() -> None:
    # 10 Mbit/s x 40 ms = 400,000 bit = 50,000 bytes.
    assert units.parse_buffer("1bdp").limit_bytes(10_000_000, 40_000_000) == 50_000
    assert units.parse_buffer("0.5bdp").limit_bytes(10_000_000, 40_000_000) == 25_000
    assert units.parse_buffer("500ms").limit_bytes(10_000_000, 40_000_000) == 625_000
    assert units.parse_buffer("0.5s").limit_bytes(10_000_000, 1) == 625_000
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


@pytest.mark.parametrize(
    ("parse", "text", "cure"),
    [
        (units.parse_rate, "20Mbit/s", "as a rate it is 20mbit"),
        (units.parse_rate, "20 Mbps", "as a rate it is 20mbit"),
        (units.parse_rate, "1.5 Gb/s", "as a rate it is 1.5gbit"),
        (units.parse_rate, "100M", "as a rate it is 100mbit"),
        (units.parse_rate, "20MB/s", "of bytes, it is 160mbit"),
        (units.parse_rate, "300/20", "these are two rates"),
        (units.parse_rate, "100/40 Mbit/s", "these are two rates"),
        (units.parse_rate, "20,5mbit", "write 20.5mbit: a point"),
        (units.parse_rate, "1,000mbit", "write 1000mbit or 1.000mbit"),
        (units.parse_time, "40msec", "as a time it is 40ms"),
        (units.parse_time, "1,5s", "write 1.5s"),
        (units.parse_buffer, "1Mb", "write 1MB for 1,048,576 bytes"),
        (units.parse_loss, 1, 'write "1%", or "100%"'),
        (units.parse_loss, "1.0", 'write "1%", or "100%"'),
        (units.parse_loss, 2.5, 'write "2.5%"'),
    ],
)
def test_what_people_write_is_answered_by_what_is_right(parse: Any, text: Any, cure: str) -> None:
    with pytest.raises(units.UnitError) as error:
        parse(text)
    assert cure in str(error.value)


@pytest.mark.parametrize("text", [0, 0.5, "0.5", "1%", "100%", 0.999])
def test_a_loss_that_is_plain_is_read(text: Any) -> None:
    assert 0 <= units.parse_loss(text) <= 1


@pytest.mark.parametrize("text", ["1mb", "1MB", "64kb", "64KiB"])
def test_sizes_as_tc_writes_them_are_buffers(text: str) -> None:
    assert units.parse_buffer(text).kind == "bytes"
