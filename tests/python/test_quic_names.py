"""A congestion control of a QUIC stack where its module is not installed: scenarios may name it,
and only the simulator with the module runs it."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from pydantic_core import to_json

from fullpipe.base.errors import UserError
from fullpipe.congestion import stacks
from fullpipe.congestion.registry import Table, choose
from fullpipe.engines.base import engine
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import make_scenario


def plan(cc: str, **others: Any) -> dict[str, Any]:
    path = {"rate": "5mbit", "rtt": "20ms", "buffer": "1bdp"}
    document = {"name": "quic", "duration": "1s", "path": path, "flow": [{"cc": cc}], **others}
    return resolve(make_scenario(document))


def test_a_plan_keeps_the_name_and_has_no_constants() -> None:
    assert plan("quinn:bbr")["flows"][0]["cc"] == {
        "name": "quinn:bbr", "algorithm": None, "params": [],
    }  # fmt: skip


def test_an_unknown_control_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        UserError, match=r"flow\.0\.cc: quinn has no 'vegas'; it has cubic, newreno"
    ):
        plan("quinn:vegas")


def test_constants_of_a_stack_cannot_be_changed() -> None:
    with pytest.raises(UserError, match="no constants that could be changed"):
        choose("mine", {"mine": Table("noq:cubic", {"beta": 0.5})})


@pytest.mark.parametrize("name", ["vm", "live"])
def test_engines_with_a_kernel_refuse_a_stack(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=f"quinn:cubic is a QUIC stack's, which --engine {name}"):
        engine(name).check(plan("quinn:cubic"))


def test_a_missing_module_is_an_error_that_says_how_to_build_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UserError, match="quiche needs fullpipe_quiche: `make quic`"):
        stacks.module("fullpipe_quiche")


def test_a_plan_needs_the_modules_of_its_stacks() -> None:
    tcp, one, both = (
        [{"cc": cc} for cc in ccs]
        for ccs in (["cubic"], ["quiche:reno"], ["quiche:cubic", "tquic:bbr", "quinn:bbr"])
    )
    found = [stacks.modules_in(to_json(plan("cubic", flow=flows))) for flows in (tcp, one, both)]
    assert found == [[], ["fullpipe_quiche"], ["fullpipe_quic", "fullpipe_quiche"]]


def test_groups_of_traffic_refuse_a_stack() -> None:
    traffic = [{"cc": "quinn:cubic", "load": 0.5, "sizes": "websearch"}]
    with pytest.raises(UserError, match=r"only \[\[flow\]\] can use"):
        engine("sim").check(plan("cubic", traffic=traffic))
