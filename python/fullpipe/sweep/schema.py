"""The JSON schema of sweep files, made from that of scenarios. It knows no key of a scenario."""

from __future__ import annotations

from typing import Any

from fullpipe.scenario.reference import DIALECT
from fullpipe.scenario.reference import json_schema as of_scenarios
from fullpipe.sweep.file import Options
from fullpipe.sweep.templates import HOLE

#: What may stand in a scenario where a value belongs: text with the name of an axis.
_HOLE = {"type": "string", "pattern": HOLE.pattern}
_VALUE = {"type": ["string", "number", "boolean", "object"]}
_RANGE = {
    "type": "object",
    "required": ["from", "to"],
    "properties": {
        "from": {"type": ["string", "number"]},
        "to": {"type": ["string", "number"]},
        "count": {"type": "integer", "minimum": 1},
        "step": {"type": ["string", "number"]},
        "scale": {"enum": ["linear", "log"]},
    },
    "additionalProperties": False,
}


def json_schema() -> dict[str, Any]:
    """The JSON schema of sweep files."""
    scenario = _template(of_scenarios())
    options = Options.model_json_schema()
    named = {**scenario.pop("$defs"), **options.pop("$defs")}
    del scenario["$schema"]
    options["properties"]["seeds"] = {
        "anyOf": [options["properties"]["seeds"], {"type": "integer", "minimum": 1}]
    }
    return {
        "$schema": DIALECT,
        "$defs": {**named, "Scenario": scenario, "Sweep": options},
        "title": "A sweep of fullpipe",
        "type": "object",
        "required": ["scenario", "axis"],
        "properties": {
            "version": {"const": 1, "description": "version of the format of this file"},
            "scenario": {"$ref": "#/$defs/Scenario"},
            "axis": {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {
                    "anyOf": [{"type": "array", "minItems": 1, "items": _VALUE}, _RANGE]
                },
            },
            "sweep": {"$ref": "#/$defs/Sweep"},
        },
        "additionalProperties": False,
    }


def _template(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of documents in which every value and every key may be one with a hole."""
    made = dict(schema)
    for key in ("properties", "$defs"):
        if key in made:
            made[key] = {name: _template(inner) for name, inner in made[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _template(made[key])
    for key in ("anyOf", "prefixItems"):
        if key in made:
            made[key] = [_template(inner) for inner in made[key]]
    if "properties" in made or made.get("type") == "object":
        if "properties" in made:
            made["patternProperties"] = {_HOLE["pattern"]: {}}
        return made
    if "anyOf" in made:
        return {**made, "anyOf": [*made["anyOf"], _HOLE]}
    if made.get("type") == "string" and not {"enum", "const", "pattern"} & made.keys():
        return made
    words: dict[str, Any] = {
        key: made.pop(key) for key in ("description", "default", "title") if key in made
    }
    return {**words, "anyOf": [made, _HOLE]}
