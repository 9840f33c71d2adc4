"""Observed shares of BBR flows against one loss-based flow, read from CSV.

Columns: figure, bbr_version (v1, v2, v3), loss_cca, capacity_mbps, rtt_ms, n_bbr, buffer_bdp,
link_share (goodput of all BBR flows over capacity); further columns are ignored.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fullpipe.base.errors import UserError
from fullpipe.base.supplied import read_regular
from fullpipe.models.domain import Contest

MAX_FILE_BYTES = 2**24
MAX_POINTS = 10_000
VERSIONS = {"v1": "bbr1", "v2": "bbr2", "v3": "bbr3"}
COLUMNS = (
    "figure",
    "bbr_version",
    "loss_cca",
    "capacity_mbps",
    "rtt_ms",
    "n_bbr",
    "buffer_bdp",
    "link_share",
)


@dataclass(frozen=True)
class Observation:
    """One measured point."""

    contest: Contest
    share: float


@dataclass(frozen=True)
class Panel:
    """The points of one figure: one BBR version, one path."""

    figure: str
    points: tuple[Observation, ...]

    @property
    def version(self) -> str:
        """bbr1, bbr2 or bbr3."""
        return self.points[0].contest.cc


def read_observed(path: Path) -> list[Panel]:
    """The panels in a file, in its order.

    Raises UserError naming file, line and column of what cannot be read."""
    try:
        text = read_regular(path, MAX_FILE_BYTES).decode("utf-8-sig")
        lines = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        panels = _panels(list(_rows(path, lines)))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a CSV file: {error}") from None
    if not panels:
        raise UserError(f"{path}: no observations; expected columns {', '.join(COLUMNS)}")
    return panels


def _rows(path: Path, reader: csv.DictReader[str]) -> Iterator[tuple[str, Observation]]:
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
    if missing:
        raise UserError(f"{path}: column {missing[0]} is missing; needed: {', '.join(COLUMNS)}")
    for count, row in enumerate(reader):
        where = f"{path}: line {reader.line_num}"
        if count >= MAX_POINTS:
            raise UserError(f"{where}: more than {MAX_POINTS} points")
        yield _row(where, row)


def _row(where: str, row: dict[str, str]) -> tuple[str, Observation]:
    def number(column: str) -> float:
        try:
            value = float(row[column])
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise UserError(f"{where}: {column}: {row[column]!r} is not a number")
        return value

    version = VERSIONS.get(row["bbr_version"])
    if version is None:
        raise UserError(
            f"{where}: bbr_version: {row['bbr_version']!r} is not one of {', '.join(VERSIONS)}"
        )
    share, flows = number("link_share"), number("n_bbr")
    if not 0 <= share <= 1:
        raise UserError(f"{where}: link_share: {share:g} is not between 0 and 1")
    if flows != int(flows):
        raise UserError(f"{where}: n_bbr: {flows:g} is not a number of flows")
    try:
        contest = Contest(
            cc=version,
            flows=int(flows),
            against=row["loss_cca"],
            rate_bps=number("capacity_mbps") * 1e6,
            rtt_s=number("rtt_ms") / 1000,
            buffer_bdp=number("buffer_bdp"),
        )
    except UserError as error:
        raise UserError(error.args[0] if where in str(error) else f"{where}: {error}") from None
    return row["figure"] or "", Observation(contest, share)


def _panels(rows: list[tuple[str, Observation]]) -> list[Panel]:
    grouped: dict[tuple[str, str], list[Observation]] = {}
    for figure, point in rows:
        grouped.setdefault((figure, point.contest.cc), []).append(point)
    return [Panel(figure, tuple(points)) for (figure, _), points in grouped.items()]
