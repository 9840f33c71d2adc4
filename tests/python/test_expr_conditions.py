"""Conditions on axes: numbers with units are quantities, texts in quotes are compared as they
stand."""

from __future__ import annotations

from typing import Any

import pytest

from fullpipe.expr.conditions import Condition

FIELDS: dict[str, Any] = {"cell": "Reno, 1%, 100 ms", "rtt": "50ms", "loss": "1%", "n": 2}


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("rtt == 50ms", True),
        ("rtt == 0.05 s", True),
        ("rtt == '50ms'", True),
        ("rtt * n > 99ms and loss < 2%", True),
        ("rtt in (10ms, 50ms)", True),
        ("rtt > 50ms", False),
        ("cell == 'Reno, 1%, 100 ms'", True),
        ('cell in ("CUBIC, 1%, 100 ms", "Reno, 1%, 100 ms")', True),
        ("cell == 'Reno, 0.01, 100 ms'", False),
        ("cell == 'Reno, 1%, 100 ms' and rtt == 50ms", True),
    ],
)
def test_a_unit_counts_outside_quotes_and_not_within(text: str, true: bool) -> None:
    assert Condition(text).holds(FIELDS) == true
