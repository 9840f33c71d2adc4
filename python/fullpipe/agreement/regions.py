"""The map of docs/evidence/map.md as data: regions of scenarios, each with its limits, the number
of its cells, and how far apart the means of simulator and kernel were in them.

`map.json` is written by benches/bench_map.py. Must know no scenario and no engine.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

Metric = Literal["share", "queue_rttmin", "utilisation", "loss", "retransmissions"]
Range = tuple[float, float]


@dataclass(frozen=True)
class Facts:
    """What of a scenario decides its region. `buffer_bdp`: of a FIFO, else None; `rtts_ms`: of its
    flows; `algorithms`: those that a variant is made of."""

    qdisc: str
    buffer_bdp: float | None
    rate_mbps: float
    rtts_ms: tuple[float, ...]
    loss: float
    jitter_ms: float
    flows: int
    algorithms: frozenset[str]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(_Strict):
    """What the cells of a region span. `buffer_bdp` is about FIFOs."""

    qdiscs: tuple[str, ...]
    buffer_bdp: Range | None = None
    rate_mbps: Range
    rtt_ms: Range
    loss: Range
    jitter_ms: Range
    flows: tuple[int, int]
    algorithms: tuple[str, ...]

    def lacks(self, facts: Facts) -> list[str]:
        """Why the facts are outside, one reason for each limit; empty if they are inside."""
        if facts.qdisc not in self.qdiscs:
            return [f"qdisc {facts.qdisc}"]
        ranges = [
            ("a rate", [facts.rate_mbps], self.rate_mbps, "Mbit/s"),
            ("an RTT", facts.rtts_ms, self.rtt_ms, "ms"),
            ("random loss", [facts.loss], self.loss, ""),
            ("jitter", [facts.jitter_ms], self.jitter_ms, "ms"),
            ("a number of flows", [facts.flows], self.flows, ""),
        ]
        if self.buffer_bdp is not None and facts.buffer_bdp is not None:
            ranges.append(("a buffer", [facts.buffer_bdp], self.buffer_bdp, "BDP"))
        regions = [
            f"{name} {f'other than {low:g}' if low == high else f'outside {low:g} to {high:g}'} "
            f"{unit}".rstrip()
            for name, values, (low, high), unit in ranges
            if not all(low <= value <= high for value in values)
        ]
        unknown = sorted(facts.algorithms - {*self.algorithms})
        return regions + [f"algorithm {name}" for name in unknown]


class Difference(_Strict):
    """Absolute differences of a metric's means, simulator less kernel, over the cells of a region,
    chance included: their mean, and what nine in ten cells are below (None: not known)."""

    mean: float
    nine_in_ten: float | None


class Region(_Strict):
    """A part of the map. `source`: the page that says how its cells were measured; `told_apart`:
    cells in which something differs by more than chance; `differences` lacks metrics that were not
    measured."""

    name: str
    source: str
    limits: Limits
    cells: int
    told_apart: int
    differences: dict[Metric, Difference]


class Map(_Strict):
    """All regions. A scenario belongs to the first that holds it."""

    kernel: str
    regions: tuple[Region, ...]


@functools.cache
def the_map() -> Map:
    """The map that this release was measured by."""
    text = files("fullpipe.agreement").joinpath("map.json").read_text(encoding="utf-8")
    return Map.model_validate_json(text)
