"""Quantities of a scenario as types of its models: text with a unit, checked and parsed."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from fullpipe import units


class _Parser(BeforeValidator):
    """A parser of one value, which Pydantic does not look into: the scenario's keys have 160, and
    asking each for its signature is a fifth of the time that the first scenario takes."""

    def __get_pydantic_core_schema__(
        self, source_type: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        parse: Any = self.func
        return core_schema.no_info_before_validator_function(parse, schema=handler(source_type))


def _quantity(parse: Any, description: str, example: str) -> Any:
    schema = {"type": "string", "description": description, "examples": [example]}
    return (_Parser(parse), WithJsonSchema(schema))


_RATE, _TIME, _SIZE, _BUFFER, _RATIO = (
    _quantity(units.parse_rate, "a rate with its unit", "100mbit"),
    _quantity(units.parse_time, "a time with its unit", "40ms"),
    _quantity(units.parse_size, "a size with its unit", "64KB"),
    _quantity(units.parse_buffer, "a queue limit: BDP, bytes or packets", "1bdp"),
    _quantity(units.parse_ratio, "a probability", "1%"),
)
Rate = Annotated[int, *_RATE]
Time = Annotated[int, *_TIME]
Size = Annotated[int, *_SIZE]
Buffer = Annotated[units.Buffer, *_BUFFER]
Ratio = Annotated[float, *_RATIO]
Dscp = Annotated[
    int,
    _Parser(units.parse_dscp),
    WithJsonSchema({
        "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0, "maximum": 63}],
        "description": "a DSCP: its name, or a number from 0 to 63", "examples": ["EF"],
    }),
]  # fmt: skip


class Part(BaseModel):
    """A section of a scenario: no other keys than its own."""

    # Built at their first use: the scenario builds its parts once more as its own.
    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, defer_build=True
    )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Itself, for it is frozen: a section left out would else be copied field by field, half
        of the time that a scenario takes to read."""
        return self
