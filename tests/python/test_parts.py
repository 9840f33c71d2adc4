"""What is read without Pydantic is what Pydantic reads: the same values, the same refusals."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fullpipe.base.checking import checked
from fullpipe.scenario.model import Scenario, load_document, load_scenario

SCENARIOS = sorted((Path(__file__).resolve().parents[2] / "scenarios").glob("*.toml"))
#: Every section, and values of every type.
DOCUMENT: dict[str, Any] = {
    "name": "all", "duration": "10s", "seed": 3, "start_spread": "1ms", "rtt_spread": "1pkt",
    "path": {"mtu": 1500, "ecn": "l4s"},
    "link": [
        {"name": "a", "rate": "10mbit", "delay": "5ms", "buffer": "1bdp", "loss": 0.01,
         "rate_steps": [["1s", "5mbit"]], "outage": [["3s", "1s"]], "qdisc": "fq_codel",
         "qdisc_options": {"target": "5ms", "dscp": {"EF": 0}, "alpha": 1, "byte_mode": True},
         "hold": {"time": "1ms", "packets": 2}, "reverse": {"rate": "5mbit"}},
        {"name": "b", "kind": "wifi", "wifi": {"mcs": 7, "snr": [["0s", 20], ["1s", 10.5]],
         "width": 40, "ampdu": {"VO": 0}, "txop": {"VI": "0ms"},
         "station": [{"name": "s", "snr": 30, "background": [{"rate": "1mbit"}]}]}},
    ],
    "flow": [{"cc": "bbr3", "count": 2, "ecn": False, "pattern": {"on": "1s", "off": "1s"}},
             {"cc": "mine", "start": "1s", "stop": "9s", "dscp": "EF", "station": "s"}],
    "page": [{"cc": "cubic", "levels": [["60KB"], ["1KB", "2KB"]], "loads": 3}],
    "udp": [{"rate": "64kbit", "frames": 30, "deadline": "100ms"}],
    "traffic": [{"cc": "reno", "load": 0.1, "sizes": "websearch", "samples": [0, 5],
                 "rtts": ["20ms"]}],
    "probe": [{"kind": "udp", "interval": "100ms"}],
    "host": {"tsq": "2ms", "receive_low_water": "2KB", "arp": True},
    "cc": {"mine": {"base": "cubic", "beta": 0.8, "c": 1}},
}  # fmt: skip
VALUES = st.sampled_from([
    None, True, False, 0, 1, -1, 7, 10**9, 2**70, 0.5, 1.0, float("nan"), float("inf"), "", "1",
    "x" * 600, "10mbit", "5ms", "1KB", "1%", "1bdp", "EF", "fifo", "minstrel", "bbr3\n", "no key",
    [], ["1s"], [["1s", "2s"]], {}, {"rate": "1mbit"}, [{}], ("1s", "2s"), b"bbr3",
])  # fmt: skip


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield (*place, key)
        if isinstance(item, dict | list):
            yield from places(item, (*place, key))


PLACES = list(places(DOCUMENT))


def changed(place: tuple[Any, ...], how: str, value: Any) -> dict[str, Any]:
    """The document with another value there, without it, or with a key beside it."""
    document = copy.deepcopy(DOCUMENT)
    section: Any = document
    for key in place[:-1]:
        section = section[key]
    if how == "leave out":
        del section[place[-1]]
    elif how == "add" and isinstance(section, dict):
        section["another"] = value
    else:
        section[place[-1]] = value
    return document


def outcome(read: Any, document: dict[str, Any]) -> Any:
    """What was read, or what is wrong."""
    try:
        return repr(read(document))
    except ValidationError as error:
        return error.errors(include_url=False, include_context=False)


def test_scenarios_are_read_without_pydantic_and_as_pydantic_reads_them() -> None:
    program = (
        "import sys; from fullpipe.scenario.model import load_scenario\n"
        "for name in sys.argv[1:]: load_scenario(name)\n"
        "assert 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, *map(str, SCENARIOS)], check=True)
    assert len(SCENARIOS) >= 30
    for file in SCENARIOS:
        assert load_scenario(file) == checked(Scenario, load_document(file))
    assert Scenario.model_validate(DOCUMENT) == checked(Scenario, DOCUMENT)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(["put", "leave out", "add"]), VALUES)
def test_whatever_is_written_pydantic_would_say_the_same(
    place: tuple[Any, ...], how: str, value: Any
) -> None:
    document = changed(place, how, value)
    assert outcome(Scenario.model_validate, document) == outcome(
        lambda one: checked(Scenario, one), document
    )


def test_a_section_is_frozen_equal_by_its_values_and_has_other_numbers() -> None:
    scenario = Scenario.model_validate(DOCUMENT)
    with pytest.raises(AttributeError, match="frozen"):
        scenario.seed = 5
    assert scenario.cc["mine"].numbers == {"beta": 0.8, "c": 1.0}
    assert scenario.model_copy(update={"seed": 4}) != scenario
    assert copy.deepcopy(scenario) == scenario == Scenario.model_validate(DOCUMENT)
