"""From points to plans: the runs that a sweep asks for, each with its key.

Plans go to a spool, a file: a hundred thousand of them are not kept in memory. Must never run one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import tomli_w
from pydantic_core import to_json

from fullpipe.cc_sets import Choice
from fullpipe.columns import column
from fullpipe.scenario import Scenario
from fullpipe.sweep.axes import Point
from fullpipe.sweep.collector import without_collector
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.keys import run_key
from fullpipe.sweep.measures import Facts, facts_of, version_of
from fullpipe.sweep.plans import Kin, Place, Plans
from fullpipe.sweep.quantities import COLUMN_UNITS, quantity
from fullpipe.sweep.templates import fields_of
from fullpipe.sweep.worker import Run

#: What the simulator takes, roughly: CPU s a packet on the bottleneck, a run, a flow. They order
#: work and size groups; estimates for people come from trials (estimate.py).
PACKET_S, _RUN_S, _FLOW_S = 2.5e-7, 4e-4, 1e-4
#: A simulated second on the virtual machine: at rest, and a packet.
_VM_SECOND_S, _VM_PACKET_S, _VM_RUN_S = 0.1, 1.2e-4, 6.0


@dataclass
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
        self.spool = spool
        # Other sweeps' plans may lie there already.
        self._offset = spool.stat().st_size if spool.exists() else 0
        self._file: BinaryIO | None = None
        self._common: _Common | None = None
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
        if self._file is None:
            self._file = self.spool.open("ab")
        # Cells of one kin come one after another, so that only one is kept.
        kins: dict[str, list[tuple[Cell, Place]]] = {}
        for cell in cells:
            place = self._plans.place(cell.point)
            kins.setdefault(place.kin, []).append((cell, place))
        planned: dict[int, list[Planned]] = {}
        with _flushed(self._file), without_collector():
            for members in kins.values():
                kin = None
                for cell, place in members:
                    kin, choices = self._plans.at(place, kin)
                    planned[cell.index] = self._runs(cell, kin, choices, count)
        return [one for cell in cells for one in planned[cell.index]]

    def _runs(self, cell: Cell, kin: Kin, choices: tuple[Choice, ...], count: int) -> list[Planned]:
        assert self._file is not None
        common = self._common
        if common is None or common.kin is not kin:
            common = self._common = self._common_of(kin)
        engine, warmup_ns = common.facts.engine, common.facts.warmup_ns
        scenario = kin.scenario
        cell.first_seed = scenario.seed
        first = scenario.seed + len(cell.keys)
        found = []
        for seed in range(first, first + count):
            pieces = self._plans.pieces(kin, choices, seed)
            key = run_key(pieces, engine, warmup_ns, common.version, self.options)
            cell.keys.append(key)
            text, toml = b"".join([piece.text for piece in pieces]), b""
            if self._keep:
                document, scenario = self.scenario(cell)
                text = to_json({**json.loads(text), "name": scenario.name})
                toml = tomli_w.dumps({**document, "seed": seed}).encode()
            self._file.write(text + toml)
            facts = common.facts._replace(key=key, seed=seed)
            run = Run(facts, self._offset, len(text), len(toml))
            self._offset += len(text) + len(toml)
            found.append(Planned(cell, run, common.cost_s))
        return found

    def _common_of(self, kin: Kin) -> _Common:
        plan, engine = kin.skeleton.document, self.sweep.options.engine
        facts = facts_of("", plan, 0, engine, kin.scenario.warmup)
        return _Common(kin, facts, version_of(plan, facts.queue), cost_s(plan, engine))


class _Common(NamedTuple):
    """What the runs of a kin have in common. `facts`: but for key and seed."""

    kin: Kin
    facts: Facts
    version: int
    cost_s: float


@contextlib.contextmanager
def _flushed(file: BinaryIO) -> Iterator[BinaryIO]:
    """A file that whoever reads it finds whole afterwards."""
    try:
        yield file
    finally:
        file.flush()


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
        sweep.options.model_dump(exclude={"seeds", "keep", "name"}),
    ]  # fmt: skip
    return hashlib.sha256(to_json(facts)).hexdigest()[:16]


def asked(cells: list[Cell]) -> pa.Table:
    """One row for each run that a sweep asks for: cell, axes as written, as numbers in base units
    (`rtt_s`, `rate_bps`) where their values have units, seed and key."""
    counts = [len(cell.keys) for cell in cells]
    rows = column([index for index, count in enumerate(counts) for _ in range(count)], pa.int64())
    columns: dict[str, Any] = {
        "cell": column([cell.index for cell in cells], pa.uint64()).take(rows),
        "seed": column(
            [cell.first_seed + index for cell in cells for index in range(len(cell.keys))],
            pa.uint64(),
        ),
        "key": column([key for cell in cells for key in cell.keys], pa.string()),
    }
    points = [fields_of(cell.point) for cell in cells]
    for name in dict.fromkeys(name for fields in points for name in fields):
        # An axis has few values and a sweep many cells: each value is read once. 1 and True are
        # equal and not the same.
        given = [fields.get(name) for fields in points]
        kinds_given = list(zip(map(type, given), given, strict=True))
        places = {pair: index for index, pair in enumerate(dict.fromkeys(kinds_given))}
        which = column([places[pair] for pair in kinds_given], pa.int64()).take(rows)
        values = [value for _, value in places]
        written = name.replace(".", "_")
        columns[written] = _column(values).take(which)
        numbers = [quantity(value) for value in values]
        kinds = {found.kind for found in numbers if found is not None}
        if len(kinds) == 1 and None not in numbers and kinds <= COLUMN_UNITS.keys():
            base = column([found.value for found in numbers if found], pa.float64())
            columns.setdefault(f"{written}_{COLUMN_UNITS[kinds.pop()]}", base.take(which))
    return pa.table(columns)


def _column(values: list[Any]) -> pa.Array:
    """Numbers as numbers where all are, else text."""
    if all(isinstance(value, bool) for value in values):
        return column(values, pa.bool_())
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return column(values, pa.int64())
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return column([float(value) for value in values], pa.float64())
    return column([None if value is None else str(value) for value in values], pa.string())
