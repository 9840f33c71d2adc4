"""The scorecard: runs items for a congestion control and those beside it, and makes one document of
the measurements. Must never know how it is shown.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

import fullpipe
from fullpipe.base.errors import UserError
from fullpipe.congestion.registry import choose
from fullpipe.metrics.settling import of_cells
from fullpipe.scorecard.items import ALONE, Item, Measure
from fullpipe.scorecard.values import Rows, Values, cell_labels, rows_of, values_of
from fullpipe.sweep.cells import Cell, check_engine
from fullpipe.sweep.file import Sweep
from fullpipe.sweep.schedule import Progress
from fullpipe.sweep.store import Store
from fullpipe.sweep.together import run_together

#: Increased when a document's content changes its meaning.
FORMAT = 2


def run_card(
    subject: str,
    against: Sequence[str],
    chosen: Sequence[Item],
    store: Store,
    quick: bool = False,
    engine: str = "sim",
    jobs: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
    seeds: int | None = None,
    overrides: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    until_settled: bool = False,
) -> dict[str, Any]:
    """The scorecard of `subject` as a document that JSON can hold (docs/reference/scorecard.md
    describes it).

    `seeds`: runs of each cell, in place of the items'. `overrides`: changes of all items'
    scenarios, such as `path.loss=1%`. `labels`: what some names are called in the document.
    `until_settled`: cells that had not settled run again, twice as long, for all subjects.

    Raises UserError for an unknown congestion control."""
    names = list(dict.fromkeys([subject, *against]))
    called = _labels(names, labels or {})
    wanted: list[tuple[Item, str]] = []
    sweeps: list[Sweep] = []
    refused: dict[str, str] = {}
    for item in chosen:
        if item.needs:
            continue
        pairs = [(item, name) for name in [*names, *([ALONE] if item.harms else [])]]
        try:
            item_sweeps = [item.runs(name, quick, engine, seeds, overrides) for _, name in pairs]
            check_engine(item_sweeps[0])
        except UserError as error:
            if engine == "sim":
                raise
            refused[item.id] = f"not on {engine}: {error}"
            continue
        wanted += pairs
        sweeps += item_sweeps
    ran = run_together(sweeps, store, jobs, on_progress, until_settled) if sweeps else None
    if ran is not None and ran.interrupted:
        raise KeyboardInterrupt
    cells = dict(zip([(i.id, name) for i, name in wanted], ran.cells if ran else [], strict=True))
    keys = {key for subject_cells in cells.values() for cell in subject_cells for key in cell.keys}
    rows = rows_of(store, keys)
    failures = ran.failures if ran else {}
    return {
        "format": FORMAT,
        "scorecard": called[subject],
        "name": subject,
        "fullpipe_version": fullpipe.__version__,
        "engine": engine,
        "quick": quick,
        "overrides": list(overrides),
        "until_settled": until_settled,
        "subjects": list(called.values()),
        "runs": ran.runs if ran else 0,
        "failures": sorted(set(failures.values())),
        "items": [
            _item(item, called, cells, rows, item.needs or refused.get(item.id, ""))
            | {"command": _command(subject, item, quick, overrides, until_settled)}
            for item in chosen
        ],
    }


def _labels(names: Sequence[str], labels: Mapping[str, str]) -> dict[str, str]:
    """Name -> what it is called: with its changed constants, and without a file's folder unless
    another has the same name. Raises UserError for an unknown name."""
    called: dict[str, str] = {}
    for name in names:
        label = labels.get(name) or choose(name, {}).name
        called[name] = name if label in called.values() else label
    return called


def _command(
    subject: str, item: Item, quick: bool, overrides: Sequence[str], until_settled: bool
) -> str:
    """The command that repeats an item."""
    words = ["fullpipe", "scorecard", subject, "--only", item.id]
    words += [word for change in overrides for word in ("--set", change)]
    words += ["--quick"] if quick else []
    return shlex.join([*words, "--until-settled"] if until_settled else words)


def _item(
    item: Item,
    called: Mapping[str, str],
    cells: dict[tuple[str, str], list[Cell]],
    rows: Rows,
    why: str,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": item.id,
        "source": item.source,
        "level": item.level,
        "title": item.title,
        "shows": item.shows,
        "not_run": why,
        "measures": [],
    }
    if why:
        return document
    labels = cell_labels(cells[item.id, next(iter(called))])
    by_cell = [
        (
            ", ".join(filter(None, (label, text))),
            [rows.runs[key]["unsettled"] or "" for key in cell.keys if key in rows.runs],
        )
        for name, label in called.items()
        for cell, text in zip(cells[item.id, name], labels, strict=True)
    ]
    settled = of_cells(by_cell)
    document["settling"] = settled.text()
    document["unsettled"] = list(settled.unsettled)
    document["cells"] = labels
    alone = cells.get((item.id, ALONE))
    for measure in item.measure:
        values = {
            label: values_of(item, measure, cells[item.id, name], alone, rows)
            for name, label in called.items()
        }
        document["measures"].append(_measure(measure, values))
    return document


def _measure(measure: Measure, values: dict[str, Values]) -> dict[str, Any]:
    return {
        "id": measure.id,
        "title": measure.title,
        "unit": measure.unit,
        "better": _better(measure),
        "harm": measure.harm,
        "over": measure.over,
        "least": measure.least,
        "target": measure.target,
        "subjects": {
            label: summary(measure, subject_values) for label, subject_values in values.items()
        },
    }


def _better(measure: Measure) -> str:
    return "less" if measure.harm else measure.better


def summary(measure: Measure, values: Values) -> dict[str, Any]:
    """One number of many: the mean over cells, with Student's 95 % interval over seeds, or the
    worst; and the cell and the seed (from 0) of the worst. `values`: all, cell by cell."""
    table = np.array(values, dtype=np.float64)
    more = _better(measure) == "more"
    filled = np.where(np.isnan(table), np.inf if more else -np.inf, table)
    at = np.unravel_index(int(filled.argmin() if more else filled.argmax()), table.shape)
    worst = float(table[at])
    low = high = math.nan
    if measure.over == "worst":
        value = worst
    elif measure.over == "p5":
        value = float(np.nanquantile(table, 0.05 if more else 0.95))
    else:
        value, low, high = _mean(table)
    return {
        "value": _plain(value),
        "low": _plain(low),
        "high": _plain(high),
        "worst": _plain(worst),
        "worst_cell": int(at[0]),
        "worst_seed": int(at[1]),
        "values": [[_plain(float(value)) for value in row] for row in table],
    }


def _mean(table: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float, float]:
    """Mean of cells and seeds, and Student's interval over the seeds' means."""
    if np.isnan(table).all():
        return math.nan, math.nan, math.nan
    if np.isinf(table).any():
        return math.inf, math.nan, math.nan
    seeds = np.nanmean(table[:, ~np.isnan(table).all(axis=0)], axis=0)
    mean = float(np.nanmean(table))
    if seeds.size < 2:
        return mean, math.nan, math.nan
    half = float(stats.t.ppf(0.975, seeds.size - 1) * seeds.std(ddof=1) / math.sqrt(seeds.size))
    return mean, mean - half, mean + half


def _plain(value: float) -> float | str | None:
    """The JSON value: `never` for infinity."""
    if math.isnan(value):
        return None
    return float(f"{value:.6g}") if math.isfinite(value) else "never"
