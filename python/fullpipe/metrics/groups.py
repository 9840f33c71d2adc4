"""Which flows belong together: those of one `[[flow]]` entry.

What a group is called comes from the names of its flows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.metrics.view import View


@dataclass(frozen=True)
class FlowGroup:
    """Flows that one entry of the scenario describes."""

    name: str
    members: tuple[int, ...]


def flow_groups(view: View) -> list[FlowGroup]:
    """The flows by the `[[flow]]` entries of the recorded scenario, in order; each flow by itself
    where the scenario is not recorded or tells another number of flows."""
    names = [str(name) for name in view.flows["flow"]]
    counts = _counts(view.recording.document)
    if sum(counts) != len(names):
        counts = [1] * len(names)
    groups, first = [], 0
    for count in counts:
        members = tuple(range(first, first + count))
        groups.append(FlowGroup(_name([names[flow] for flow in members]), members))
        first += count
    return groups


def _counts(document: Mapping[str, Any]) -> list[int]:
    entries = document.get("flow")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return []
    counts = [entry.get("count", 1) for entry in entries]
    return counts if all(type(count) is int and count > 0 for count in counts) else []


def _name(names: Sequence[str]) -> str:
    """`web.1` for one, `web.1-40` for more."""
    if len(names) == 1:
        return names[0]
    return f"{names[0]}-{names[-1].rpartition('.')[2]}"
