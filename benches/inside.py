"""Whether one draw lies inside the range of repeated runs: each figure by itself, and all together.

It must never know what a figure means.

For itself: within the central 95 % that a further run would have if runs were normal. Together: the
distance of a draw is its greatest deviation over all figures, in standard deviations of the *other*
draws about their mean; every run is measured like the trace, as one draw among the n + 1, and the
trace is outside if so few lie as far out as it does that their part is at most 5 % (a permutation
test: exact for any distribution of the runs, whatever figures depend on each other). With 24 runs
that is if it lies farthest of all, which happens by chance once in 25 times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

CENTRAL = 0.95
#: Below so few runs even the farthest of all is no rarity: 1 / (n + 1) > 5 %.
LEAST_RUNS = 19
#: What equal numbers may differ by after arithmetic.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Place:
    """Where a draw lies among runs."""

    #: figure -> its deviation from the runs' mean, in their standard deviations.
    deviations: dict[str, float]
    #: figure -> the most that 95 % of further runs would deviate, in the same unit.
    bound: float
    #: Part of the n + 1 draws that lie at least as far out in any figure.
    together: float

    @property
    def outside(self) -> list[str]:
        """Figures that are outside by themselves."""
        return [name for name, value in self.deviations.items() if abs(value) > self.bound]

    @property
    def is_inside(self) -> bool:
        """All figures together."""
        return self.together > 1 - CENTRAL


def place(draw: Mapping[str, float], runs: Sequence[Mapping[str, float]]) -> Place:
    """Where `draw` lies; both have the same figures. ValueError below LEAST_RUNS runs."""
    if len(runs) < LEAST_RUNS:
        raise ValueError(f"{len(runs)} runs: at least {LEAST_RUNS} are needed")
    names = list(draw)
    values = np.array([[each[name] for name in names] for each in [draw, *runs]])
    distances = [
        np.abs(_deviations(row, np.delete(values, index, axis=0))).max()
        for index, row in enumerate(values)
    ]
    count = len(runs)
    return Place(
        dict(zip(names, map(float, _deviations(values[0], values[1:])), strict=True)),
        float(t.ppf((1 + CENTRAL) / 2, count - 1)) * math.sqrt(1 + 1 / count),
        float(np.mean(np.array(distances) >= distances[0])),
    )


def _deviations(row: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Of a draw from the others' means, in their standard deviations; where they are all equal,
    nothing or without bound."""
    off, spread = row - others.mean(axis=0), others.std(axis=0, ddof=1)
    off, spread = (np.where(np.abs(each) < ROUNDING, 0.0, each) for each in (off, spread))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(off == 0, 0.0, off / spread)
