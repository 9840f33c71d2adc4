"""The scenario reference is what the models check, its examples are accepted, and every scenario of
`scenarios/` runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.base.units import parse_rate, parse_size, parse_time
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


def document_with(key: str, value: Any) -> dict[str, Any]:
    """A document in which this key of the reference has this value."""
    document: dict[str, Any] = {
        "duration": "60s", "path": {"rate": "10mbit", "rtt": "40ms", "loss": "1%"},
        "flow": [{"cc": "cubic"}], "probe": [{}], "cc": {},
        "wifi": {"station": [{"name": "sta", "background": [{}]}]},
    }  # fmt: skip
    section, _, name = key.rpartition(".")
    if section.startswith("qdisc_options."):
        document["path"] |= {"qdisc": section.partition(".")[2], "qdisc_options": {name: value}}
        return document
    if section.startswith("link") or name in ("enter", "leave"):
        del document["path"]
        document["link"] = [{"name": "wire", "rate": "10mbit", "delay": "1ms", "loss": "1%"}]
        link = document["link"][0]
        link |= {"duplicate": "1%", "reorder": "1%"} if name.endswith("correlation") else {}
        link |= {"delay_jitter": "1ms"} if name == "delay_distribution" else {}
        if section.endswith("gemodel"):
            del link["loss"]
            by_time = name in ("good", "bad")
            chain = {"good": "1s", "bad": "1s"} if by_time else {"p": "1%", "r": "10%"}
            link["gemodel"] = chain
        elif section.endswith("sqm"):
            link["sqm"] = {"upload": "1mbit", "download": "2mbit"}
            del link["rate"]
        elif section.endswith("policer"):
            link["policer"] = {"rate": "10mbit", "burst": "30KB"}
        elif section.endswith("hold"):
            link["hold"] = {"time": "1ms"}
        elif name.endswith("_trace"):
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
    return document


@pytest.mark.parametrize(("key", "value"), list(reference.examples()))
def test_every_example_is_accepted(key: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "scenarios")
    document = document_with(key, value)
    make_scenario(document)
    SCHEMA.validate(document)


#: A range of the reference.
RANGE = re.compile(
    r"(above |at least )?(-?[0-9.]+)([a-zA-Z]*)(?:(?:, to| to) ([0-9.]+)([a-zA-Z]*))?"
)
#: The unit in which a quantity has whole values, and what reads it.
SMALLEST = {"time": ("ns", parse_time), "size": ("B", parse_size), "rate": ("bit", parse_rate)}
#: Keys of which another key demands more than their range.
DEMANDING = {
    "duration", "warmup", "sample_interval", "page.interval", "traffic.pareto_min",
    "host.reader_pause_spread", "qdisc_options.prio.default_band",
}  # fmt: skip


def ranges() -> Iterator[tuple[str, Any, bool]]:
    """(key, value, whether the reference allows it): the ends of each range and beyond them."""
    for section in (*reference._sections(), *reference._qdisc_sections()):
        for name, field in () if section.same else reference._keys(section.model):
            kind, limits = reference._type(field)
            match = RANGE.fullmatch(limits)
            key = section.prefix + name
            if match is None or (kind not in SMALLEST and kind != "number"):
                continue
            how, least, unit, most, most_unit = match.groups()
            if kind == "number":
                is_whole = int in (field.annotation, *get_args(field.annotation))
                number, step = (int, 1) if is_whole else (float, 1e-6)
                ends = number(least), number(most) if most else None
                values = [(end, step) for end in ends]
            else:
                small, parse = SMALLEST[kind]
                low = 0 if least == "0" or (how and not unit) else parse(least + unit)
                values = [(low, 1), (parse(most + most_unit), 1)]
            for (end, step), sign in zip(values, (-1, 1), strict=True):
                if end is None:
                    continue
                beyond = end + sign * step
                is_inside = sign > 0 or how != "above "
                if kind == "number":
                    yield key, end, is_inside
                    yield key, beyond, False
                else:
                    yield key, f"{end}{small}", is_inside
                    if beyond >= 0:
                        yield key, f"{beyond}{small}", False


RANGES = list(ranges())


def test_the_ranges_of_the_reference_cover_its_quantities_and_numbers() -> None:
    keys = {key for key, _, _ in RANGES}
    assert {"udp.payload", "probe.interval", "host.ack_cost", "sample_interval"} <= keys
    assert len(keys) > 120


@pytest.mark.parametrize(("key", "value", "is_allowed"), RANGES)
def test_the_range_of_a_key_is_that_of_its_check(key: str, value: Any, is_allowed: bool) -> None:
    name = key.rpartition(".")[2]
    try:
        make_scenario(document_with(key, value))
        said = ""
    except UserError as error:
        said = str(error)
    refused = re.search(rf"(?:^|[ .]){name}: .*(?:out of range|must be (?:at|above|below))", said)
    assert (refused is None) == is_allowed or (is_allowed and key in DEMANDING), said


def test_there_is_a_dozen_of_scenarios_each_with_a_comment() -> None:
    assert len(SCENARIOS) >= 12
    for path in SCENARIOS:
        assert path.read_text(encoding="utf-8").splitlines()[1].startswith("# "), path


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_runs_and_all_its_flows_deliver(path: Path) -> None:
    document = load_document(path)
    seconds = 0.3 if "10gbit" in path.read_text(encoding="utf-8") else 6
    plan = resolve(make_scenario(document, str(path)))
    last_start_ns = max((flow["start_ns"] for flow in plan["flows"]), default=0)
    plan["duration_ns"] = min(plan["duration_ns"], int(seconds * 1e9) + last_start_ns)
    raw = _native.sim.run(json.dumps(plan))
    delivered = memoryview(raw["flows"]["bytes_delivered"][1]).cast("Q").tolist()
    assert len(delivered) == len(plan["flows"])
    assert all(delivered)
