"""Results of a scorecard's items that are knife edges (metrics/knife_edge.py): the runs of a cell
agree, and a little jitter makes others of them. Runs what it needs; the card's runs are in the
store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from fullpipe.metrics.knife_edge import JITTER, LEAST_RTT_S, flips, is_narrow
from fullpipe.scorecard.change_texts import shown
from fullpipe.scorecard.comparing import Settings
from fullpipe.scorecard.items import Item, Measure
from fullpipe.scorecard.values import Rows, Values, cell_labels, rows_of, values_of
from fullpipe.sweep.cells import Cell, scenario_of
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.store import Store
from fullpipe.sweep.together import run_together

#: An item with more edges gives the number of the others.
_MOST_NAMED = 3


def knife_edges(
    subject: str, chosen: Sequence[Item], store: Store, settings: Settings
) -> dict[str, str]:
    """What to say of items in whose cells the subject's results are knife edges, by the items' ids.
    Measures of harm, which rest on two runs, are not tried, nor are paths with jitter of their own
    or with an RTT to which it is not little.

    Raises UserError as `run_card` does."""
    items = [item for item in chosen if not item.needs and _has_no_jitter(item)]
    plain = _run(subject, items, store, settings, [])
    agreeing = {
        item.id: cells
        for item, measured in zip(items, plain, strict=True)
        if (cells := list(_agreeing(item, measured)))
    }
    tried = [item for item in items if item.id in agreeing]
    changed = _run(subject, tried, store, settings, [f"path.jitter={JITTER}"])
    said = {}
    for item, jittered in zip(tried, changed, strict=True):
        edges = _edges(item, agreeing[item.id], jittered)
        if edges:
            more = len(edges) - _MOST_NAMED
            said[item.id] = "knife edge: " + "; ".join(
                [*edges[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
            )
    return said


@dataclass(frozen=True)
class _Measured:
    """An item's sweep, its cells and their rows."""

    sweep: Sweep
    cells: list[Cell]
    rows: Rows

    def values(self, item: Item, measure: Measure) -> Values:
        return values_of(item, measure, self.cells, None, self.rows)

    def is_long(self, index: int) -> bool:
        """Whether jitter is little beside a cell's RTT."""
        _, scenario = scenario_of(self.sweep, self.cells[index])
        return scenario.path is not None and scenario.path.rtt >= 1e9 * LEAST_RTT_S


@dataclass(frozen=True)
class _Agreeing:
    """The values of a measure in a cell, whose runs agree."""

    measure: Measure
    index: int
    values: list[float]


def _run(
    subject: str,
    items: Sequence[Item],
    store: Store,
    settings: Settings,
    overrides: Sequence[str],
) -> list[_Measured]:
    sweeps = [
        item.runs(subject, settings.quick, "sim", settings.seeds, overrides) for item in items
    ]
    if not sweeps:
        return []
    ran = run_together(sweeps, store, settings.jobs, settings.on_progress)
    if ran.interrupted:
        raise KeyboardInterrupt
    rows = rows_of(store, {key for cells in ran.cells for cell in cells for key in cell.keys})
    return [_Measured(sweep, cells, rows) for sweep, cells in zip(sweeps, ran.cells, strict=True)]


def _has_no_jitter(item: Item) -> bool:
    scenario = item.scenario
    parts = [scenario.get("path", {}), *scenario.get("flow", [])]
    return "path" in scenario and not any("jitter" in part for part in parts)


def _agreeing(item: Item, measured: _Measured) -> Iterator[_Agreeing]:
    for measure in item.measure:
        if measure.harm:
            continue
        for index, values in enumerate(measured.values(item, measure)):
            if is_narrow(values) and measured.is_long(index):
                yield _Agreeing(measure, index, values)


def _edges(item: Item, agreeing: Sequence[_Agreeing], jittered: _Measured) -> list[str]:
    labels = cell_labels(jittered.cells)
    tables = {m.id: jittered.values(item, m) for m in item.measure if not m.harm}
    edges = []
    for cell in agreeing:
        measure, values = cell.measure, cell.values
        changed = tables[measure.id][cell.index]
        if flips(values, changed, measure.least):
            where = f" at {labels[cell.index]}" if labels[cell.index] else ""
            unit = f" {measure.unit}" if measure.unit else ""
            edges.append(
                f"{measure.title} is {shown(fmean(values))}{unit}{where} in all {len(values)} "
                f"runs, and {shown(min(changed))} to {shown(max(changed))}{unit} with a jitter of "
                f"{JITTER}"
            )
    return edges
