"""Templates: text such as `"{rate}"` in a scenario becomes the value of an axis.

A number stays a number, `"{path.rtt}"` is a field of an axis whose values are tables,
`"{buffer*1.024}bdp"` a multiple. Knows nothing of scenarios.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from fullpipe.base.errors import UserError

_HOLE = re.compile(r"\{([a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)?)(?:\*([0-9.]+))?\}")


#: What most values of axes are; asking whether one is a mapping takes a while.
_PLAIN = (str, int, float)


def fields_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Every name that templates and conditions may use: axes (a table stands for its label), and
    the fields of tables as `axis.field`."""
    fields = dict(values)
    for name, value in values.items():
        if not isinstance(value, _PLAIN) and isinstance(value, Mapping):
            fields[name] = value["label"]
            fields |= {f"{name}.{key}": item for key, item in value.items()}
    return fields


def holes(value: Any) -> set[str]:
    """The names that a template uses."""
    if isinstance(value, Mapping):
        return set().union(*(holes(part) for pair in value.items() for part in pair))
    if isinstance(value, list):
        return set().union(*(holes(item) for item in value))
    return {hole[1] for hole in _HOLE.finditer(value)} if isinstance(value, str) else set()


def axes_of(value: Any) -> tuple[str, ...]:
    """The axes that a template uses."""
    return tuple(sorted({name.partition(".")[0] for name in holes(value)}))


def fill(value: Any, fields: Mapping[str, Any], source: str) -> Any:
    """The template with its holes filled, tables, their keys and lists included.

    Raises UserError naming an unknown hole and the known ones."""
    return filler(value, source)(fields)


class Template:
    """A scenario's document with holes, prepared once for the many points of a sweep.

    `source` names it in errors."""

    def __init__(self, document: Mapping[str, Any], source: str) -> None:
        self._fill = filler(document, source)
        self._present: list[int] | None = None
        flows = document.get("flow")
        counts = [
            flow.get("count") if isinstance(flow, Mapping) else None
            for flow in (flows if isinstance(flows, list) else [])
        ]
        self._counts = [filler(count, source) for count in counts]
        open_ = any(holes(count) for count in counts)
        self._present = None if open_ else self.present_flows({})

    def at(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The scenario's document; a flow whose count became 0 is left out.

        Raises UserError naming an unknown hole and the known ones."""
        document: dict[str, Any] = self._fill(fields)
        flows = document.get("flow")
        if isinstance(flows, list):
            document["flow"] = [flow for flow in flows if not _is_absent(flow)]
        return document

    @property
    def has_fixed_flows(self) -> bool:
        """Whether `present_flows` are the same everywhere."""
        return self._present is not None

    def present_flows(self, fields: Mapping[str, Any]) -> list[int]:
        """Which of the template's flows `at` gives."""
        if self._present is not None:
            return self._present
        return [index for index, count in enumerate(self._counts) if count(fields) != 0]


def _is_absent(flow: Any) -> bool:
    return isinstance(flow, Mapping) and flow.get("count") == 0


def fill_scenario(template: Mapping[str, Any], fields: Mapping[str, Any], source: str) -> Any:
    """The scenario's document at one point, as `Template.at` gives it."""
    return Template(template, source).at(fields)


#: Gives a value for the fields of a point.
Filler = Callable[[Mapping[str, Any]], Any]


def filler(value: Any, source: str) -> Filler:
    """Fills the holes of a template, which it has read once. `source` names it in errors."""
    if not holes(value):
        return (lambda _fields: _copy(value)) if isinstance(value, dict | list) else lambda _: value
    if isinstance(value, Mapping):
        items = [
            (filler(key, source), filler(item, f"{source}.{key}")) for key, item in value.items()
        ]
        return lambda fields: {str(key(fields)): item(fields) for key, item in items}
    if isinstance(value, list):
        members = [filler(item, f"{source}.{index}") for index, item in enumerate(value)]
        return lambda fields: [member(fields) for member in members]
    whole = _HOLE.fullmatch(value)
    if whole:
        return lambda fields: _filled(whole, fields, source)
    return lambda fields: _HOLE.sub(lambda hole: _text(_filled(hole, fields, source)), value)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _filled(hole: re.Match[str], fields: Mapping[str, Any], source: str) -> Any:
    if hole[1] not in fields:
        known = ", ".join(fields) or "none, for want of a grid"
        raise UserError(f"{source}: {hole[0]} is no axis; known are {known}")
    value = fields[hole[1]]
    if hole[2] is None:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{source}: {hole[0]}: {value!r} is no number to multiply")
    return value * float(hole[2])


def _text(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)
