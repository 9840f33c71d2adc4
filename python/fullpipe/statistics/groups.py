"""The numbers that tests compare; each is the metric of a run, or a sample within a run.

The unit of repetition is the run. Samples of one run follow one another and are not independent;
treating them as if they were (pseudo-replication: Hurlbert, Ecological Monographs 54(2), 1984) is
possible only through its own function, and every result says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fullpipe.base.errors import UserError

Floats = npt.NDArray[np.float64]


class StatisticsError(UserError):
    """Too few numbers, or numbers that are not finite."""


@dataclass(frozen=True)
class Groups:
    """Named groups of numbers. `runs` holds, for each group, an array a run in the order of the
    runs; with unit "run" every array has one element."""

    names: tuple[str, ...]
    runs: tuple[tuple[Floats, ...], ...]
    unit: Literal["run", "sample"]

    @property
    def values(self) -> tuple[Floats, ...]:
        """All numbers of each group."""
        return tuple(np.concatenate(group) for group in self.runs)

    @property
    def pseudo_replicated(self) -> bool:
        """True where samples of a run stand in for repetitions."""
        return self.unit == "sample"


def by_run(values: Mapping[str, Sequence[float]]) -> Groups:
    """Groups of which each number is one run's metric, in the order of the runs.

    Raises StatisticsError for fewer than two groups, fewer than two runs in a group, or a number
    that is not finite."""
    for name, numbers in values.items():
        if len(numbers) < 2:
            raise StatisticsError(
                f"group {name!r}: {len(numbers)} run; a test needs at least 2 runs in each group"
            )
    return _groups({name: [[x] for x in numbers] for name, numbers in values.items()}, "run")


def pseudo_replicates(samples: Mapping[str, Sequence[Iterable[float]]]) -> Groups:
    """Groups of which each number is a sample within a run, for each group a list of runs: what
    some papers did. Results are marked as pseudo-replicated.

    Raises StatisticsError as `by_run`, counting samples."""
    return _groups(samples, "sample")


def _groups(
    samples: Mapping[str, Sequence[Iterable[float]]], unit: Literal["run", "sample"]
) -> Groups:
    if len(samples) < 2:
        raise StatisticsError(f"{len(samples)} group; a comparison needs at least 2")
    arrays = tuple(
        tuple(np.asarray(list(run), dtype=np.float64) for run in runs) for runs in samples.values()
    )
    for name, runs in zip(samples, arrays, strict=True):
        if sum(run.size for run in runs) < 2:
            raise StatisticsError(f"group {name!r}: fewer than 2 numbers; a test needs 2 or more")
        if not all(np.isfinite(run).all() for run in runs):
            raise StatisticsError(f"group {name!r}: holds a number that is not finite")
    return Groups(tuple(samples), arrays, unit)
