"""Plans of the many cells of a sweep: what cells have in common is read, checked and resolved once.

Cells that differ in nothing but which built-in congestion controls their flows have are one kin:
the scenario is checked with a stand-in, as what is checked and planned beside a flow's `cc` asks
for none (`plan.skeleton`). Seeds share everything but what they draw. The plans are those of
`plan.resolve`, byte for byte. Must never run one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from fullpipe.cc_sets import Choice, cc_sets, choose
from fullpipe.plan import Skeleton, skeleton
from fullpipe.scenario import Scenario, make_scenario, name_whole
from fullpipe.sweep.axes import Point
from fullpipe.sweep.templates import Template, fields_of, holes

_STAND_IN = "reno"
_FLOWS_KEPT = 4096


@dataclass(frozen=True)
class Kin:
    """What the plans of a cell have in common, and the text of their JSON before and behind the
    flows, from the seed on. `rest`: all of the flows but what they draw and choose, as text."""

    scenario: Scenario
    skeleton: Skeleton
    choices: tuple[Choice, ...]
    before: bytes
    behind: bytes
    rest: bytes


@dataclass(frozen=True)
class Place:
    """A point: the fields of its axes, the open `cc`s of its flows by index (None where one of
    them is more than a name of the registry), and what is equal for points of one kin."""

    fields: dict[str, Any]
    ccs: dict[int, str] | None
    kin: str


class Plans:
    """Makes the kin of a sweep's points. `source` names the template in errors, `folder` holds the
    files that it names."""

    def __init__(self, template: Mapping[str, Any], source: str, folder: Path) -> None:
        self._source = source
        self._elsewhere = None if folder.resolve() == Path.cwd() else folder.resolve()
        # What flows are on one path they mostly are on another: their JSON, by what decides it.
        self._flows: dict[tuple[Any, ...], tuple[tuple[Choice, ...], bytes]] = {}
        self._whole = Template(template, source)
        self._ccs = _open_ccs(template)
        flows = [
            {**flow, "cc": _STAND_IN} if index in self._ccs else flow
            for index, flow in enumerate(template.get("flow", []))
        ]
        rest = {**template, "flow": flows} if self._ccs else template
        self._rest = Template(rest, source)
        self._names = sorted(holes(rest))
        self._fills = {
            index: Template({"cc": cc}, f"{source}.flow.{index}") for index, cc in self._ccs.items()
        }

    def document(self, point: Point) -> dict[str, Any]:
        """The scenario's document there. Raises UserError for an unknown hole."""
        return self._named(self._whole.at(fields_of(point)))

    def scenario(self, point: Point) -> Scenario:
        """The scenario there, as it is repeated. Raises UserError naming file, cell and key."""
        return self._made(self.document(point), fields_of(point))

    def place(self, point: Point) -> Place:
        """Where a point is among the others."""
        fields = fields_of(point)
        ccs = self._open(fields)
        names = fields if ccs is None else self._names
        return Place(fields, ccs, repr([fields.get(name) for name in names]))

    def at(self, place: Place, one: Kin | None) -> Kin:
        """The kin there; `one` of its kin, where there was any, saves the work.

        Raises UserError naming file, cell and key."""
        if one is not None and place.ccs is not None:
            return replace(one, choices=self._choices(one.scenario, place.fields, place.ccs))
        template = self._whole if place.ccs is None else self._rest
        scenario = self._made(self._named(template.at(place.fields)), place.fields)
        if place.ccs is not None:
            return _kin(scenario, self._choices(scenario, place.fields, place.ccs))
        tables = scenario.cc_tables
        return _kin(scenario, tuple(choose(flow.cc, tables) for flow in scenario.flow))

    def pieces(self, kin: Kin, seed: int) -> tuple[bytes, bytes, bytes]:
        """The JSON of the plan with this seed, without a name, in three parts."""
        place = (kin.rest, seed, *map(id, kin.choices))
        known = self._flows.get(place)
        if known is None:
            if len(self._flows) >= _FLOWS_KEPT:
                self._flows.clear()
            # The choices are kept too: an id belongs to nothing else as long as its object lives.
            known = kin.choices, to_json(kin.skeleton.flows(kin.choices, seed))
            self._flows[place] = known
        return b'{"name":"","seed":%d,%s,"flows":' % (seed, kin.before), known[1], kin.behind

    def _named(self, document: dict[str, Any]) -> dict[str, Any]:
        if self._elsewhere is not None:
            name_whole(document, self._elsewhere)
        return document

    def _made(self, document: dict[str, Any], fields: Mapping[str, Any]) -> Scenario:
        where = ", ".join(f"{name} {value}" for name, value in fields.items())
        return make_scenario(document, f"{self._source} at {where}").repeated()

    def _open(self, fields: Mapping[str, Any]) -> dict[int, str] | None:
        if not self._fills:
            return None
        found = {index: fill.at(fields)["cc"] for index, fill in self._fills.items()}
        known = cc_sets()
        return found if all(isinstance(v, str) and v in known for v in found.values()) else None

    def _choices(
        self, scenario: Scenario, fields: Mapping[str, Any], own: Mapping[int, str]
    ) -> tuple[Choice, ...]:
        """Of each flow of the scenario, which has none of those whose count is 0 there."""
        present = self._rest.present_flows(fields)
        return tuple(
            choose(own.get(index, flow.cc), {})
            for index, flow in zip(present, scenario.flow, strict=True)
        )


def _open_ccs(template: Mapping[str, Any]) -> dict[int, str]:
    """The flows' `cc`s that have holes, by index; none where the scenario has tables of constants,
    which belong to a name."""
    flows = template.get("flow")
    if "cc" in template or not isinstance(flows, Sequence):
        return {}
    named = {
        index: flow["cc"]
        for index, flow in enumerate(flows)
        if isinstance(flow, Mapping) and isinstance(flow.get("cc"), str)
    }
    return {index: cc for index, cc in named.items() if holes(cc)}


def _kin(scenario: Scenario, choices: tuple[Choice, ...]) -> Kin:
    made = skeleton(scenario)
    names = list(made.document)
    place = names.index("flows")
    before, behind = (
        to_json({name: made.document[name] for name in some})
        for some in (names[2:place], names[place + 1 :])  # name and seed come first
    )
    rest = to_json([made.document["flows"], made.entries, made.start_spread_ns])
    return Kin(scenario, made, choices, before[1:-1], b"," + behind[1:], rest)
