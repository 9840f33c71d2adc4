"""A verdict as a line of text, column by column as the scale gives them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fullpipe.experiments.verdict_chart import text_chart
from fullpipe.experiments.verdicts import Verdict


def chart(value: float, low: float, high: float) -> str:
    """Between thresholds at 0 and 100 the axis is -5 to 105: 24 columns from the first one's
    middle to the last one's, so v stands at column (v + 5) / 110 * 23."""
    drawn = SimpleNamespace(value=value, low=low, high=high, thresholds=(0.0, 100.0), paper=None)
    return text_chart(cast(Verdict, cast(Any, drawn)))


@pytest.mark.parametrize(
    ("value", "low", "high", "interval"),
    [
        (49, 47, 50, "o"),  # columns 11.29, 10.87 to 11.50
        (49, 47, 52, "o="),  # 11.92: two columns have no room for brackets around the value
        (52, 47, 52, "=o"),
        (52, 47, 58, "[o]"),  # 13.17
        (52, 47, 62, "[o=]"),  # 14.01
    ],
)
def test_an_interval_has_brackets_from_three_columns_on(
    value: float, low: float, high: float, interval: str
) -> None:
    line = list("·┃" + 20 * "·" + "┃·")  # columns 1.05 and 21.95
    line[11 : 11 + len(interval)] = interval
    assert chart(value, low, high) == "".join(line)


def test_the_value_is_drawn_over_the_papers_and_that_over_a_threshold() -> None:
    drawn = SimpleNamespace(value=0.0, low=None, high=None, thresholds=(0.0, 100.0), paper=100.0)
    assert text_chart(cast(Verdict, cast(Any, drawn))) == "·o" + 20 * "·" + "x·"
