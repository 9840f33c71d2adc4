"""Distributions of flow sizes: those that ship, those in files, and their means."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fullpipe.base import units
from fullpipe.base.errors import UserError
from fullpipe.base.packets import LINK_HEADER_BYTES, TCP_HEADERS_BYTES, mss_bytes
from fullpipe.base.supplied import read_regular

MAX_FILE_BYTES, MAX_ROWS = 2**24, 100_000
MAX_BYTES = 2**42

#: Sizes in bytes and the percentage of flows that are no larger, linear in between.
SHIPPED: dict[str, list[tuple[int, float]]] = {
    # Web search in a data centre: Alizadeh et al., DCTCP, SIGCOMM 2010, figure 4; the points are
    # those of WebSearch_distribution.txt, alibaba-edu/High-Precision-Congestion-Control, 9cf8b9e.
    "websearch": [
        (0, 0),
        (10_000, 15),
        (20_000, 20),
        (30_000, 30),
        (50_000, 40),
        (80_000, 53),
        (200_000, 60),
        (1_000_000, 70),
        (2_000_000, 80),
        (5_000_000, 90),
        (10_000_000, 97),
        (30_000_000, 100),
    ],
    # Data mining: Greenberg et al., VL2, SIGCOMM 2009, figure 2; the points are those of
    # VL2_CDF.txt, HKUST-SING/TrafficGenerator, 1c1bc65.
    "vl2": [
        (0, 0),
        (180, 10),
        (216, 20),
        (560, 30),
        (900, 40),
        (1_100, 50),
        (1_870, 60),
        (3_160, 70),
        (10_000, 80),
        (400_000, 90),
        (3_160_000, 95),
        (100_000_000, 98),
        (1_000_000_000, 100),
    ],
}
PARETO = "pareto"


def check_name(text: str) -> None:
    """Raises ValueError unless the text is a size, a shipped distribution or a file name."""
    if text in SHIPPED or text == PARETO or is_file(text):
        return
    try:
        units.parse_size(text)
    except units.UnitError:
        names = ", ".join([*SHIPPED, PARETO])
        raise ValueError(
            f"is no size such as 100KB, none of {names}, and no file name ending in .csv or .txt"
        ) from None


def is_file(text: str) -> bool:
    """Whether sizes are named by a file."""
    return Path(text).suffix in (".csv", ".txt")


def resolve(text: str, shape: float, least: int, largest: int) -> dict[str, Any]:
    """The sizes of a plan. `shape`, `least` and `largest` are of `pareto`.

    Raises UserError where a file cannot be read or is no distribution."""
    if text in SHIPPED:
        points = [[size, round(1e7 * percent)] for size, percent in SHIPPED[text]]
        return {"kind": "cdf", "points": points}
    if text == PARETO:
        return {
            "kind": "pareto",
            "shape_milli": round(1000 * shape),
            "min_bytes": least,
            "max_bytes": largest,
        }
    if is_file(text):
        return read(Path(text))
    return {"kind": "fixed", "bytes": units.parse_size(text)}


def read(path: Path) -> dict[str, Any]:
    """The sizes in a CSV file (or one with blanks in place of commas): one column of sizes in
    bytes, or two, sizes and the share of flows that are no larger, which ends at 1 or at 100
    (percent). A first line of names, and lines that begin with #, are skipped.

    Raises UserError naming file, line and what is allowed."""
    rows = list(_rows(path))
    if not rows:
        raise UserError(f"{path}: empty; it needs sizes in bytes, one a line")
    if any(len(row) != len(rows[0][1]) for _, row in rows) or len(rows[0][1]) not in (1, 2):
        raise UserError(f"{path}: must have one column (sizes) or two (sizes, shares) throughout")
    bytes_ = []
    for line, row in rows:
        if not (row[0] == int(row[0]) and 0 <= row[0] <= MAX_BYTES):
            raise UserError(f"{path}:{line}: size {row[0]:g}: must be whole, from 0 to {MAX_BYTES}")
        bytes_.append(int(row[0]))
    if len(rows[0][1]) == 1:
        if 0 in bytes_:
            line = rows[bytes_.index(0)][0]
            raise UserError(f"{path}:{line}: size 0: a flow sends at least 1 byte")
        return {"kind": "list", "bytes": bytes_}
    return {"kind": "cdf", "points": _points(path, rows, bytes_)}


def _points(path: Path, rows: list[tuple[int, list[float]]], sizes: list[int]) -> list[list[int]]:
    shares = [row[1] for _, row in rows]
    whole = 100.0 if shares[-1] > 1 else 1.0
    if abs(shares[-1] - whole) > 1e-9:
        raise UserError(
            f"{path}:{rows[-1][0]}: share {shares[-1]:g}: the last must be 1, or 100 in percent: "
            "a CDF reaches 1"
        )
    for position in range(1, len(rows)):
        for title, values in (("size", sizes), ("share", shares)):
            if values[position] < values[position - 1]:
                raise UserError(
                    f"{path}:{rows[position][0]}: {title} {values[position]:g}: must not be below "
                    "the line before it"
                )
    if shares[0] < 0:
        raise UserError(f"{path}:{rows[0][0]}: share {shares[0]:g}: must not be below 0")
    if sizes[-1] == 0:
        raise UserError(f"{path}:{rows[-1][0]}: size 0: some flows must send something")
    return [[size, round(1e9 * share / whole)] for size, share in zip(sizes, shares, strict=True)]


def _rows(path: Path) -> Iterable[tuple[int, list[float]]]:
    try:
        text = read_regular(path, MAX_FILE_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file; sizes are CSV in UTF-8") from None
    lines = text.splitlines()
    if len(lines) > MAX_ROWS:
        raise UserError(f"{path}: {len(lines)} lines; at most {MAX_ROWS}")
    for number, line in enumerate(lines, 1):
        stripped = line.split("#")[0].strip()
        if not stripped:
            continue
        cells = next(csv.reader([stripped])) if "," in stripped else stripped.split()
        try:
            values = [float(cell) for cell in cells]
        except ValueError:
            if number == 1:
                continue
            raise UserError(f"{path}:{number}: {stripped!r:.60}: not numbers") from None
        if not all(math.isfinite(value) for value in values):
            raise UserError(f"{path}:{number}: {stripped!r:.60}: not finite numbers")
        yield number, values


def mean_bytes(sizes: dict[str, Any]) -> float:
    """Mean of a plan's sizes, in bytes of payload."""
    return _mean_above(sizes, 1.0)


