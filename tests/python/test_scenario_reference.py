"""The scenario reference is what the models check, its examples are accepted, and every scenario of
`scenarios/` runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fullpipe import _native
from fullpipe.plan.resolve import resolve
from fullpipe.scenario import reference
from fullpipe.scenario.document import load_document
from fullpipe.scenario.model import Scenario, make_scenario

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = Draft202012Validator(reference.json_schema())
SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))


def test_the_page_in_docs_is_the_reference() -> None:
    written = (ROOT / "docs" / "reference" / "scenario.md").read_text(encoding="utf-8")
    assert written == reference.markdown(), (
        "fullpipe schema --markdown > docs/reference/scenario.md"
    )


def test_every_key_of_the_schema_stands_in_the_reference_with_words() -> None:
    schema = Scenario.model_json_schema()
    page = reference.markdown()
    for model in [schema, *schema["$defs"].values()]:
        for name, said in model.get("properties", {}).items():
            if "$ref" in json.dumps(said):
                continue
            (row, *_) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
            assert all(cell.strip() for cell in row.split(" | ")[-2:]), row
    assert all(key in dict(reference.examples()) for key in reference.ENGINES)


def test_defaults_in_the_schema_are_of_the_type_that_it_gives() -> None:
    schema = reference.json_schema()
    known = {"string": str, "boolean": bool, "integer": int, "number": float | int}
    checked = 0
    for model in [schema, *schema["$defs"].values()]:
        for name, said in model.get("properties", {}).items():
            if said.get("default") is not None and said.get("type") in known:
                assert isinstance(said["default"], known[said["type"]]), (name, said)
                checked += 1
    assert checked > 20
    assert schema["properties"]["duration"]["type"] == "string"


@pytest.mark.parametrize(("key", "value"), list(reference.examples()))
def test_every_example_is_accepted(key: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    document: dict[str, Any] = {
        "duration": "60s", "path": {"rate": "10mbit", "rtt": "40ms", "loss": "1%"},
        "flow": [{"cc": "cubic"}], "probe": [{}], "cc": {},
        "wifi": {"station": [{"name": "sta", "background": [{}]}]},
    }  # fmt: skip
    section, _, name = key.rpartition(".")
    if section.startswith("qdisc_options."):
        document["path"] |= {"qdisc": section.partition(".")[2], "qdisc_options": {name: value}}
        make_scenario(document)
        SCHEMA.validate(document)
        return
    if section.startswith("link") or name in ("enter", "leave"):
        del document["path"]
        document["link"] = [{"name": "wire", "rate": "10mbit", "delay": "1ms", "loss": "1%"}]
        link = document["link"][0]
        link |= {"duplicate": "1%", "reorder": "1%"} if name.endswith("correlation") else {}
        if section.endswith("gemodel"):
            del link["loss"]
            link["gemodel"] = {"p": "1%", "r": "10%"}
        elif section.endswith("policer"):
            link["policer"] = {"rate": "10mbit", "burst": "30KB"}
        elif section.endswith("hold"):
            link["hold"] = {"time": "1ms"}
        elif name.endswith("_trace"):
            monkeypatch.chdir(ROOT / "scenarios")
            del link[name.removesuffix("_trace")]
    if section in ("page", "udp"):
        document["page"] = [{"cc": "cubic", "levels": [["20KB"]]}]
        document["udp"] = [{"rate": "64kbit", "on": "1s", "off": "1s", "frames": 30.0}]
    if section == "flow.pattern":
        paced = {"write": "64KB", "every": "100ms"}
        document["flow"][0]["pattern"] = paced if name in paced else {"on": "2s", "off": "1s"}
    if section == "traffic":
        entry = {"cc": "cubic", "load": 0.5, "sizes": "30KB", "senders": 2}
        left_out = {"flows_per_s": ("load",), "trace": ("load", "sizes")}.get(name, ())
        document["traffic"] = [{k: v for k, v in entry.items() if k not in left_out}]
    if name == "reader_pause_spread":
        document["host"] = {"reader_pause": "40ms"}
    if section == "cc.NAME":
        document["cc"]["mine"] = {name: value}
        document["flow"][0]["cc"] = "mine"
    else:
        node: Any = document
        for part in section.split(".") if section else ():
            node = node.setdefault(part, {})
            node = node[0] if isinstance(node, list) else node
        node[name] = value
    make_scenario(document)
    SCHEMA.validate(document)


def test_there_is_a_dozen_of_scenarios_each_with_a_comment() -> None:
    assert len(SCENARIOS) >= 12
    for path in SCENARIOS:
        assert path.read_text(encoding="utf-8").splitlines()[1].startswith("# "), path


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_runs_and_all_its_flows_deliver(path: Path) -> None:
    document = load_document(path)
    seconds = 0.3 if "10gbit" in path.read_text(encoding="utf-8") else 6
    plan = resolve(make_scenario(document, str(path)))
    plan["duration_ns"] = min(plan["duration_ns"], int(seconds * 1e9))
    raw = _native.sim.run(json.dumps(plan))
    delivered = memoryview(raw["flows"]["bytes_delivered"][1]).cast("Q").tolist()
    assert len(delivered) == len(plan["flows"])
    assert all(delivered)
