"""Converts format versions 1 to 3 to 4 as Flent does (flent/resultset.py of 2.1.1). Values are not
checked here; document.py checks the result."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fullpipe.flent.container import MAX_CONTAINERS

FORMAT_VERSION = 4


def to_current(document: dict[str, Any]) -> int:
    """Converts in place and returns the version that the file had (1 where it says none).

    Raises ValueError for a later version or none at all; KeyError, TypeError and others where the
    structure is not even an old one's."""
    version = document.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, (int, float)) or version < 1:
        raise ValueError(f"version: must be a number from 1 to {FORMAT_VERSION}")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"version: {version:g} is later than {FORMAT_VERSION}, the last that is known"
        )
    if version < FORMAT_VERSION:
        synthesised = version < 2 and _move_raw_values(document)
        if not synthesised:
            _apply_units(document["raw_values"])
        _mean_units(document["metadata"].get("SERIES_META") or {})
    return int(version)


def _move_raw_values(document: dict[str, Any]) -> bool:
    """Version 1 kept raw values in SERIES_META, or not at all: then the interpolated ones stand in
    for them, in the units of the results. True where they do."""
    metadata = document["metadata"]
    series = metadata.get("SERIES_META") or {}
    raw = {name: meta["RAW_VALUES"] for name, meta in series.items() if "RAW_VALUES" in meta}
    document["raw_values"] = raw
    if raw:
        return False
    text = str(metadata.get("T0") or metadata.get("TIME")).removesuffix("Z")
    t0 = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    if sum(len(values) for values in document["results"].values()) > MAX_CONTAINERS:
        raise ValueError(
            f"results: holds more than {MAX_CONTAINERS} values, the most that are read"
        )
    for name, values in document["results"].items():
        raw[name] = [
            {"t": t0 + x, "val": value}
            for x, value in zip(document["x_values"], values, strict=False)
        ]
    metadata["FAKE_RAW_VALUES"] = True
    return True


def _apply_units(raw_values: dict[str, list[dict[str, Any]]]) -> None:
    """Before version 4, raw values were as the tool printed them."""
    for name, values in raw_values.items():
        if "UDP" in name:
            for entry in values:  # netperf UDP_RR: transactions a second
                if "dur" in entry and entry.get("val"):
                    entry["val"] = 1000.0 / entry["val"]
        elif name == "HTTP latency":
            for entry in values:
                if entry.get("val") is not None:
                    entry["val"] *= 1000.0
        elif values and ("dropped" in values[0] or "ecn_mark" in values[0]):
            _to_intervals(values)


def _to_intervals(values: list[dict[str, Any]]) -> None:
    """Drops and marks since the qdisc was made become those since the entry before."""
    last: dict[str, float] = {}
    for entry in values:
        for key in ("dropped", "ecn_mark"):
            if key in entry:
                now = entry[key]
                entry[key] = now - last.get(key, now)
                last[key] = now


def _mean_units(series: dict[str, Any]) -> None:
    for meta in series.values():
        if meta.get("UNITS") == "bits/s" and meta.get("MEAN_VALUE") is not None:
            meta["MEAN_VALUE"] = meta["MEAN_VALUE"] / 1e6
            meta["UNITS"] = "Mbits/s"
