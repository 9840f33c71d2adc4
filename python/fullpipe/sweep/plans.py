"""Plans of the many cells of a sweep: what cells have in common is read, checked and resolved once.

Cells that differ in nothing but which built-in congestion controls their flows have are one kin:
the scenario is checked with a stand-in, as what is checked and planned beside a flow's `cc` asks
for none (`plan.skeleton`). Seeds share everything but what they draw. The plans are those of
`plan.resolve`, byte for byte. Must never run one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_json

from fullpipe.cc_sets import Choice, cc_sets, choose
from fullpipe.plan import Skeleton, skeleton
from fullpipe.scenario import Scenario, make_scenario, name_whole
from fullpipe.sweep.axes import Point
from fullpipe.sweep.keys import Piece, piece
from fullpipe.sweep.templates import Template, fields_of, filler, holes

_STAND_IN = "reno"
_NONE = frozenset[str]()
_FLOWS_KEPT = 4096


@dataclass(frozen=True)
class Kin:
    """What the plans of cells have in common, and their JSON before and behind the flows, from the
    seed on. `rest`: all of the flows but what they draw and choose, as text."""

    scenario: Scenario
    skeleton: Skeleton
    before: Piece
    behind: Piece
    rest: bytes


class Place(NamedTuple):
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
        self._flows: dict[tuple[Any, ...], tuple[tuple[Choice, ...], Piece]] = {}
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
            index: filler(cc, f"{source}.flow.{index}.cc") for index, cc in self._ccs.items()
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

    def at(self, place: Place, one: Kin | None) -> tuple[Kin, tuple[Choice, ...]]:
        """The kin there, and the congestion controls of its flows; `one` of its kin, where there
        was any, saves the work.

        Raises UserError naming file, cell and key."""
        if place.ccs is None:
            scenario = self._made(self._named(self._whole.at(place.fields)), place.fields)
            tables = scenario.cc_tables
            return _kin(scenario), tuple([choose(flow.cc, tables) for flow in scenario.flow])
        if one is None:
            scenario = self._made(self._named(self._rest.at(place.fields)), place.fields)
            # Before the plan: an unknown name is told of first.
            choices = self._choices(scenario, place.fields, place.ccs)
            return _kin(scenario), choices
        return one, self._choices(one.scenario, place.fields, place.ccs)

    def pieces(self, kin: Kin, choices: tuple[Choice, ...], seed: int) -> tuple[Piece, ...]:
        """The JSON of the plan with these congestion controls and this seed, without a name, in
        pieces."""
        place = (kin.rest, seed, *map(id, choices))
        known = self._flows.get(place)
        if known is None:
            if len(self._flows) >= _FLOWS_KEPT:
                self._flows.clear()
            # The choices are kept too: an id belongs to nothing else as long as its object lives.
            known = choices, piece(to_json(kin.skeleton.flows(choices, seed)))
            self._flows[place] = known
        begin = b'{"name":"","seed":%d,' % seed
        return Piece(begin, _NONE, begin), kin.before, known[1], kin.behind

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
        found = {index: fill(fields) for index, fill in self._fills.items()}
        known = cc_sets()
        for name in found.values():
            if not (isinstance(name, str) and name in known):
                return None
        return found

    def _choices(
        self, scenario: Scenario, fields: Mapping[str, Any], own: Mapping[int, str]
    ) -> tuple[Choice, ...]:
        """Of each flow of the scenario, which has none of those whose count is 0 there."""
        present = self._rest.present_flows(fields)
        flows = zip(present, scenario.flow, strict=True)
        return tuple([choose(own.get(index, flow.cc), {}) for index, flow in flows])


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


def _kin(scenario: Scenario) -> Kin:
    made = skeleton(scenario)
    names = list(made.document)
    place = names.index("flows")
    before, behind = (
        to_json({name: made.document[name] for name in some})
        for some in (names[2:place], names[place + 1 :])  # name and seed come first
    )
    rest = to_json([made.document["flows"], made.entries, made.start_spread_ns])
    return Kin(scenario, made, piece(before[1:-1] + b',"flows":'), piece(b"," + behind[1:]), rest)
