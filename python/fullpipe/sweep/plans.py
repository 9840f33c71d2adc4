"""Plans of the many cells of a sweep: what cells have in common is read, checked and resolved once.

Cells that differ in nothing but which built-in congestion controls their flows have are one kin:
the scenario is checked with a stand-in, as what is checked and planned beside a flow's `cc` asks
for none (`plan.skeleton`). Sections of the scenario without holes are read with the first of all
kins; what they mean together with the rest is checked for each. Seeds share everything but what
they draw. The plans are those of `plan.resolve`, byte for byte. Must never run one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
_KEPT = 4096
#: Keys of a scenario that hold sections (models) which say nothing of one another; but for `link`,
#: of which the path is made before anything is read.
_SECTIONS = frozenset({"wifi", "flow", "page", "udp", "traffic", "probe", "host", "cc"})
#: Those in which files may be named.
_FILES = frozenset({"flow", "page", "traffic", "cc", "link"})


class Kin(NamedTuple):
    """What the plans of cells have in common, and their JSON before and behind the flows, from the
    seed on. `parts`: of the code that both use. `rest`: all of the flows but what they draw and
    choose, as text."""

    scenario: Scenario
    skeleton: Skeleton
    before: Piece
    behind: Piece
    parts: frozenset[str]
    rest: bytes


def begin(seed: int) -> bytes:
    """The JSON of a plan up to its name and seed."""
    return b'{"name":"","seed":%d,' % seed


class Place(NamedTuple):
    """Where a point is among the others: what is equal for points of one kin, and for those whose
    flows have the same congestion controls."""

    kin: tuple[Any, ...]
    ccs: tuple[Any, ...]


class Plans:
    """Makes the kin of a sweep's points. `source` names the template in errors, `folder` holds the
    files that it names."""

    def __init__(self, template: Mapping[str, Any], source: str, folder: Path) -> None:
        self._source = source
        self._elsewhere = None if folder.resolve() == Path.cwd() else folder.resolve()
        # What flows are on one path they mostly are on another: their JSON, by what decides it.
        self._flows: dict[tuple[Any, ...], tuple[tuple[Choice, ...], Piece]] = {}
        self._pieces: dict[bytes, Piece] = {}
        self._named: dict[tuple[Any, ...], dict[int, str] | None] = {}
        self._chosen: dict[tuple[Any, ...], tuple[Choice, ...]] = {}
        self._whole = Template(template, source)
        self._ccs = _open_ccs(template)
        flows = [
            {**flow, "cc": _STAND_IN} if index in self._ccs else flow
            for index, flow in enumerate(template.get("flow", []))
        ]
        self._open = {**template, "flow": flows} if self._ccs else template
        self._rest = Template(self._open, source)
        self._rest_axes = _axes_of(self._open)
        self._cc_axes = _axes_of(list(self._ccs.values()))
        self._read: tuple[Template, dict[str, Any]] | None = None
        self._fills = {
            index: filler(cc, f"{source}.flow.{index}.cc") for index, cc in self._ccs.items()
        }

    def document(self, point: Point) -> dict[str, Any]:
        """The scenario's document there. Raises UserError for an unknown hole."""
        return self._whole_named(self._whole.at(fields_of(point)))

    def scenario(self, point: Point) -> Scenario:
        """The scenario there, as it is repeated. Raises UserError naming file, cell and key."""
        return self._made(self.document(point), fields_of(point))

    def place(self, point: Point) -> Place:
        """Where a point is among the others."""
        ccs = _values(point, self._cc_axes)
        if ccs not in self._named:
            self._named[ccs] = self._names(fields_of(point))
        axes = tuple(point) if self._named[ccs] is None else self._rest_axes
        return Place(_values(point, axes), ccs)

    def kins(self, places: Sequence[tuple[Point, Place]]) -> list[Kin]:
        """The kins of points, each of another one. All are read, then all are planned: what the
        processor keeps at hand of a step serves the next kin's.

        Raises UserError naming file, cell and key."""
        scenarios = [self._scenario_of(point, place) for point, place in places]
        return [self._kin(scenario) for scenario in scenarios]

    def choices(self, kin: Kin, point: Point, place: Place) -> tuple[Choice, ...]:
        """The congestion controls of the flows at a point of this kin."""
        known = self._chosen.get(place.ccs)
        if known is not None:
            return known
        own = self._named[place.ccs]
        if own is None:
            tables = kin.scenario.cc_tables
            return tuple([choose(flow.cc, tables) for flow in kin.scenario.flow])
        # The scenario has no flows whose count is 0 there.
        present = self._rest.present_flows(fields_of(point))
        flows = zip(present, kin.scenario.flow, strict=True)
        choices = tuple([choose(own.get(index, flow.cc), {}) for index, flow in flows])
        if self._rest.has_fixed_flows:
            _keep_few(self._chosen)
            self._chosen[place.ccs] = choices
        return choices

    def flows(self, kin: Kin, choices: tuple[Choice, ...], seed: int) -> Piece:
        """The JSON of the flows with these congestion controls and this seed: of the plan
        `begin(seed)`, `kin.before`, this and `kin.behind` in a row."""
        place = (kin.rest, seed, *map(id, choices))
        known = self._flows.get(place)
        if known is None:
            _keep_few(self._flows)
            # The choices are kept too: an id belongs to nothing else as long as its object lives.
            known = choices, piece(to_json(kin.skeleton.flows(choices, seed)))
            self._flows[place] = known
        return known[1]

    def _scenario_of(self, point: Point, place: Place) -> Scenario:
        """The scenario of a kin, with stand-ins where congestion controls are open."""
        fields = fields_of(point)
        if self._named[place.ccs] is None:
            return self._made(self._whole_named(self._whole.at(fields)), fields)
        if self._read is None:
            scenario = self._made(self._whole_named(self._rest.at(fields)), fields)
            read = {
                key: getattr(scenario, key)
                for key in _SECTIONS & self._open.keys() if not holes(self._open[key])
            }  # fmt: skip
            others = {key: one for key, one in self._open.items() if key not in read}
            self._read = Template(others, self._source), read
            return scenario
        template, read = self._read
        document = template.at(fields)
        if not _FILES.isdisjoint(document):
            self._whole_named(document)
        return self._made(document | read, fields)

    def _kin(self, scenario: Scenario) -> Kin:
        made = skeleton(scenario)
        document = made.document
        names = list(document)
        place = names.index("flows")
        before, behind = (
            to_json({name: document[name] for name in some})
            for some in (names[2:place], names[place + 1 :])  # name and seed come first
        )
        rest = to_json([document["flows"], made.entries, made.start_spread_ns])
        first, last = piece(before[1:-1] + b',"flows":'), self._piece(b"," + behind[1:])
        return Kin(scenario, made, first, last, first.parts | last.parts, rest)

    def _piece(self, text: bytes) -> Piece:
        """As `piece`, of a text that most kins share."""
        known = self._pieces.get(text)
        if known is None:
            _keep_few(self._pieces)
            known = self._pieces[text] = piece(text)
        return known

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
        if not self._fills:
            return None
        found = {index: fill(fields) for index, fill in self._fills.items()}
        known = cc_sets()
        for name in found.values():
            if not (isinstance(name, str) and name in known):
                return None
        return found


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


def _axes_of(template: Any) -> tuple[str, ...]:
    """The axes that a template uses."""
    return tuple(sorted({name.partition(".")[0] for name in holes(template)}))


def _values(point: Point, axes: Sequence[str]) -> tuple[Any, ...]:
    """The values of these axes as what is equal for no others: 1, 1.0 and True are three."""
    values = [point.get(axis) for axis in axes]
    return tuple([one if type(one) is str else (type(one), repr(one)) for one in values])


def _keep_few(kept: dict[Any, Any]) -> None:
    """Makes room for one more."""
    if len(kept) >= _KEPT:
        kept.clear()
