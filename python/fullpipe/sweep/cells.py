"""From points to plans: the runs that a sweep asks for, each with its key.

Plans go to a spool, a file: a hundred thousand of them are not kept in memory. Must never run one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from fullpipe._native import sha256, to_json
from fullpipe.congestion.registry import Choice
from fullpipe.expr.quantities import COLUMN_UNITS, quantity
from fullpipe.scenario.model import Scenario
from fullpipe.sweep.axes import Point
from fullpipe.sweep.collector import without_collector
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.keys import KEY_DIGITS, beside_plan
from fullpipe.sweep.measures import Columns, Facts, facts_of, version_of
from fullpipe.sweep.plans import Beside, Kin, Place, Plans, begin
from fullpipe.sweep.reading import keep_few
from fullpipe.sweep.spool import Span, Spool
from fullpipe.sweep.templates import fields_of
from fullpipe.sweep.worker import Run

#: What the simulator takes, roughly: CPU s a packet on the bottleneck, a run, a flow. They order
#: work and size groups; estimates for people come from trials (estimate.py).
PACKET_S, _RUN_S, _FLOW_S = 1.5e-7, 5e-5, 3e-5
#: Kins that are planned together.
_AT_ONCE = 32
#: A simulated second on the virtual machine: at rest, and a packet; a run, which goes on from a
#: kept machine.
_VM_SECOND_S, _VM_PACKET_S, _VM_RUN_S = 0.1, 6e-5, 1.5


@dataclass(slots=True)
class Cell:
    """A point and what was made of it. `keys`: of its runs, in the order of seeds."""

    index: int
    point: Point
    keys: list[str] = field(default_factory=list)
    first_seed: int = 0


class Planned(NamedTuple):
    """A run that a cell asks for, and what it costs (CPU s, roughly)."""

    cell: Cell
    run: Run
    cost_s: float


class Planner:
    """Makes the plans of a sweep's cells and writes them into a spool."""

    def __init__(self, sweep: Sweep, spool: Path, options: Mapping[str, str]) -> None:
        self.sweep = sweep
        self.options = dict(options)
        self._given = tuple(sorted(options.items()))
        self.spool = spool
        self._spool: Spool | None = None
        self._begins: dict[int, Span] = {}
        self._beside: dict[Any, bytes] = {}
        # By what they are of, which is kept beside them: nothing else has its id.
        self._tails: dict[Any, tuple[Beside, _Tails]] = {}
        self._keep = sweep.options.keep == "recordings"
        self._plans = Plans(sweep.template, f"{sweep.source}: scenario", sweep.folder)

    def cells(self) -> Iterator[Cell]:
        """The cells, without plans."""
        for index, point in enumerate(self.sweep.points()):
            yield Cell(index, point)

    def scenario(self, cell: Cell) -> tuple[dict[str, Any], Scenario]:
        """The scenario of a cell, as a document and read.

        Raises UserError naming file, cell and key."""
        document = self._plans.document(cell.point)
        scenario = self._plans.scenario(cell.point)
        return {**document, "start_spread": f"{scenario.start_spread}ns"}, scenario

    def plan(self, cells: Sequence[Cell], count: int) -> list[Planned]:
        """Runs of cells, each with so many seeds after those that it has, cell by cell; their plans
        are spooled.

        Raises UserError where a cell is no scenario."""
        spool = self._spool = self._spool or Spool(self.spool)
        # Cells of one kin come one after another, so that few kins are kept.
        kins: dict[Any, list[_Member]] = {}
        planned: list[Planned] = []
        with without_collector():
            places = self._plans.places([cell.point for cell in cells]) if cells else []
            for cell, place in zip(cells, places, strict=True):
                kins.setdefault(place.kin, []).append((cell, place))
            waiting = iter(kins.values())
            while some := list(itertools.islice(waiting, _AT_ONCE)):
                firsts = [(members[0][0].point, members[0][1]) for members in some]
                for members, kin in zip(some, self._plans.kins(firsts), strict=True):
                    planned += self._runs(members, kin, count, spool)
            spool.flush()
        planned.sort(key=lambda one: one.cell.index)
        return planned

    def _runs(
        self, members: Sequence[_Member], kin: Kin, count: int, spool: Spool
    ) -> Iterator[Planned]:
        """Runs of cells of one kin, of each in the order of seeds."""
        first = kin.beside.seed
        of_seeds: dict[int, list[tuple[Cell, tuple[Choice, ...]]]] = {}
        for cell, place in members:
            choices = self._plans.choices(kin, cell.point, place)
            cell.first_seed = first
            for seed in range(first + len(cell.keys), first + len(cell.keys) + count):
                of_seeds.setdefault(seed, []).append((cell, choices))
        common: _Common | None = None
        for seed in sorted(of_seeds):
            own = self._plans.of_seed(kin, seed)
            if common is None or common.kin is not own:
                common = self._common_of(own, spool)
            yield from self._runs_of(common, seed, of_seeds[seed], spool)

    def _runs_of(
        self, common: _Common, seed: int, members: Sequence[tuple[Cell, tuple[Choice, ...]]],
        spool: Spool,
    ) -> Iterator[Planned]:  # fmt: skip
        """Runs of cells of one kin with one seed."""
        tails: list[_Tail] = []
        for _, choices in members:
            tail = common.tails.get((seed, id(choices)))
            if tail is None:
                keep_few(common.tails)
                tail = self._tail(common, choices, seed, spool)
                common.tails[seed, id(choices)] = tail
            tails.append(tail)
        start = begin(seed)
        head, ends = start + common.kin.before.keyed, [tail.keyed for tail in tails]
        if seed not in self._begins:
            self._begins[seed] = spool.put(start)
        keys = sha256(head, ends, KEY_DIGITS)
        for (cell, _), tail, key in zip(members, tails, keys, strict=True):
            cell.keys.append(key)
            plan: tuple[Span, ...] = (self._begins[seed], common.before, tail.span)
            document: tuple[Span, ...] = ()
            if self._keep:
                toml, scenario = self.scenario(cell)
                plan = spool.put(begin(seed, scenario.name)), *plan[1:]
                document = (spool.put(tomli_w.dumps({**toml, "seed": seed}).encode()),)
            run = Run(Facts(key, seed, *common.facts), plan, document, common.has_traffic)
            yield Planned(cell, run, common.cost_s)

    def _tail(self, common: _Common, choices: tuple[Choice, ...], seed: int, spool: Spool) -> _Tail:
        kin = common.kin
        flows, behind = self._plans.flows(kin, choices, seed), kin.behind
        place = kin.before.parts | flows.parts | behind.parts, common.beside
        beside = self._beside.get(place)
        if beside is None:
            beside = self._beside[place] = beside_plan(place[0], *common.beside)
        span = spool.put(flows.text + behind.text)
        return _Tail(choices, span, flows.keyed + behind.keyed + beside)

    def _common_of(self, kin: Kin, spool: Spool) -> _Common:
        plan, engine = kin.plan, self.sweep.options.engine
        facts = facts_of("", plan, 0, engine, kin.beside.warmup_ns)
        beside = engine, facts.warmup_ns, version_of(plan), self._given
        place = id(kin.beside), kin.before.parts, beside
        if place not in self._tails:
            keep_few(self._tails)
            self._tails[place] = kin.beside, {}
        tails = self._tails[place][1]
        before, cost = spool.put(kin.before.text), cost_s(plan, engine)
        return _Common(kin, before, facts[2:], beside, cost, "traffic" in plan, tails)


