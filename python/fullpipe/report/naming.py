"""What tells groups of runs apart: their names, and a table of what differs.

A name says the keys that differ as `--set` writes them, or the folder. Recordings may come from
anywhere; this module must not know what their scenarios mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: More keys than this make no name.
MAX_KEYS = 3
#: Longer values than this are cut in names and tables.
MAX_VALUE = 40
#: More keys than this in the table are counted only.
MAX_ROWS = 12
#: Keys of a scenario that do not say what runs.
_UNSEEN = ("name", "seed")
_OF_FLOWS = re.compile(r"flow\.\d+\.(.+)")
_OF_CC = re.compile(r"flow\.(\d+\.)?cc")


@dataclass(frozen=True)
class Identity:
    """What is known of a group: the scenario's name, the folders of its runs, its scenario as
    written, and settings besides (engine, kernel, options)."""

    name: str
    folders: Sequence[Path]
    document: Mapping[str, Any]
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Differences:
    """`rows`: (key, its value in each group; empty where it has none). `left_out`: how many
    further keys differ. `folders`: where each group's runs are."""

    rows: list[tuple[str, list[str]]]
    left_out: int
    folders: list[str]


def labels_of(groups: Sequence[Identity]) -> list[str]:
    """A name for each group: the scenario's where it is the only one of that name, else what
    differs between those that share it."""
    names = [group.name for group in groups]
    labels = list(names)
    for name in {name for name in names if names.count(name) > 1}:
        alike = [index for index, candidate in enumerate(names) if candidate == name]
        prefix = "" if len(alike) == len(groups) else f"{name}, "
        for index, label in zip(alike, _telling([groups[i] for i in alike]), strict=True):
            labels[index] = prefix + label
    return [
        label if labels.count(label) == 1 else f"{label} ({labels[: index + 1].count(label)})"
        for index, label in enumerate(labels)
    ]


def differences(groups: Sequence[Identity]) -> Differences:
    """Every key whose value is not the same in all groups."""
    rows = _differing(groups)
    return Differences(rows[:MAX_ROWS], max(0, len(rows) - MAX_ROWS), _folders(groups))


def _telling(groups: Sequence[Identity]) -> list[str]:
    rows = _differing(groups)
    if 0 < len(rows) <= MAX_KEYS:
        labels = [_label(rows, index) for index in range(len(groups))]
        if len(set(labels)) == len(labels):
            return labels
    return _folders(groups)


def _label(rows: Sequence[tuple[str, list[str]]], index: int) -> str:
    """Such as `cubic, path.rate=20mbit`; the name of a congestion control needs no key."""
    parts = [
        values[index] if _OF_CC.fullmatch(key) else f"{key}={values[index]}"
        for key, values in rows
        if values[index]
    ]
    return ", ".join(parts) or f"without {rows[0][0]}"


def _differing(groups: Sequence[Identity]) -> list[tuple[str, list[str]]]:
    flat = [{**_flat(group.document), **group.settings} for group in groups]
    keys = dict.fromkeys(key for values in flat for key in values)
    rows = [(key, [_cut(values.get(key, "")) for values in flat]) for key in keys]
    return _merged([row for row in rows if len(set(row[1])) > 1])


def _merged(rows: Sequence[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """One row for a key that differs alike in several flows: `--cc` sets it in all."""
    merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for key, values in rows:
        of_flow = _OF_FLOWS.fullmatch(key)
        name = f"flow.{of_flow[1]}" if of_flow else key
        merged.setdefault((name, tuple(values)), []).append(key)
    names = [name for name, _ in merged]
    return [
        (name if len(keys) > 1 and names.count(name) == 1 else ", ".join(keys), list(values))
        for (name, values), keys in merged.items()
    ]


def _flat(value: Any, key: str = "") -> dict[str, str]:
    """A document as `a.0.b` -> text, as `--set` takes them."""
    if isinstance(value, Mapping):
        parts = [(str(name), inner) for name, inner in value.items()]
    elif isinstance(value, list):
        parts = [(str(index), inner) for index, inner in enumerate(value)]
    else:
        return {key: str(value).lower() if isinstance(value, bool) else str(value)}
    flat: dict[str, str] = {}
    for name, inner in parts:
        if key or name not in _UNSEEN:
            flat |= _flat(inner, f"{key}.{name}" if key else name)
    return flat


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 3] + "..."


def _folders(groups: Sequence[Identity]) -> list[str]:
    """The part of each group's folder in which the groups differ."""
    paths = [_common([folder.absolute() for folder in group.folders]) for group in groups]
    if any(inner.is_relative_to(outer) for outer in paths for inner in paths if inner is not outer):
        paths = [group.folders[0].absolute() for group in groups]
    parts = [list(path.parts) for path in paths]
    while min(map(len, parts)) > 1 and len({part[0] for part in parts}) == 1:
        parts = [part[1:] for part in parts]
    while min(map(len, parts)) > 1 and len({part[-1] for part in parts}) == 1:
        parts = [part[:-1] for part in parts]
    return [str(Path(*part)) for part in parts]


def _common(folders: Sequence[Path]) -> Path:
    first, *others = folders
    for folder in others:
        while not folder.is_relative_to(first):
            first = first.parent
    return first