def mean_wire_bytes(sizes: dict[str, Any], mtu_bytes: int) -> float:
    """Mean of what a flow puts on the wire in bytes: payload, and the headers of its packets."""
    headers_bytes = LINK_HEADER_BYTES + TCP_HEADERS_BYTES
    return mean_bytes(sizes) + headers_bytes * _mean_above(sizes, mss_bytes(mtu_bytes))


def _mean_above(sizes: dict[str, Any], unit: float) -> float:
    """Mean of ceil(size / unit), by the sum of P(size > k unit); of the size itself for unit 1."""
    kind = sizes["kind"]
    if kind in ("fixed", "list"):
        values = np.atleast_1d(np.asarray(sizes["bytes"], np.float64))
        return float(np.ceil(np.maximum(values, 1) / unit).mean())
    if kind == "cdf":
        points = np.array(sizes["points"], np.float64)
        largest = points[-1, 0]
    else:
        points, largest = None, float(sizes["max_bytes"])
    if unit == 1.0 and points is not None:
        steps = np.diff(points[:, 1], prepend=0.0) / 1e9
        middles = (points[:, 0] + np.concatenate((points[:1, 0], points[:-1, 0]))) / 2
        return float(max(1.0, (steps * middles).sum()))
    if unit == 1.0:
        return _pareto_mean(sizes)
    at = unit * np.arange(math.ceil(largest / unit))
    if points is not None:
        # Where a size stands twice, np.interp takes the last share: P(S <= x).
        return float((1 - np.interp(at, points[:, 0], points[:, 1] / 1e9, left=0.0)).sum())
    shape, least = sizes["shape_milli"] / 1000, float(sizes["min_bytes"])
    cut = (least / largest) ** shape
    above = ((least / np.maximum(at, least)) ** shape - cut) / (1 - cut)
    return float(above.sum())


def _pareto_mean(sizes: dict[str, Any]) -> float:
    shape = sizes["shape_milli"] / 1000
    least, largest = float(sizes["min_bytes"]), float(sizes["max_bytes"])
    scale = shape * least**shape / (1 - (least / largest) ** shape)
    if abs(shape - 1) < 1e-9:
        return float(scale * math.log(largest / least))
    return float(scale * (largest ** (1 - shape) - least ** (1 - shape)) / (1 - shape))