#: A cell of a kin, and where it is among the others.
_Member = tuple[Cell, Place]


class _Tail(NamedTuple):
    """Of a plan the flows and what is behind them, in the spool, and what the key is of them and of
    all beside the plan. `choices`: of which it is."""

    choices: tuple[Choice, ...]
    span: Span
    keyed: bytes


#: By seed, and the id of the choices.
_Tails = dict[tuple[int, int], _Tail]


class _Common(NamedTuple):
    """What the runs of a kin have in common. `before`: the plan up to its flows, in the spool;
    `facts`: those behind key and seed; `beside`: what `keys.beside_plan` wants to know beside the
    parts; `tails`: those of the kins that differ in nothing but what is before their flows."""

    kin: Kin
    before: Span
    facts: tuple[Any, ...]
    beside: tuple[str, int, int, tuple[tuple[str, str], ...]]
    cost_s: float
    has_traffic: bool
    tails: _Tails


def cost_s(plan: Mapping[str, Any], engine: str) -> float:
    """CPU seconds that a run takes, roughly; what orders the work."""
    path = plan["path"]
    rate_bps: float = path["rate_bps"] + (path["reverse_rate_bps"] or 0)
    seconds: float = plan["duration_ns"] / 1e9
    packets: float = rate_bps * seconds / (8 * path["mtu_bytes"])
    if engine == "sim":
        return _RUN_S + _FLOW_S * len(plan["flows"]) + PACKET_S * packets
    return _VM_RUN_S + _VM_SECOND_S * seconds + _VM_PACKET_S * packets


