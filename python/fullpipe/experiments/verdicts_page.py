"""The page of verdicts: one HTML file that opens offline.

Text of entries is escaped. This module must not judge: verdicts come from `verdicts`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from fullpipe import __version__
from fullpipe.base.templates import environment
from fullpipe.experiments.claims_page import (
    KINDS,
    counts,
    papers,
    rests,
    sentence_of,
    title,
    why,
)
from fullpipe.experiments.entry import Entry
from fullpipe.experiments.figures import figures
from fullpipe.experiments.results import RESAMPLES, Results
from fullpipe.experiments.verdict_chart import svg_chart
from fullpipe.experiments.verdicts import GRADES, STATUSES, EntryVerdicts, Status, commands

#: Longer tables of cells are cut, with a note.
MAX_CELLS_SHOWN = 400


def verdicts_page(judged: Sequence[EntryVerdicts], catalogue: Path | None = None) -> str:
    """The page's text. `catalogue`: the folder that its commands name, None for the shipped one."""
    templates = environment("fullpipe.experiments", "fullpipe.plots")
    templates.filters["prose"] = _prose
    templates.filters["why"] = why
    templates.filters["sentence"] = sentence_of
    templates.filters["chart"] = lambda verdict: Markup(svg_chart(verdict))
    return templates.get_template("verdicts_page.html").render(
        version=__version__,
        statuses=STATUSES,
        grades={**GRADES, "": ""},
        rests=_rests(judged),
        resamples=RESAMPLES,
        totals=counts(judged),
        papers=[_paper(judged, paper, catalogue) for paper in papers(judged)],
        contradicted=[
            (judgement.results.entry, verdict)
            for judgement in judged
            for verdict in judgement.verdicts
            if verdict.status in ("contradicted", "partly", "differs", "unexplained")
            and verdict.claim.about != "simulator"
        ],
    )


def _rests(judged: Sequence[EntryVerdicts]) -> list[tuple[str, list[tuple[Status, list[int]]]]]:
    """Kind of claims -> (status, number of claims for each grade of evidence)."""
    table = []
    for name, heading in KINDS.items():
        counted = rests(judged, name)
        rows = [(s, [counted.get((s, grade), 0) for grade in (*GRADES, "")]) for s in STATUSES]
        table.append((heading, [(status, row) for status, row in rows if any(row)]))
    return table


def _paper(judged: Sequence[EntryVerdicts], paper: str, catalogue: Path | None) -> dict[str, Any]:
    of_paper = [judgement for judgement in judged if judgement.results.entry.paper == paper]
    return {
        "paper": paper,
        "title": title(paper),
        "counts": counts(judged, paper),
        "entries": [_entry(judgement, catalogue) for judgement in of_paper],
    }


def _entry(judgement: EntryVerdicts, catalogue: Path | None) -> dict[str, Any]:
    results = judgement.results
    entry = results.entry
    engines = [] if results.engine in entry.engines or entry.compare_engines else [results.engine]
    return {
        "entry": entry,
        "anchor": entry.id if not engines else f"{entry.id}-{results.engine}",
        "state": _state(entry, results),
        "command": commands(entry, results.size, catalogue, engines) if entry.runnable else "",
        "verdicts": judgement.verdicts,
        "problems": _problems(results),
        "figures": [(figure, _data_uri(figure.svg)) for figure in figures(results)],
        "cells": _cells(results),
        "numbers": list(entry.number.items()),
    }


def _problems(results: Results) -> list[str]:
    return sorted({text for runs in results.runs for run in runs for text in run.problems})


def _state(entry: Entry, results: Results) -> str:
    if entry.not_yet_runnable:
        return f"not yet runnable: {entry.not_yet_runnable}"
    if not entry.scenario:
        return "nothing to run: the paper's own numbers"
    low, high = results.repetitions
    if not high:
        return "not run yet"
    runs = str(low) if low == high else f"{low} to {high}"
    many = "s" if high > 1 else ""
    ran = len(results.points) - len(results.missing)
    of = f" of {len(results.points)}" if results.missing else ""
    return f"{ran}{of} cells, {runs} run{many} of each, engine {results.engine}"


def _cells(results: Results) -> dict[str, Any] | None:
    """The table of all cells: axes and, for each metric, its value, least and largest run."""
    if not any(results.runs):
        return None
    metrics = list(results.entry.metric.items())
    values = {name: results.values(name) for name, _ in metrics}
    estimates = {name: results.estimates(name) for name, _ in metrics}
    published = {
        metric: printed
        for (kind, metric, _), printed in results.beside.items()
        if kind == "published"
    }
    rows = []
    for index, point in enumerate(results.points[:MAX_CELLS_SHOWN]):
        if not results.runs[index]:
            continue
        shown = [
            _value(estimates[name][index], values[name][index], published.get(name, {}).get(index))
            for name, _ in metrics
        ]
        rows.append((list(point.axes.values()), shown))
    return {
        "axes": list(results.points[0].axes),
        "metrics": metrics,
        "rows": rows,
        "hidden": max(0, len(results.points) - MAX_CELLS_SHOWN),
    }


def _value(estimate: float, runs: Any, published: float | None) -> dict[str, str]:
    spread = ""
    if len(runs) > 1 and np.isfinite(runs).all() and runs.min() < runs.max():
        spread = f"{runs.min():.4g} to {runs.max():.4g}"
    return {
        "value": f"{estimate:.4g}" if np.isfinite(estimate) else "-",
        "spread": spread,
        "published": "" if published is None else f"{published:.4g}",
    }


def _prose(text: str) -> Markup:
    """Escaped text; `words` between backticks become code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
