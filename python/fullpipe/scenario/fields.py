"""Quantities of a scenario as types of its keys: text with a unit, checked and parsed."""

from __future__ import annotations

from typing import Annotated, Any

from fullpipe.base import units
from fullpipe.base.parts import Parsed


def _quantity(parse: Any, description: str, example: str) -> Parsed:
    return Parsed(parse, {"type": "string", "description": description, "examples": [example]})


_RATE, _TIME, _SIZE, _BUFFER, _SPREAD, _RATIO = (
    _quantity(units.parse_rate, "a rate with its unit", "100mbit"),
    _quantity(units.parse_time, "a time with its unit", "40ms"),
    _quantity(units.parse_size, "a size with its unit", "64KB"),
    _quantity(units.parse_buffer, "a queue limit: BDP, bytes or packets", "1bdp"),
    _quantity(units.parse_spread, "packets' times at the bottleneck, or a time", "1pkt"),
    _quantity(units.parse_ratio, "a probability", "1%"),
)
Rate = Annotated[int, _RATE]
Time = Annotated[int, _TIME]
Size = Annotated[int, _SIZE]
Buffer = Annotated[units.Buffer, _BUFFER]
Spread = Annotated[units.Spread, _SPREAD]
Ratio = Annotated[float, _RATIO]
Dscp = Annotated[
    int,
    Parsed(units.parse_dscp, {
        "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0, "maximum": 63}],
        "description": "a DSCP: its name, or a number from 0 to 63", "examples": ["EF"],
    }),
]  # fmt: skip
