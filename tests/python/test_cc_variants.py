"""Changed constants show in names, and variants of one congestion control stand side by side: what
runs is what the name says, in the simulator and in one guest."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from fullpipe.base.errors import UserError
from fullpipe.congestion.registry import cc_sets, changed_name, choose, listed
from fullpipe.engines.runner import run_scenario
from fullpipe.engines.vm import VmEngine
from fullpipe.metrics import summarise
from fullpipe.plan.resolve import resolve
from fullpipe.recording.recording import Recording
from fullpipe.report.page import write_report
from fullpipe.scenario.model import make_scenario

SIDE_BY_SIDE = """
name = "variants"
duration = "4s"
[path]
rate = "10mbit"
rtt = "20ms"
[[flow]]
cc = "cubic"
[[flow]]
cc = "cubic95"
[[flow]]
cc = "cubic[beta=0.5]"
[cc.cubic95]
base = "cubic"
beta = 0.95
"""


def document(ccs: list[str], **tables: Any) -> dict[str, Any]:
    """One flow of each on 10 Mbit/s, 20 ms, 1 BDP."""
    return {
        "duration": "4s",
        "path": {"rate": "10mbit", "rtt": "20ms"},
        "flow": [{"cc": cc} for cc in ccs],
        "cc": tables,
    }


def flows(ccs: list[str], **tables: Any) -> list[dict[str, Any]]:
    """The resolved flows."""
    found: list[dict[str, Any]] = resolve(make_scenario(document(ccs, **tables)))["flows"]
    return found


def beta_of(flow: dict[str, Any]) -> float:
    """What a flow of CUBIC multiplies its window by."""
    index = [param.name for param in cc_sets()["cubic"].params].index("beta")
    return float(flow["cc"]["params"][index]) / 1024


def test_a_changed_constant_shows_in_the_names_of_flow_and_congestion_control() -> None:
    (flow,) = flows(["cubic"], cubic={"beta": 0.85})
    assert (flow["name"], flow["cc"]["name"]) == ("cubic[beta=0.85].1", "cubic[beta=0.85]")
    assert beta_of(flow) == pytest.approx(0.85, abs=1 / 1024)


def test_a_constant_that_is_changed_to_its_own_value_changes_no_name() -> None:
    (flow,) = flows(["cubic"], cubic={"beta": 0.7})
    assert flow["name"] == "cubic.1"


def test_the_name_that_is_shown_can_be_written_and_means_the_same() -> None:
    changed = flows(["bbr3"], bbr3={"probe_down_gain": 0.8, "startup_pacing_gain": 2.5})[0]
    again = flows([changed["cc"]["name"]])[0]
    assert again == changed


def test_variants_stand_beside_their_base_each_with_its_own_constants() -> None:
    plain, variant, written = flows(
        ["cubic", "cubic85", "cubic[beta=0.5]"], cubic85={"base": "cubic", "beta": 0.85}
    )
    assert [f["name"] for f in (plain, variant, written)] == [
        "cubic.1", "cubic85.1", "cubic[beta=0.5].1",
    ]  # fmt: skip
    assert [round(beta_of(f), 2) for f in (plain, variant, written)] == [0.7, 0.85, 0.5]


def test_every_stored_value_has_a_decimal_that_is_stored_the_same() -> None:
    beta = next(p for p in cc_sets()["cubic"].params if p.name == "beta")
    for stored in range(beta.min, beta.max + 1):
        assert beta.stored(float(beta.shortest(stored))) == stored
    assert changed_name(cc_sets()["cubic"], cc_sets()["cubic"].values) == "cubic"


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"cubic85": {"beta": 0.85}}, ("cc.cubic85", "needs base")),
        ({"cubic85": {"base": "cubik"}}, ("cc.cubic85.base", "did you mean cubic")),
        ({"cubic85": {"base": "cubic", "betta": 0.8}}, ("cc.cubic85.betta", "did you mean beta")),
        ({"cubic85": {"base": "cubic", "beta": 3.0}}, ("cc.cubic85.beta", "out of range")),
        ({"cubic85": {"base": "kernel:cubic"}}, ("cc.cubic85.base", "no constants")),
        ({"reno": {"base": "cubic"}, "cubic85": {"base": "cubic"}}, ("cc.reno.base", "already")),
        ({"a b": {"base": "cubic"}}, ("cc.a b", "letters")),
        ({"cubic85": {"base": "cubic"}, "mine": {"base": "cubic"}}, ("cc.mine", "no flow uses it")),
    ],
)
def test_what_is_wrong_with_a_variant_is_named(
    tables: dict[str, Any], words: tuple[str, str]
) -> None:
    with pytest.raises(UserError) as raised:
        flows(["cubic85"], **tables)
    assert all(word in str(raised.value) for word in words), raised.value


def test_a_choice_is_written_and_shown_by_its_name() -> None:
    (flow,) = flows(["cubic[start=hystart++]"])
    assert flow["cc"]["name"] == "cubic[start=hystart++]"
    assert flows(["cubic"], cubic={"start": "hystart++"})[0]["cc"] == flow["cc"]
    assert flows(["cubic[start=1]"])[0]["cc"] == flow["cc"]
    assert flows(["reno[start=linux]"])[0]["cc"]["name"] == "reno"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bbr3[start=search]", r"cc.bbr3.start: bbr3 has no constant start; it is of reno, cubic"),
        ("cubic[start=fast]", r"cc.cubic.start: 'fast' is not linux, hystart\+\+, search"),
        ("cubic[start=9]", r"cc.cubic.start: 9.0 is out of range"),
        ("cubic[beta=half]", r"cc.cubic.beta: 'half' is not a number"),
    ],
)
def test_a_start_that_an_algorithm_cannot_have_is_refused_by_name(name: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        flows([name])


@pytest.mark.parametrize("name", ["cubic[beta]", "cubic[=1]", "cubic[beta=]", "cubik[beta=0.8]"])
def test_brackets_that_cannot_be_read_are_refused_with_what_is_right(name: str) -> None:
    with pytest.raises(UserError, match=r"flow.0.cc: .*cubic"):
        flows([name])


def test_recording_and_page_say_each_variants_constants(tmp_path: Path) -> None:
    scenario = make_scenario(tomllib.loads(SIDE_BY_SIDE))
    run_scenario(scenario, SIDE_BY_SIDE, [tmp_path / "run"])
    recording = Recording.open(tmp_path / "run")
    constants = recording.metadata["constants"]
    assert {name: round(values["beta"], 2) for name, values in constants.items()} == {
        "cubic": 0.7, "cubic95": 0.95, "cubic[beta=0.5]": 0.5,
    }  # fmt: skip
    page = write_report([recording], tmp_path / "report.html").read_text()
    assert "Constants of cubic95: CUBIC as Linux has it" in page
    assert page.count("1 not as usual") == 2


@pytest.mark.vm
def test_one_guest_loads_variants_of_one_algorithm_beside_each_other() -> None:
    plan = resolve(
        make_scenario(
            document(["cubic", "cubic25"], cubic25={"base": "cubic", "beta": 0.25})
            | {"duration": "6s"}
        )
    )
    result = VmEngine().run(plan, lambda _done: True, {})
    assert result.failure is None
    assert result.tables["flows"]["flow"].to_pylist() == ["cubic.1", "cubic25.1"]
    # Who gives up three quarters of the window at a loss gets less than who gives up 30 %.
    mild, harsh = result.tables["flows"]["bytes_delivered"].to_pylist()
    assert harsh < 0.8 * mild


def test_summaries_group_by_the_name_that_tells_the_change(tmp_path: Path) -> None:
    scenario = make_scenario(document(["cubic"], cubic={"beta": 0.85}))
    run_scenario(scenario, 'duration = "4s"', [tmp_path / "run"])
    (flow,) = summarise(Recording.open(tmp_path / "run"))["flows"]
    assert flow["cc"] == "cubic[beta=0.85]"


def test_commas_between_brackets_do_not_end_a_name() -> None:
    text = "reno, cubic[beta=0.85,scale=50],bbr3"
    assert listed(text) == ["reno", "cubic[beta=0.85,scale=50]", "bbr3"]
    assert listed(" , ") == []


def test_large_constants_are_written_without_an_exponent() -> None:
    name = "cubic[start=careful-resume,saved_cwnd=66,saved_rtt_us=40000]"
    assert choose(name, {}).name == name
