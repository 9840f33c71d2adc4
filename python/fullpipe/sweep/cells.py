"""The cells of a sweep, and the runs that each asks for. Must never run one."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import tomli_w
from pydantic_core import to_json

from fullpipe.base.columns import column
from fullpipe.base.errors import UserError
from fullpipe.engines.base import engine, foreign_option
from fullpipe.expr.quantities import COLUMN_UNITS, quantity
from fullpipe.plan.resolve import resolve
from fullpipe.scenario.model import Scenario, make_scenario
from fullpipe.sweep.axes import Point
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.runs import Run, run_of, scenario_at
from fullpipe.sweep.tables import LENGTHENED, OWN_FLOWS, SCHEMAS
from fullpipe.sweep.templates import fields_of, flows_with


@dataclass(slots=True)
class Cell:
    """A point of a sweep. `keys`: of its runs, whose seeds count up from `first_seed`. `own_flows`:
    axis -> numbers of the flows with its value, for axes named as a column of `flows`. `times`:
    duration and warm-up where they are not those of the scenario, which had not settled."""

    index: int
    point: Point
    keys: list[str] = field(default_factory=list)
    first_seed: int = 0
    own_flows: dict[str, list[int]] = field(default_factory=dict)
    times: dict[str, str] = field(default_factory=dict)


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
    if cell.times:
        document |= cell.times
        scenario = make_scenario(document, sweep.source)
    scenario = scenario.repeated()
    return {**document, "start_spread": f"{scenario.start_spread}ns"}, scenario


def plan_runs(
    sweep: Sweep,
    cells: Sequence[Cell],
    count: int,
    on_planned: Callable[[int], None] = lambda _cells: None,
) -> list[Planned]:
    """So many further runs of each cell, with the seeds after those that it has. Adds their keys to
    the cells. `on_planned` gets the number of cells before each.

    Raises UserError where a cell is no scenario."""
    options, planned = sweep.options.engine_options(), []
    for number, cell in enumerate(cells):
        on_planned(number)
        document, scenario = scenario_of(sweep, cell)
        cell.first_seed = scenario.seed
        cell.own_flows = own_flows(sweep.template, fields_of(cell.point))
        begin = scenario.seed + len(cell.keys)
        for seed in range(begin, begin + count):
            run = run_of(scenario, seed, sweep.options.engine, options)
            if sweep.options.keep == "recordings":
                run = run._replace(document=tomli_w.dumps({**document, "seed": seed}))
            cell.keys.append(run.facts.key)
            planned.append(Planned(cell, run))
    return planned


def own_flows(template: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, list[int]]:
    """`Cell.own_flows` of a point (`templates.fields_of`) of a template."""
    axes = [name for name in fields if name in SCHEMAS["flows"].names]
    return {axis: flows_with(template, fields, axis) for axis in axes}


def check_engine(sweep: Sweep) -> None:
    """Raises UserError where the engine cannot run the first cell: said before anything runs."""
    if foreign := foreign_option(sweep.options.engine, sweep.options.engine_options()):
        option, engines = foreign
        raise UserError(f"{sweep.source}: sweep.{option}: belongs to engine {engines}")
    _, scenario = scenario_of(sweep, Cell(0, next(sweep.points())))
    engine(sweep.options.engine).check(resolve(scenario), sweep.options.engine_options())


def sweep_id(sweep: Sweep) -> str:
    """The name of a sweep in a store: a hash of what decides its cells."""
    facts = [
        sweep.template,
        {axis.name: axis.values for axis in sweep.axes},
        sweep.options.deciding(),
    ]
    return hashlib.sha256(to_json(facts)).hexdigest()[:16]


def asked(cells: Sequence[Cell]) -> pa.Table:
    """One row for each run that a sweep asks for: cell, seed and key; each axis as written, and, if
    its values have units, as numbers in base units (`rtt_s`, `rate_bps`, `loss_fraction`);
    `duration_until_settled` where cells run longer than the scenario says; `own_flows`."""
    runs = [(cell, index) for cell in cells for index in range(len(cell.keys))]
    columns = {
        "cell": column([cell.index for cell, _ in runs], pa.uint64()),
        "seed": column([cell.first_seed + index for cell, index in runs], pa.uint64()),
        "key": column([cell.keys[index] for cell, index in runs], pa.string()),
    }
    fields = [fields for cell in cells for fields in [fields_of(cell.point)] * len(cell.keys)]
    names = dict.fromkeys(itertools.chain.from_iterable(fields))
    for name in sorted(names, key=lambda name: "." in name):  # axes before fields of their tables
        values = [cell_fields.get(name) for cell_fields in fields]
        written = name.replace(".", "_")
        columns[written] = _column(values)
        if (base := _in_base_units(values)) is not None:
            unit, numbers = base
            columns.setdefault(f"{written}_{unit}", numbers)
    if any(cell.times for cell, _ in runs):
        columns[LENGTHENED] = column([cell.times.get("duration") for cell, _ in runs], pa.string())
    for axis in dict.fromkeys(itertools.chain.from_iterable(cell.own_flows for cell in cells)):
        numbers_of = [cell.own_flows.get(axis, []) for cell, _ in runs]
        columns[f"{OWN_FLOWS}{axis}"] = pa.array(numbers_of, pa.list_(pa.uint64()))
    return pa.table(columns)


def _in_base_units(values: Sequence[Any]) -> tuple[str, pa.Array] | None:
    """The unit and the numbers of quantities of one kind; None where values are others, or numbers
    already. A value that a cell lacks is null."""
    there = [value for value in values if value is not None]
    quantities = [number for number in map(quantity, there) if number is not None]
    kinds = {number.kind for number in quantities}
    if (
        len(kinds) != 1
        or len(quantities) < len(there)
        or not any(number.unit for number in quantities)
    ):
        return None
    numbers = [None if value is None else quantity(value) for value in values]
    base = [None if number is None else number.value for number in numbers]
    return COLUMN_UNITS[kinds.pop()], column(base, pa.float64())


def _column(values: Sequence[Any]) -> pa.Array:
    """Values of one axis: truths, integers or reals if all are of one kind, else text. Text without
    a unit, such as "0.5", is a number too. A value that a cell lacks is null."""
    numbers = [quantity(value) if isinstance(value, str) else None for value in values]
    values = [
        value if number is None or number.unit else number.value
        for value, number in zip(values, numbers, strict=True)
    ]
    kinds = {_kind(value) for value in values}
    if kinds == {bool}:
        return column(values, pa.bool_())
    if kinds == {int}:
        return column(values, pa.int64())
    if kinds & {int, float} and kinds <= {int, float, type(None)}:
        return column(values, pa.float64())
    return column([None if value is None else str(value) for value in values], pa.string())


def _kind(value: Any) -> type:
    """Its type; float of every real, since a file's are of a class of their own (WrittenFloat)."""
    return float if isinstance(value, float) else type(value)
