"""Scenarios of a sweep, read key by key; and steps of planning that are done once for all scenarios
in which they read the same.

Open is what has holes in the template: a key of the scenario's, or one of a section's (`path.rtt`).
A value of such a key is read once for each combination of values of the axes in its holes. A step,
a check or a part of the plan, is given a scenario that notes which open keys it asks for; where
they have the same values again, and only there, it would give what it gave, and is not done. What
is refused on the way is refused without a word (`Scenarios.at` is None, a step raises): whoever
asks then reads the document as a whole, which says what is wrong. Knows no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from fullpipe.base.errors import UserError
from fullpipe.base.parts import OddError, Part
from fullpipe.scenario.model import Scenario, check_ccs
from fullpipe.sweep.templates import Filler, axes_of, holes

#: What a step or a key gave that is kept.
_KEPT = 4096
#: What a scenario or a step raises where it is wrong, or has to be read as a whole.
REFUSED = (OddError, ValueError, UserError)
_Result = TypeVar("_Result")


class At:
    """A scenario at a point of a sweep: the values of its open keys, and which were asked for."""

    __slots__ = ("_scenarios", "asked", "values")

    def __init__(self, scenarios: Scenarios, values: tuple[Any, ...]) -> None:
        self._scenarios = scenarios
        self.values = values
        self.asked: set[int] = set()

    @property
    def scenario(self) -> Scenario:
        """As it was written."""
        return self._scenarios.noting(self, self._scenarios.fixed)

    @property
    def repeated(self) -> Scenario:
        """As it is repeated."""
        return self._scenarios.noting(self, self._scenarios.fixed_repeated)


class Whole(NamedTuple):
    """A scenario that was read as a whole, as it is repeated; of it every step is done."""

    repeated: Scenario


class Step(Generic[_Result]):
    """A function of the scenario at a point, which reads nothing else, and of whose result nobody
    changes anything."""

    def __init__(self, of: Callable[[Any], _Result]) -> None:
        self._of = of
        #: By the open keys that it asked for, then by their values: objects that are kept beside
        #: the result, so that nothing else has their ids.
        self._known: dict[tuple[int, ...], dict[tuple[int, ...], tuple[Any, _Result]]] = {}

    def at(self, point: At | Whole) -> _Result:
        """What the function gives there. Raises what it raises."""
        if isinstance(point, Whole):
            return self._of(point)
        values = point.values
        for asked, known in self._known.items():
            found = known.get(tuple([id(values[place]) for place in asked]))
            if found is not None:
                point.asked.update(asked)
                return found[1]
        # Of a step within a step, the outer one has asked for what the inner one has.
        before, point.asked = point.asked, set()
        try:
            result = self._of(point)
            asked = tuple(sorted(point.asked))
        finally:
            point.asked |= before
        if len(asked) == len(values):
            return result  # no other kin is the same in all
        kept = [values[place] for place in asked]
        keep_few(known := self._known.setdefault(asked, {}))
        known[tuple(map(id, kept))] = kept, result
        return result


class _Open(NamedTuple):
    """An open key of a section. `place` picks the values of its axes from those of all; `known`: by
    them, what was read."""

    part: type[Part]
    key: str
    place: Callable[[tuple[Any, ...]], Any]
    fill: Filler
    known: dict[Any, Any]

    def read(self, axes: tuple[Any, ...], fields: Callable[[], Mapping[str, Any]]) -> Any:
        """The value there. Raises one of REFUSED where it is not plainly right."""
        place = self.place(axes)
        if place not in self.known:
            written = self.fill(fields())
            keep_few(self.known)
            self.known[place] = self.part._value(self.key, self.part._keys[self.key], written)
        return self.known[place]


class Scenarios:
    """The scenarios of a template. `first`: any of them, read as a whole; `axes`: those whose
    values `at` is given, in their order; `filler_of`: what fills a key of the scenario, or a
    section's."""

    def __init__(
        self, template: Mapping[str, Any], first: Scenario, axes: Sequence[str],
        filler_of: Callable[[str, str | None], Filler],
    ) -> None:  # fmt: skip
        """Raises OddError for a template whose scenarios must be read as a whole."""
        if "link" in template or holes(list(template)):
            raise OddError  # of links, the path is made before anything is read
        self._keys: list[_Open] = []
        #: Of each section with open keys (of the scenario itself: ""), its keys' places.
        self._open: dict[str, dict[str, int]] = {"": {}}
        for name, value in template.items():
            part = type(getattr(first, name))
            if holes(value) and _is_read_by_key(part, value):
                self._open[name] = {}
                for key, item in value.items():
                    if holes(item):
                        self._add(name, part, key, item, axes, filler_of(name, key))
            elif holes(value):
                self._add("", Scenario, name, value, axes, filler_of(name, None))  # type: ignore[arg-type]
        self.fixed = self._fixed_of(first)
        self.fixed_repeated = self._fixed_of(first.repeated())
        parts = {name: type(getattr(first, name)) for name in self._open if name}
        self._classes = {
            name: _noting_class(part, self._open[name])  # type: ignore[arg-type]
            for name, part in (("", Scenario), *parts.items())
        }  # fmt: skip
        self._checks: list[Step[None]] = [
            *(_check(check, name) for name, part in parts.items() for check in _checks(part)),
            *(_check(check, "") for check in _checks(Scenario)),  # type: ignore[arg-type]
            Step(lambda point: check_ccs(point.scenario)),
        ]

    def at(self, axes: tuple[Any, ...], fields: Callable[[], Mapping[str, Any]]) -> At | None:
        """The scenario where the axes have these values (what is equal for no others) and templates
        have these fields; None where it is not plainly right."""
        try:
            point = At(self, tuple([key.read(axes, fields) for key in self._keys]))
            for check in self._checks:
                check.at(point)
        except REFUSED:
            return None
        return point

    def noting(self, point: At, fixed: Mapping[str, Mapping[str, Any]]) -> Scenario:
        """The scenario at a point, which notes there what open keys it is asked for; the others are
        these, by their sections."""
        made = {
            name: self._classes[name]._made({**keys, "_at": point}) for name, keys in fixed.items()
        }
        whole = made.pop("")
        vars(whole).update(made)
        return whole  # type: ignore[return-value]

    def _add(
        self, section: str, part: type[Part], key: str, value: Any, axes: Sequence[str],
        fill: Filler,
    ) -> None:  # fmt: skip
        self._open[section][key] = len(self._keys)
        place = itemgetter(*map(axes.index, axes_of(value)))
        self._keys.append(_Open(part, key, place, fill, {}))

    def _fixed_of(self, scenario: Scenario) -> dict[str, dict[str, Any]]:
        """The keys of a scenario and its sections that are not open: whoever looks for an open one
        past its class finds none."""
        found = {}
        for name, open_ in self._open.items():
            section = getattr(scenario, name) if name else scenario
            passed = open_.keys() | (self._open.keys() if not name else set())
            found[name] = {key: one for key, one in vars(section).items() if key not in passed}
        return found


