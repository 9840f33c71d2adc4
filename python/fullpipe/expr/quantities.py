"""The numeric value of a quantity as scenarios write it: `40ms` is 0.04 s, `10mbit` is 10^7 bit/s.

Conditions and plots compute with these values. Sizes are in bits, so that a rate times a time is a
size. This module must not know files or cells.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from fullpipe.base import units

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")


@dataclass(frozen=True)
class Quantity:
    """A number in the base unit of its kind: s, bit/s, bit, BDP, packets; or plain.

    `unit` and `scale`: as it was written, and how much of the base unit that unit is."""

    value: float
    kind: str
    unit: str = ""
    scale: float = 1.0


#: Kind -> the unit of the columns that hold numbers of it.
COLUMN_UNITS = {
    "time": "s",
    "rate": "bps",
    "size": "bits",
    "bdp": "bdp",
    "packets": "packets",
    "plain": "fraction",
}

_KINDS: dict[str, tuple[str, float]] = {
    "ns": ("time", 1e-9),
    "us": ("time", 1e-6),
    "ms": ("time", 1e-3),
    "s": ("time", 1.0),
    "min": ("time", 60.0),
    "bit": ("rate", 1.0),
    "kbit": ("rate", 1e3),
    "mbit": ("rate", 1e6),
    "gbit": ("rate", 1e9),
    **{unit: ("size", 8.0 * size_bytes) for unit, size_bytes in units.SIZE_BYTES.items()},
    "bdp": ("bdp", 1.0),
    "pkt": ("packets", 1.0),
    "%": ("plain", 0.01),
}


def quantity(value: object) -> Quantity | None:
    """The quantity that a value of a scenario is; None for other text and truths."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return Quantity(float(value), "plain") if math.isfinite(value) else None
    if not isinstance(value, str):
        return None
    match = units._NUMBER.fullmatch(value)
    if match is None:
        return None
    if not match[2]:
        return Quantity(float(match[1]), "plain")
    unit = _KINDS.get(match[2].lower())
    if unit is None:
        return None
    kind, scale = unit
    return Quantity(float(match[1]) * scale, kind, match[2], scale)


def written(value: float, like: Quantity) -> str | float:
    """A base value in the unit of another quantity, to twelve digits: what a scenario takes."""
    if like.kind == "plain" and not like.unit:
        return float(f"{value:.12g}")
    return f"{_plain(value / like.scale)}{like.unit}"


def _plain(value: float) -> str:
    """Digits without an exponent, which units do not read."""
    text = f"{value:.12g}"
    return text if _NUMBER.fullmatch(text) else f"{value:.15f}".rstrip("0").rstrip(".")
