"""Writes the cells of docs/evidence/open_questions.md from the runs of experiments/questions.

    fullpipe experiment run --all --catalogue experiments/questions
    python scripts/questions.py

docs/evidence/cells/question_NAME.csv has a row for each cell of an entry: means over runs, and half
of Student's 95 % intervals. The entries' figures go to docs/images/questions. Must run nothing
itself.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from scipy import stats

from fullpipe.experiments.catalogue import load_catalogue
from fullpipe.experiments.entry import Entry
from fullpipe.experiments.figures import figures
from fullpipe.experiments.results import Results, collect
from fullpipe.experiments.run_store import Store, default_store

ROOT = Path(__file__).parent.parent
CATALOGUE = ROOT / "experiments" / "questions"
CELLS = ROOT / "docs" / "evidence" / "cells"
FIGURES = ROOT / "docs" / "images" / "questions"
#: Summed up in the page: 80 rows of drawn paths.
WITHOUT_CELLS = ("ack_phase",)


def main() -> int:
    """Writes all files. Raises SystemExit where runs are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, help="default: the user's")
    given = parser.parse_args()
    store = Store(given.store or default_store())
    entries = {entry.id: entry for entry in load_catalogue(CATALOGUE)}
    results = {name: _collected(entry, store) for name, entry in entries.items()}
    FIGURES.mkdir(exist_ok=True)
    for name, found in results.items():
        for figure in figures(found)[:1]:
            (FIGURES / f"{name}.svg").write_text(figure.svg, encoding="utf-8")
        if name not in WITHOUT_CELLS:
            _write_cells(found, CELLS / f"question_{name}.csv")
    return 0


def _collected(entry: Entry, store: Store) -> Results:
    results = collect(entry, store, "default", None, None, [])
    if not all(results.runs):
        raise SystemExit(f"{entry.id}: fullpipe experiment run --all --catalogue {CATALOGUE}")
    return results


def _write_cells(results: Results, file: Path) -> None:
    entry = results.entry
    axes = _shown_axes(entry, results)
    values = {name: results.values(name) for name in entry.metric}
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(
            [*axes, *(f"{name}{end}" for name in entry.metric for end in ("", "_half"))]
        )
        for place, point in enumerate(results.points):
            cells = [str(point.axes[axis]) for axis in axes]
            for name in entry.metric:
                cells += interval(np.asarray(values[name][place]))
            writer.writerow(cells)


def _shown_axes(entry: Entry, results: Results) -> list[str]:
    """Axes with more than one value."""
    return [axis for axis in entry.axes if len({str(p.axes[axis]) for p in results.points}) > 1]


def interval(values: np.ndarray) -> tuple[str, str]:
    """Mean and half the width of its 95 % interval, in digits that the interval supports."""
    if not np.isfinite(values).all():
        return "", ""
    mean, spread = values.mean(), values.std(ddof=1) if len(values) > 1 else 0.0
    half = float(stats.t.ppf(0.975, len(values) - 1)) * spread / len(values) ** 0.5
    if half == 0:
        return f"{mean:.3g}", "0"
    digits = max(0, min(5, 1 - int(np.floor(np.log10(half)))))
    return f"{mean:.{digits}f}", f"{half:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
