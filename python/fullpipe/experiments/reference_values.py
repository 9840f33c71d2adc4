"""Values to compare runs with: printed in the paper, or measured by others and read from CSV files.

The files are untrusted input: their size and every value are checked.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.base.supplied import read_regular
from fullpipe.experiments.entry import Entry, Observed, Size
from fullpipe.experiments.grid import label_of
from fullpipe.experiments.values import Point
from fullpipe.sweep.templates import fill

#: Points that come with fullpipe, taken where no file is given: means of the three trials of
#: fatihsarpkaya/bbr-shared-bottleneck at db56422.
SHIPPED = tuple(sorted((Path(__file__).parent / "observed").glob("*.csv")))
MAX_FILE_BYTES = 2**24
MAX_ROWS = 100_000


def points_of(entry: Entry, size: Size, engines: list[str]) -> list[Point]:
    """The points that claims are about: the cells, times engines if these are compared."""
    cells = entry.cells(size)
    if not entry.compare_engines:
        return [Point(cell.axes, cell.fields) for cell in cells]
    return [
        Point({**cell.axes, "engine": name}, {**cell.fields, "engine": name})
        for name in engines
        for cell in cells
    ]


def published_values(entry: Entry, points: list[Point]) -> dict[str, dict[int, float]]:
    """Metric -> point -> the value that the paper prints."""
    values: dict[str, dict[int, float]] = {}
    for published in entry.published:
        along = axis_values(entry, published.along) if published.along else [None]
        for expected, value in zip(along, published.values, strict=True):
            at = dict(published.at)
            if published.along is not None:
                at[published.along] = expected
            for index, point in enumerate(points):
                if all(point.axes.get(name) == want for name, want in at.items()):
                    values.setdefault(published.metric, {})[index] = value
    return values


def axis_values(entry: Entry, axis: str) -> list[Any]:
    """All labels of an axis, in the order of the grids."""
    distinct: list[Any] = []
    labels = (
        label_of(value)
        for axes in [*entry.grids(entry.full), *entry.grids()]
        for each in axes
        if each.name == axis
        for value in each.values
    )
    for label in labels:
        if label not in distinct:
            distinct.append(label)
    return distinct


def observed_values(
    entry: Entry, points: list[Point], files: Sequence[Path]
) -> dict[tuple[str, str, str], dict[int, float]]:
    """(observed, metric, "") -> point -> the value of its row; points without a row are left out.
    Without files those are read that come with fullpipe.

    Raises UserError naming file, line and column of a bad value, or if two rows match one
    point."""
    by_key: dict[tuple[str, str, str], dict[int, float]] = {}
    for file in (files or SHIPPED) if entry.observed else files:
        rows = _rows(file)
        for observed in entry.observed:
            values = _values(entry, observed, points, file, rows)
            if values:
                by_key.setdefault(("observed", observed.metric, ""), {}).update(values)
    return by_key


def _values(
    entry: Entry,
    observed: Observed,
    points: list[Point],
    file: Path,
    rows: list[tuple[int, dict[str, str]]],
) -> dict[int, float]:
    if not rows or not {observed.column, *observed.match} <= set(rows[0][1]):
        return {}  # a file for another entry
    values: dict[int, float] = {}
    for index, point in enumerate(points):
        wanted = fill(observed.match, point.fields, f"{entry.source}: observed.match")
        matching = [(line, row) for line, row in rows if _matches(row, wanted)]
        if len(matching) > 1:
            lines = ", ".join(str(line) for line, _ in matching[:3])
            raise UserError(f"{file}: lines {lines} all match {entry.id}, {point.label}")
        for line, row in matching:
            values[index] = _number(file, line, observed.column, row)
    return values


def _rows(file: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        text = read_regular(file, MAX_FILE_BYTES).decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        rows: list[tuple[int, dict[str, str]]] = []
        for row in reader:
            if len(rows) >= MAX_ROWS:
                raise UserError(f"{file}: more than {MAX_ROWS} rows")
            rows.append((reader.line_num, {k: v or "" for k, v in row.items() if k}))
        return rows
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{file}: not a CSV file: {error}") from None


def _matches(row: Mapping[str, str], wanted: Mapping[str, Any]) -> bool:
    for column, value in wanted.items():
        text = row[column]
        if isinstance(value, str):
            if text != value:
                return False
            continue
        try:
            if not math.isclose(float(text), float(value), rel_tol=1e-9):
                return False
        except ValueError:
            return False
    return True


def _number(file: Path, line: int, column: str, row: Mapping[str, str]) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{file}: line {line}: {column}: {row[column]!r} is not a number")
    return value