def sweep_id(sweep: Sweep) -> str:
    """The name of a sweep in a store: a hash of what decides its cells."""
    facts = [
        sweep.template, {axis.name: axis.values for axis in sweep.axes},
        sweep.options.deciding(),
    ]  # fmt: skip
    return sha256(b"", [to_json(facts)], 16)[0]


def asked(cells: list[Cell]) -> Columns:
    """One row for each run that a sweep asks for: cell, axes as written, as numbers in base units
    (`rtt_s`, `rate_bps`) where their values have units, seed and key."""
    counts = [len(cell.keys) for cell in cells]
    columns: dict[str, tuple[str, list[Any]]] = {
        "cell": ("u64", _repeated([cell.index for cell in cells], counts)),
        "seed": ("u64", [c.first_seed + place for c in cells for place in range(len(c.keys))]),
        "key": ("text", [key for cell in cells for key in cell.keys]),
    }
    fields: dict[str, tuple[list[Any], list[int]]] = {}
    of_tables: dict[str, tuple[list[Any], list[int]]] = {}
    for axis in dict.fromkeys(itertools.chain.from_iterable(cell.point for cell in cells)):
        # An axis has few values and a sweep many cells: each value is read once.
        given = [cell.point.get(axis) for cell in cells]
        values = dict(zip(map(id, given), given, strict=True))
        places = dict(zip(values, range(len(values)), strict=True))
        which = _repeated(list(map(places.__getitem__, map(id, given))), counts)
        found = [fields_of({axis: value}) for value in values.values()]
        for name in dict.fromkeys(itertools.chain.from_iterable(found)):
            some = fields if name == axis else of_tables
            some[name] = [one.get(name) for one in found], which
    for name, (known, which) in {**fields, **of_tables}.items():
        written = name.replace(".", "_")
        columns[written] = _column(known, which)
        numbers = [quantity(value) for value in known]
        kinds = {number.kind for number in numbers if number is not None}
        if len(kinds) == 1 and None not in numbers and kinds <= COLUMN_UNITS.keys():
            base = [float(number.value) for number in numbers if number]
            columns.setdefault(
                f"{written}_{COLUMN_UNITS[kinds.pop()]}", ("f64", [base[place] for place in which])
            )
    return columns


def _repeated(values: list[Any], counts: list[int]) -> list[Any]:
    """Each value so many times."""
    if all(count == 1 for count in counts):
        return values
    return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]


def _column(values: list[Any], which: list[int]) -> tuple[str, list[Any]]:
    """These of the values, by their places: numbers as numbers where all are, else text."""
    kind = "text"
    if all(isinstance(value, bool) for value in values):
        kind = "bool"
    elif all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        kind = "i64"
    elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        kind = "f64"
    else:
        values = [None if value is None else str(value) for value in values]
    return kind, [values[place] for place in which]
