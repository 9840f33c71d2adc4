"""Plans of the many cells of a sweep: what cells have in common is read, checked and resolved once.

Cells that differ in nothing but which built-in congestion controls their flows have are one kin:
the scenario is checked with a stand-in, as what is checked and planned beside a flow's `cc` asks
for none (`resolve.open_flows`). Of a kin only that is read, checked and planned again which asks
for
something in which it differs from those before (`reading`). Seeds share everything but what they
draw. The plans are those of `resolve.resolve`, byte for byte. Must never run one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fullpipe._native import to_json
from fullpipe.congestion.registry import Choice, Table, cc_sets, choose
from fullpipe.plan import resolve
from fullpipe.plan.resolve import OpenFlows
from fullpipe.scenario.model import Scenario, make_scenario, name_whole
from fullpipe.sweep.axes import Point
from fullpipe.sweep.keys import Piece, piece
from fullpipe.sweep.reading import REFUSED, At, Scenarios, Step, Whole, keep_few
from fullpipe.sweep.templates import Filler, Template, axes_of, fields_of, filler, holes

_STAND_IN = "reno"
#: Sections in which files may be named.
_FILES = frozenset({"flow", "page", "traffic", "cc", "link"})


class Beside(NamedTuple):
    """What plans of cells have in common beside their network. `seed`: of the first run; `ccs`:
    what flows call their congestion controls, with the `tables` of `cc`; `plan`: all behind the
    network, flows without what is open; `rest`: these as text; `text`: the JSON behind the
    flows."""

    seed: int
    warmup_ns: int
    ccs: Sequence[str]
    tables: Mapping[str, Table]
    plan: Mapping[str, Any]
    flows: OpenFlows
    rest: bytes
    text: Piece


class Kin(NamedTuple):
    """What the plans of cells have in common: the plan but for its name, its seed and what is open
    of its flows; its JSON before and behind the flows, from the seed on. `rtt_spread_ns`: by how
    much seeds lengthen round trips at most (`Plans.of_seed`)."""

    plan: Mapping[str, Any]
    beside: Beside
    before: Piece
    behind: Piece
    rtt_spread_ns: int


def begin(seed: int, name: str = "") -> bytes:
    """The JSON of a plan up to its name and seed."""
    return b'{"name":%b,"seed":%d,' % (to_json(name), seed)


class Place(NamedTuple):
    """Where a point is among the others: what is equal for points of one kin, and for those whose
    flows have the same congestion controls."""

    kin: tuple[int, ...]
    ccs: tuple[int, ...]


class Plans:
    """Makes the kin of a sweep's points. `source` names the template in errors, `folder` holds the
    files that it names."""

    def __init__(self, template: Mapping[str, Any], source: str, folder: Path) -> None:
        self._source = source
        self._elsewhere = None if folder.resolve() == Path.cwd() else folder.resolve()
        # What flows are on one path they mostly are on another: their JSON, by what decides it.
        self._flows: dict[tuple[Any, ...], tuple[tuple[Choice, ...], Piece]] = {}
        self._known: dict[tuple[type, str], int] = {}
        self._named: dict[tuple[int, ...], dict[int, str] | None] = {}
        self._chosen: dict[tuple[int, ...], tuple[Choice, ...]] = {}
        self._whole = Template(template, source)
        self._ccs = _open_ccs(template)
        flows = [
            {**flow, "cc": _STAND_IN} if index in self._ccs else flow
            for index, flow in enumerate(template.get("flow", []))
        ]
        self._open = {**template, "flow": flows} if self._ccs else template
        self._rest = Template(self._open, source)
        self._rest_axes = axes_of(self._open)
        self._cc_axes = axes_of(list(self._ccs.values()))
        self._scenarios: Scenarios | None = None
        self._is_read = False
        self._network = Step(self._network_of)
        self._beside = Step(self._beside_of)
        self._rtt_spread_ns = Step[int](lambda at: at.repeated.rtt_spread_ns)
        self._fills = {
            index: filler(cc, f"{source}.flow.{index}.cc") for index, cc in self._ccs.items()
        }

    def document(self, point: Point) -> dict[str, Any]:
        """The scenario's document there. Raises UserError for an unknown hole."""
        return self._whole_named(self._whole.at(fields_of(point)))

    def scenario(self, point: Point) -> Scenario:
        """The scenario there, as it is repeated. Raises UserError naming file, cell and key."""
        return self._made(self.document(point), fields_of(point))

    def places(self, points: Sequence[Point]) -> list[Place]:
        """Where points are among the others."""
        codes = {axis: self._codes([point[axis] for point in points]) for axis in points[0]}
        ccs = _rows(codes, self._cc_axes, len(points))
        for own, point in zip(ccs, points, strict=True):
            if own not in self._named:
                self._named[own] = self._names(fields_of(point))
        kins = _rows(codes, self._rest_axes, len(points))
        whole = _rows(codes, tuple(codes), len(points))
        named = self._named
        return [
            Place(whole[place] if named[own] is None else kins[place], own)
            for place, own in enumerate(ccs)
        ]

    def kins(self, places: Sequence[tuple[Point, Place]]) -> list[Kin]:
        """The kins of points, each of another one. All are read, then all are planned: what the
        processor keeps at hand of a step serves the next kin's.

        Raises UserError naming file, cell and key."""
        found = [(point, place, self._at(point, place)) for point, place in places]
        return [self._kin(*one) for one in found]

    def of_seed(self, kin: Kin, seed: int) -> Kin:
        """The kin as this seed draws it: with round trips of its own, where they spread."""
        more_ns = resolve.rtt_offset_ns(kin.rtt_spread_ns, seed)
        if not more_ns:
            return kin
        whole = resolve.longer(kin.plan, more_ns)
        behind = {key: whole[key] for key in kin.beside.plan}
        network = {key: some for key, some in whole.items() if key not in behind}
        flows = replace(kin.beside.flows, rest=behind.pop("flows"))
        beside = _beside(*kin.beside[:4], flows, behind)
        return Kin(whole, beside, _before(network), beside.text, 0)

    def choices(self, kin: Kin, point: Point, place: Place) -> tuple[Choice, ...]:
        """The congestion controls of the flows at a point of this kin."""
        known = self._chosen.get(place.ccs)
        if known is not None:
            return known
        own = self._named[place.ccs]
        if not own:
            return tuple([choose(cc, kin.beside.tables) for cc in kin.beside.ccs])
        # The scenario has no flows whose count is 0 there.
        present = self._rest.present_flows(fields_of(point))
        flows = zip(present, kin.beside.ccs, strict=True)
        choices = tuple([choose(own.get(index, cc), {}) for index, cc in flows])
        if self._rest.has_fixed_flows:
            keep_few(self._chosen)
            self._chosen[place.ccs] = choices
        return choices

    def flows(self, kin: Kin, choices: tuple[Choice, ...], seed: int) -> Piece:
        """The JSON of the flows with these congestion controls and this seed: of the plan
        `begin(seed)`, `kin.before`, this and `kin.behind` in a row."""
        place = (kin.beside.rest, seed, *map(id, choices))
        known = self._flows.get(place)
        if known is None:
            keep_few(self._flows)
            # The choices are kept too: an id belongs to nothing else as long as its object lives.
            known = choices, piece(to_json(kin.beside.flows.of(choices, seed)))
            self._flows[place] = known
        return known[1]

    def _codes(self, values: Sequence[Any]) -> list[int]:
        """Numbers for values, equal where they are the same: 1, 1.0 and True are three."""
        found = {}
        for place, value in dict(zip(map(id, values), values, strict=True)).items():
            found[place] = self._known.setdefault((type(value), repr(value)), len(self._known))
        return list(map(found.__getitem__, map(id, values)))

    def _at(self, point: Point, place: Place) -> At | Whole:
        """The scenario of a kin, with stand-ins where congestion controls are open: by its keys, or
        where it is to be read as a whole, so read."""
        if not self._is_read:
            self._begin(point, place)
        if self._scenarios is not None and self._named[place.ccs] is not None:
            found = self._scenarios.at(place.kin, lambda: fields_of(point))
            if found is not None:
                return found
        return Whole(self._whole_of(point, place).repeated())

    def _begin(self, point: Point, place: Place) -> None:
        """Reads the first scenario of all."""
        if self._named[place.ccs] is not None:
            self._is_read = True

    def _whole_of(self, point: Point, place: Place) -> Scenario:
        """The scenario of a kin, read as a whole and not repeated."""
        template = self._whole if self._named[place.ccs] is None else self._rest
        fields = fields_of(point)
        return self._made(self._whole_named(template.at(fields)), fields)

    def _filler_of(self, name: str, key: str | None) -> Filler:
        """What fills a key of the scenario, or one of its sections' keys."""
        value = self._open[name]
        template = Template({name: value if key is None else {key: value[key]}}, self._source)

        def fill(fields: Mapping[str, Any]) -> Any:
            document = template.at(fields)
            if name in _FILES:
                self._whole_named(document)
            return document[name] if key is None else document[name][key]

        return fill

    def _kin(self, point: Point, place: Place, at: At | Whole) -> Kin:
        try:
            (network, before), beside = self._network.at(at), self._beside.at(at)
        except REFUSED:
            if isinstance(at, Whole):
                raise
            return self._kin(point, place, Whole(self._whole_of(point, place).repeated()))
        plan_of_all = {**network, **beside.plan}
        return Kin(plan_of_all, beside, before, beside.text, self._rtt_spread_ns.at(at))

    def _network_of(self, at: At | Whole) -> tuple[dict[str, Any], Piece]:
        """The times of a plan and its network, and their JSON up to the flows."""
        scenario = at.repeated
        found = {**resolve.times(scenario), **resolve.network(scenario)}
        return found, _before(found)

    def _beside_of(self, at: At | Whole) -> Beside:
        scenario = at.repeated
        users = resolve.users(scenario)
        flows = resolve.open_flows(scenario, users.pop("flows"))
        behind = {"probes": users.pop("probes"), **resolve.host(scenario), **users}
        ccs = [flow.cc for flow in scenario.flow]
        return _beside(scenario.seed, scenario.warmup, ccs, scenario.cc_tables, flows, behind)

    def _whole_named(self, document: dict[str, Any]) -> dict[str, Any]:
        if self._elsewhere is not None:
            name_whole(document, self._elsewhere)
        return document

    def _made(self, document: dict[str, Any], fields: Mapping[str, Any]) -> Scenario:
        where = ", ".join(f"{name} {value}" for name, value in fields.items())
        return make_scenario(document, f"{self._source} at {where}").repeated()

    def _names(self, fields: Mapping[str, Any]) -> dict[int, str] | None:
        """The open `cc`s of the flows by index; None where one of them is more than a name of the
        registry."""
        found = {index: fill(fields) for index, fill in self._fills.items()}
        known = cc_sets()
        for name in found.values():
            if not (isinstance(name, str) and name in known):
                return None
        return found


def _before(network: Mapping[str, Any]) -> Piece:
    """The JSON of a plan's times and network, up to the flows."""
    return piece(to_json(network)[1:-1] + b',"flows":')


def _beside(
    seed: int, warmup_ns: int, ccs: Sequence[str], tables: Mapping[str, Table],
    flows: OpenFlows, behind: Mapping[str, Any],
) -> Beside:  # fmt: skip
    """What has these flows, and `behind` them the rest of a plan."""
    return Beside(
        seed, warmup_ns, ccs, tables, {"flows": flows.rest, **behind}, flows,
        to_json([flows.rest, flows.entries, flows.start_spread_ns]),
        piece(b"," + to_json(behind)[1:]),
    )  # fmt: skip


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


def _rows(
    columns: Mapping[str, Sequence[int]], names: Sequence[str], count: int
) -> list[tuple[int, ...]]:
    """The rows of these columns."""
    if not names:
        return [()] * count
    return list(zip(*(columns[name] for name in names), strict=True))
