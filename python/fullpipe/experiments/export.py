"""The cells of entries as a table for the terminal, their runs as CSV or Parquet, and their
verdicts as rows.

This module must not judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from fullpipe.base.errors import UserError
from fullpipe.experiments.claims_page import kind
from fullpipe.experiments.results import Results
from fullpipe.experiments.verdicts import EntryVerdicts


def run_rows(results: Results) -> list[dict[str, Any]]:
    """One row for each run: experiment, engine, axes, seed, metrics, what had not settled."""
    rows = []
    for point, runs, texts in zip(results.points, results.runs, results.expressions, strict=True):
        for run in runs:
            measured = {name: run.metrics[text] for name, text in texts.items()}
            engine = {} if "engine" in point.axes else {"engine": results.engine}
            row = {
                "experiment": results.entry.id,
                **engine,
                **point.axes,
                "seed": run.seed,
                **measured,
                "unsettled": run.unsettled,
            }
            rows.append(row)
    return rows


def verdict_rows(judged: Sequence[EntryVerdicts]) -> list[dict[str, Any]]:
    """One row for each verdict; missing values are None or empty."""
    rows = []
    for judgement in judged:
        entry = judgement.results.entry
        for verdict in judgement.verdicts:
            claim = verdict.claim
            why = " ".join(word for word in (verdict.where, verdict.reason) if word)
            least, most = verdict.runs
            row = {
                "paper": entry.paper,
                "entry": entry.id,
                "claim": claim.id,
                "figure": entry.figure,
                "where": claim.where,
                "kind": kind(verdict),
                "held_out": claim.held_out,
                "text": claim.text,
                "published": verdict.published,
                "value": verdict.value,
                "low": verdict.low,
                "high": verdict.high,
                "unit": claim.unit,
                "least_runs": least,
                "most_runs": most,
                "size": judgement.results.size if most else "",
                "settling": verdict.settling,
                "verdict": verdict.status,
                "evidence": verdict.grade,
                "why": why,
                "right_if": claim.right_if,
                "reread": claim.reread,
            }
            rows.append(row)
    return rows


def cell_table(results: Results) -> tuple[list[str], list[list[str]]]:
    """Headings, and a row for each cell that was run: axes, number of runs, each metric's value
    and, of several runs, the least and the largest."""
    metrics = results.entry.metric
    values = {name: results.values(name) for name in metrics}
    estimates = {name: results.estimates(name) for name in metrics}
    units = [f"{name} ({metric.unit})" if metric.unit else name for name, metric in metrics.items()]
    rows = []
    for index, point in enumerate(results.points):
        if not results.runs[index]:
            continue
        row = [str(value) for value in point.axes.values()]
        row.append(str(len(results.runs[index])))
        row += [_shown(float(estimates[name][index]), values[name][index]) for name in metrics]
        rows.append(row)
    axes = list(results.points[0].axes) if results.points else []
    return [*axes, "runs", *units], rows


def write_runs(entries: Sequence[Results], path: Path) -> None:
    """Writes the runs of entries as CSV or Parquet, by the file's suffix. Columns that an entry
    does not have are null.

    Raises UserError if nothing was run or the file cannot be written."""
    rows = [row for results in entries for row in run_rows(results)]
    if not rows:
        raise UserError(f"{path}: nothing to write: no run of these is in the store")
    columns: dict[str, list[Any]] = {name: [] for row in rows for name in row}
    for row in rows:
        for name, column in columns.items():
            column.append(row.get(name))
    table = pa.table({name: _column(values) for name, values in columns.items()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            parquet.write_table(table, path)
        else:
            csv.write_csv(table, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def _column(values: list[Any]) -> Any:
    """An Arrow column. The values of an axis with numbers and texts all become texts."""
    kinds = {type(value) for value in values if value is not None}
    if str in kinds and len(kinds) > 1:
        return pa.array([None if value is None else str(value) for value in values])
    return pa.array([float(v) if float in kinds and v is not None else v for v in values])


def _shown(estimate: float, runs: Any) -> str:
    if not np.isfinite(estimate):
        return "-"
    if len(runs) > 1 and np.isfinite(runs).all() and runs.min() < runs.max():
        return f"{estimate:.4g} ({runs.min():.3g} to {runs.max():.3g})"
    return f"{estimate:.4g}"
