"""Formats are promises: scenario and sweep files may carry their version, and the JSON schemas that
editors read accept what the program accepts."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fullpipe.base.errors import UserError
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import load_scenario, make_scenario
from fullpipe.sweep.file import read_sweep
from repository_scripts import script

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))
_TOML = re.compile(r"```(?:\{code-block\} )?toml\n(.*?)```", re.DOTALL)

SCENARIO: dict[str, Any] = {
    "duration": "2s",
    "path": {"rate": "10mbit", "rtt": "20ms", "buffer": "1bdp"},
    "flow": [{"cc": "bbr3"}],
}
SWEEP: dict[str, Any] = {
    "scenario": {**SCENARIO, "path": {"rate": "{rate}", "rtt": "20ms", "buffer": "{rate*2}bdp"}},
    "axis": {"rate": ["10mbit", "20mbit"]},
}


@cache
def _validator(name: str) -> Draft202012Validator:
    schema = json.loads((ROOT / "schema" / f"{name}.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_the_schemas_are_those_of_the_models() -> None:
    texts = script("schemas").texts()
    assert {path.name for path in (ROOT / "schema").iterdir()} == set(texts)
    for name, text in texts.items():
        written = (ROOT / "schema" / name).read_text(encoding="utf-8")
        assert written == text, "python scripts/schemas.py"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_shipped_scenario_names_its_schema_and_keeps_to_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.match(r"#:schema (\S+)\n", text)
    assert named and (path.parent / named[1]).resolve() == ROOT / "schema" / "scenario.json"
    _validator("scenario").validate(tomllib.loads(text))


def test_the_manuals_sweeps_keep_to_their_schema() -> None:
    validator, found = _validator("sweep"), 0
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in _TOML.findall(page.read_text(encoding="utf-8")):
            text = re.sub(r"^:.*\n", "", block, flags=re.MULTILINE)
            if "[axis]" in text and "[scenario]" in text and "title =" not in text:
                validator.validate(tomllib.loads(text))
                found += 1
    assert found >= 3


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ({}, True),
        ({"version": 1}, True),
        ({"version": 2}, False),
        ({"duratoin": "1s"}, False),
        ({"path": {"rate": "10mbit"}}, False),
        ({"path": {"mtu": 1500}, "link": [{"name": "one", "rate": "10mbit"}]}, True),
        ({"flow": [{"cc": 5}]}, False),
        ({"probe": [{"kind": "pong"}]}, False),
        ({"seed": "1"}, False),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else None,
)
def test_the_schema_and_the_models_agree(change: dict[str, Any], right: bool) -> None:
    document = {**SCENARIO, **change}
    assert _validator("scenario").is_valid(document) == right
    if right:
        make_scenario(document, "scenario")
    else:
        with pytest.raises(UserError):
            make_scenario(document, "scenario")


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ({}, True),
        ({"version": 1}, True),
        ({"version": 2}, False),
        ({"axes": {}}, False),
        ({"axis": {"rate": {"from": "10mbit", "to": "20mbit", "count": 2}}}, True),
        ({"axis": {"rate": {"from": "10mbit"}}}, False),
        ({"sweep": {"seeds": 3}}, True),
        ({"sweep": {"seeds": {"least": 3, "most": 9, "until": "share < 0.1"}}}, True),
        ({"sweep": {"keep": "everything"}}, False),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else None,
)
def test_the_schema_and_the_reader_of_sweeps_agree(change: dict[str, Any], right: bool) -> None:
    document = {**SWEEP, **change}
    assert _validator("sweep").is_valid(document) == right
    if right:
        read_sweep(document, "sweep")
    else:
        with pytest.raises(UserError):
            read_sweep(document, "sweep")


@pytest.mark.parametrize("version", [0, 2, "1", 1.5, True])
def test_another_version_is_refused_by_name_whatever_else_is_in_the_file(
    tmp_path: Path, version: Any
) -> None:
    path = tmp_path / "later.toml"
    path.write_text(f"version = {json.dumps(version)}\n[network]\nnodes = 3\n")
    with pytest.raises(UserError, match=r"later.toml: version: .*this fullpipe reads version 1"):
        load_scenario(path)


def test_a_version_changes_no_result() -> None:
    plain = resolve(make_scenario(SCENARIO, "plain"))
    assert resolve(make_scenario({"version": 1, **SCENARIO}, "plain")) == plain