def keep_few(kept: dict[Any, Any]) -> None:
    """Makes room for one more."""
    if len(kept) >= _KEPT:
        kept.clear()


def _is_read_by_key(part: type, value: Any) -> bool:
    """Whether a section is its keys, each read alone, and checks of them."""
    return (
        issubclass(part, Part)
        and type(value) is dict
        and value.keys() <= part._keys.keys()
        and all(mode == "after" for mode in part._asked.values())
    )


def _checks(part: type[Part]) -> Iterator[str]:
    """The methods that a section is asked after its keys were read."""
    return (name for name, mode in part._asked.items() if mode == "after")


def _check(method: str, section: str) -> Step[None]:
    def of(point: At) -> None:
        scenario = point.scenario
        getattr(getattr(scenario, section) if section else scenario, method)()

    return Step(of)


def _noting_class(part: type[Part], places: Mapping[str, int]) -> type[Part]:
    """The class of sections that note which of these keys they are asked for, and that refuse what
    looks at all of them."""

    def reader(place: int) -> property:
        def read(self: Part) -> Any:
            point: At = vars(self)["_at"]
            point.asked.add(place)
            return point.values[place]

        return property(read)

    def odd(*_given: Any, **_named: Any) -> NoReturn:
        raise OddError

    whole = dict.fromkeys(("__eq__", "__hash__", "__repr__", "model_copy"), odd)
    return type(part.__name__, (part,), {**whole, **{key: reader(places[key]) for key in places}})
