"""Measured points of others, read from CSV files that the user names, laid beside the cells.

The files come from elsewhere: they are bounded and checked before they are believed.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.papers.entry import Entry, Observed
from fullpipe.papers.values import Point
from fullpipe.sweep.templates import fill

MAX_FILE_BYTES = 2**24
MAX_ROWS = 100_000


def observed_cells(
    entry: Entry, points: list[Point], files: Sequence[Path]
) -> dict[tuple[str, str, str], dict[int, float]]:
    """(observed, metric, "") -> point -> the value of the row that belongs to it; points without a
    row are left out.

    Raises UserError naming file, line and column of what cannot be read, or where two rows belong
    to one point."""
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    for file in files:
        rows = _rows(file)
        for observed in entry.observed:
            values = _values(entry, observed, points, file, rows)
            if values:
                found.setdefault(("observed", observed.metric, ""), {}).update(values)
    return found


def _values(
    entry: Entry,
    observed: Observed,
    points: list[Point],
    file: Path,
    rows: list[tuple[int, dict[str, str]]],
) -> dict[int, float]:
    if not rows or not {observed.column, *observed.match} <= set(rows[0][1]):
        return {}  # a file of another experiment: nothing of it belongs here
    found: dict[int, float] = {}
    for index, point in enumerate(points):
        wanted = fill(observed.match, point.fields, f"{entry.source}: observed.match")
        mine = [(line, row) for line, row in rows if _matches(row, wanted)]
        if len(mine) > 1:
            lines = ", ".join(str(line) for line, _ in mine[:3])
            raise UserError(f"{file}: lines {lines} all belong to {entry.id}, {point.label}")
        for line, row in mine:
            found[index] = _number(file, line, observed.column, row)
    return found


def _rows(file: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        if file.is_file() and file.stat().st_size > MAX_FILE_BYTES:
            raise UserError(f"{file}: larger than 16 MiB; that is no list of observed points")
        with file.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
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
