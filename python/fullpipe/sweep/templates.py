"""Templates: text such as `"{rate}"` in a scenario becomes the value of an axis.

A number stays a number, `"{path.rtt}"` is a field of an axis whose values are tables,
`"{buffer*1.024}bdp"` a multiple. Knows nothing of scenarios.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fullpipe.base.errors import UserError

#: The name of an axis, or of a field of its tables, and a factor.
HOLE = re.compile(r"\{([a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)?)(?:\*([0-9.]+))?\}")


def fields_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Every name that templates and conditions may use: the axes, where a table's value is its
    label, and the fields of tables as `axis.field`."""
    fields = dict(values)
    for name, value in values.items():
        if isinstance(value, Mapping):
            fields[name] = value["label"]
            fields |= {f"{name}.{key}": item for key, item in value.items()}
    return fields


def holes(value: Any) -> set[str]:
    """The names that a template uses."""
    if isinstance(value, Mapping):
        return set().union(*(holes(part) for pair in value.items() for part in pair))
    if isinstance(value, list):
        return set().union(*(holes(item) for item in value))
    return {hole[1] for hole in HOLE.finditer(value)} if isinstance(value, str) else set()


def fill(value: Any, fields: Mapping[str, Any], source: str) -> Any:
    """The template with its holes filled, also in the keys of tables and in lists. `source` names
    the template in errors.

    Raises UserError naming an unknown hole and the known ones."""
    if isinstance(value, Mapping):
        return {
            str(fill(key, fields, source)): fill(item, fields, f"{source}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [fill(item, fields, f"{source}.{index}") for index, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    if whole := HOLE.fullmatch(value):
        return _filled(whole, fields, source)
    return HOLE.sub(lambda hole: _text(_filled(hole, fields, source)), value)


def fill_scenario(
    template: Mapping[str, Any], fields: Mapping[str, Any], source: str
) -> dict[str, Any]:
    """The scenario's document at one point; a flow whose count became 0 is left out.

    Raises UserError as `fill`."""
    document: dict[str, Any] = fill(template, fields, source)
    flows = document.get("flow")
    if isinstance(flows, list):
        document["flow"] = [flow for flow in flows if not _is_absent(flow)]
    return document


def flows_with(template: Mapping[str, Any], fields: Mapping[str, Any], axis: str) -> list[int]:
    """The numbers of the flows whose `[[flow]]` takes its key of that name (of the axis `flow`: its
    name) from an axis, in a scenario that was read."""
    key = "name" if axis == "flow" else axis
    numbers: list[int] = []
    begin = 0
    entries = template.get("flow")
    for entry in entries if isinstance(entries, list) else []:
        end = begin + int(fill(entry.get("count", 1), fields, "flow"))
        if axis in {name.partition(".")[0] for name in holes(entry.get(key))}:
            numbers += range(begin, end)
        begin = end
    return numbers


def _is_absent(flow: Any) -> bool:
    return isinstance(flow, Mapping) and flow.get("count") == 0


def _filled(hole: re.Match[str], fields: Mapping[str, Any], source: str) -> Any:
    if hole[1] not in fields:
        names = ", ".join(fields) or "none, because there is no grid"
        raise UserError(f"{source}: {hole[0]} is no axis; known are {names}")
    value = fields[hole[1]]
    if hole[2] is None:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{source}: {hole[0]}: {value!r} is no number to multiply")
    return value * float(hole[2])


def _text(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)
