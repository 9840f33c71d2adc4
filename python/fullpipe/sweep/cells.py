"""The cells of a sweep, and the runs that each asks for. Must never run one."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import tomli_w
from pydantic_core import to_json

from fullpipe.engines.base import engine
from fullpipe.expr.quantities import COLUMN_UNITS, quantity
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import Scenario
from fullpipe.sweep.axes import Point
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.measures import Columns
from fullpipe.sweep.runs import Run, run_of, scenario_at
from fullpipe.sweep.templates import fields_of


@dataclass(slots=True)
class Cell:
    """A point of a sweep. `keys`: of its runs, whose seeds count up from `first_seed`."""

    index: int
    point: Point
    keys: list[str] = field(default_factory=list)
    first_seed: int = 0


class Planned(NamedTuple):
    """A run that a cell asks for."""

    cell: Cell
    run: Run


def cells_of(sweep: Sweep) -> list[Cell]:
    """All cells of a sweep, without runs."""
    return [Cell(index, point) for index, point in enumerate(sweep.points())]


def scenario_of(sweep: Sweep, cell: Cell) -> tuple[dict[str, Any], Scenario]:
    """The scenario of a cell as repetitions run it, as a document and read.

    Raises UserError naming file, cell and key."""
    fields = fields_of(cell.point)
    document, scenario = scenario_at(sweep.template, fields, sweep.source, sweep.folder)
    scenario = scenario.repeated()
    return {**document, "start_spread": f"{scenario.start_spread}ns"}, scenario


def plan_runs(sweep: Sweep, cells: Sequence[Cell], count: int) -> list[Planned]:
    """So many further runs of each cell, with the seeds after those that it has. Adds their keys to
    the cells.

    Raises UserError where a cell is no scenario."""
    options, planned = deciding_options(sweep), []
    for cell in cells:
        document, scenario = scenario_of(sweep, cell)
        cell.first_seed = scenario.seed
        begin = scenario.seed + len(cell.keys)
        for seed in range(begin, begin + count):
            run = run_of(scenario, seed, sweep.options.engine, options)
            if sweep.options.keep == "recordings":
                run = run._replace(document=tomli_w.dumps({**document, "seed": seed}))
            cell.keys.append(run.facts.key)
            planned.append(Planned(cell, run))
    return planned


def check_engine(sweep: Sweep) -> None:
    """Raises UserError where the engine cannot run the first cell: said before anything runs."""
    _, scenario = scenario_of(sweep, Cell(0, next(sweep.points())))
    engine(sweep.options.engine).check(resolve(scenario))


def deciding_options(sweep: Sweep) -> dict[str, str]:
    """Options of the engine that change results."""
    return {"kernel": sweep.options.kernel} if sweep.options.kernel else {}


def sweep_id(sweep: Sweep) -> str:
    """The name of a sweep in a store: a hash of what decides its cells."""
    facts = [
        sweep.template, {axis.name: axis.values for axis in sweep.axes},
        sweep.options.deciding(),
    ]  # fmt: skip
    return hashlib.sha256(to_json(facts)).hexdigest()[:16]


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
