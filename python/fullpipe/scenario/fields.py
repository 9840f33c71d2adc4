"""What the sections of a scenario are made of: the base of their models, and quantities as types.

A quantity is text with a unit in a document and an integer in base units in a model. Knows no key.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from fullpipe.base import units
from fullpipe.base.toml import WrittenFloat


class Section(BaseModel):
    """A table of a document. Unknown keys are refused; what was read does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _numbers_are_numbers(cls, document: Any) -> Any:
        """Pydantic would take `count = "3"` and `count = true` for numbers. It may take 3.0 for 3:
        templates of sweeps multiply."""
        if isinstance(document, dict):
            for key in _number_keys(cls) & document.keys():
                if isinstance(document[key], str | bool):
                    raise ValueError(f"{key}: must be a number, without quotes")
        return document


def release_name(written: Any) -> Any:
    """A kernel's release that was written without quotes. Raises ValueError for a number of which
    nobody knows whether it was 6.1 or 6.10."""
    if isinstance(written, WrittenFloat):
        return written.text
    if not isinstance(written, float):
        return written
    if (text := repr(written)).endswith(".1"):
        raise ValueError(f'a number, {text} is also {text}0; write "{text}" in quotes')
    return text


@functools.cache
def _number_keys(model: type[BaseModel]) -> frozenset[str]:
    """The keys of a table that hold plain numbers."""
    return frozenset(
        field.alias or name
        for name, field in model.model_fields.items()
        if _is_number(field.annotation)
        and not any(isinstance(item, Quantity | BeforeValidator) for item in field.metadata)
    )


def _is_number(annotation: Any) -> bool:
    """Whether an annotation is a number and nothing else, or None."""
    kinds = set(get_args(annotation)) - {type(None)} or {annotation}
    return kinds <= {int, float}


@dataclass(frozen=True)
class Quantity:
    """An annotation: how a key's text becomes its value, and how people read and write it.

    `parse` raises ValueError; `written` gives a value's text; `limits` are the bounds in words."""

    name: str
    about: str
    example: str
    limits: str
    parse: Callable[[Any], Any]
    written: Callable[[Any], str]

    def between(self, least: int, most: int) -> Quantity:
        """The same within narrower bounds, in base units."""

        def parse(text: Any) -> Any:
            value = self.parse(text)
            if value < least:
                raise units.UnitError(f"{text!r}: must be at least {self.written(least)}")
            if value > most:
                raise units.UnitError(f"{text!r}: must be at most {self.written(most)}")
            return value

        limits = f"{self.written(least)} to {self.written(most)}"
        return replace(self, about=f"{self.about}, {limits}", limits=limits, parse=parse)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.parse, handler(source))

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        kinds: dict[str, Any] = {"type": "string"}
        if self.name == "DSCP":
            kinds = {"anyOf": [kinds, {"type": "integer", "minimum": 0, "maximum": 63}]}
        return {
            **kinds,
            "format": self.name,
            "description": self.about,
            "examples": [self.example],
        }


def _shortest(sizes: dict[str, int]) -> Callable[[int], str]:
    """Writes a value in the largest unit of which it is a multiple."""

    def written(value: int) -> str:
        unit, size = next((u, s) for u, s in sizes.items() if value % s == 0)
        return f"{value // size}{unit}" if value else "0"

    return written


def _dscp(value: int) -> str:
    names = (name.upper() for name, code in units.DSCP.items() if code == value)
    return next(names, str(value))


_RATE = Quantity(
    "rate",
    "a rate with its unit",
    "100mbit",
    "above 0, to 1000gbit",
    units.parse_rate,
    _shortest({"gbit": 10**9, "mbit": 10**6, "kbit": 10**3, "bit": 1}),
)
TIME = Quantity(
    "time",
    "a time with its unit",
    "40ms",
    "0 to 604800s",
    units.parse_time,
    _shortest({"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}),
)
_DURATION = replace(TIME, limits="above 0, to 604800s", parse=units.parse_duration)
SIZE = Quantity(
    "size",
    "a size with its unit",
    "64KB",
    "1B to 1024GB",
    units.parse_size,
    _shortest({"GB": units.GIB, "MB": units.MIB, "KB": units.KIB, "B": 1}),
)
_BUFFER = Quantity(
    "buffer",
    "a queue limit: BDP, bytes, packets, or a time at the link's rate",
    "1bdp",
    "above 0, to 1000000 bdp or pkt",
    units.parse_buffer,
    lambda value: f"{value.value:g}{value.kind}",
)
_SPREAD = Quantity(
    "spread",
    "a time, or how long packets take at the bottleneck",
    "1pkt",
    "0 to 1000pkt or 604800s",
    units.parse_spread,
    lambda value: f"{value.value:g}{value.kind}",
)
_RATIO = Quantity(
    "ratio", "a probability", "1%", "0 to 1, or 0% to 100%", units.parse_ratio, "{:g}".format
)
_LOSS = replace(_RATIO, limits="0 to below 1, or 0% to 100%", parse=units.parse_loss)
_DSCP = Quantity(
    "DSCP",
    "a DSCP: its name, or a number from 0 to 63",
    "EF",
    "a name, or 0 to 63",
    units.parse_dscp,
    _dscp,
)
#: By their names, which the JSON schema gives as `format`.
QUANTITIES = {
    quantity.name: quantity for quantity in (_RATE, TIME, SIZE, _BUFFER, _SPREAD, _RATIO, _DSCP)
}

Rate = Annotated[int, _RATE]
Time = Annotated[int, TIME]
#: Times at which something repeats: shorter ones are a slip of the pen, and would exhaust memory.
Interval = Annotated[int, TIME.between(10**6, units.MAX_TIME_NS)]
#: A time above 0.
Duration = Annotated[int, _DURATION]
Size = Annotated[int, SIZE]
Buffer = Annotated[units.Buffer, _BUFFER]
Spread = Annotated[units.Spread, _SPREAD]
Ratio = Annotated[float, _RATIO]
#: A share of packets that are lost: a plain 1 is refused.
Loss = Annotated[float, _LOSS]
Dscp = Annotated[int, _DSCP]
