"""How far apart the means of two samples are, by permutation: an interval that assumes nothing but
that the values are exchangeable once the shift is taken away.

The interval is the test turned round: it holds the shifts that the test does not reject
(Garthwaite, Biometrics 52, 1996), so it leaves out 0 exactly where the test rejects equality at the
same level.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fullpipe.statistics.groups import Floats, StatisticsError

#: Up to so many divisions of all values into two samples are all looked at: those of 10 and 10
#: are 184,756. Of more, so many less one are drawn at random.
MAX_SPLITS = 200_000
_SEED = 1
#: Of more values than this the divisions are kept as bits and computed in blocks, which takes an
#: eighth of the memory and thrice the time.
_WIDE, _ROWS = 64, 20_000


@dataclass(frozen=True)
class Shift:
    """The difference of two means, second less first, in the samples' unit, its interval, and the
    two-sided `p` of no difference. Too few values for the level make the interval infinite."""

    difference: float
    low: float
    high: float
    p: float


def mean_shift(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, level: float = 0.05
) -> Shift:
    """The shift between two samples, with an interval of confidence 1 - `level`.

    Raises StatisticsError for an empty sample, and for values that are not finite."""
    values = np.concatenate([np.asarray(first, float), np.asarray(second, float)])
    if min(len(first), len(second)) < 1 or not np.isfinite(values).all():
        raise StatisticsError("shift of means: one finite value each, at least")
    splits = _splits(len(first), len(second))
    values = values - float(np.median(values))
    difference = float(values[len(first) :].mean() - values[: len(first)].mean())
    # A shift is rejected in one direction where few divisions are as far apart after it was taken
    # away. For one division that begins at one shift, so the limits are order statistics of those.
    apart = difference - splits.differences(values)
    apart[np.abs(apart) < 1e-12 * float(np.abs(values).max())] = 0.0
    limits = apart / splits.moved
    total = limits.size + 1
    rank = math.floor(level / 2 * total + 1e-9)
    low, high = -math.inf, math.inf
    if rank > 0:
        ordered = np.partition(limits, (rank - 1, limits.size - rank))
        low, high = float(ordered[rank - 1]), float(ordered[limits.size - rank])
    fewest = min(int((limits <= 0).sum()), int((limits >= 0).sum())) + 1
    return Shift(difference, low, high, min(1.0, 2 * fewest / total))


def least_p(first: int, second: int) -> float:
    """The smallest p that samples of these sizes can have."""
    return 2 / min(math.comb(first + second, first), MAX_SPLITS)


@dataclass(frozen=True)
class _Splits:
    """The divisions of all values into two samples, without the one that was seen. `chosen`: a row
    for each, 1 where a value is of the second sample. `moved`: by how much a shift of 1 moves
    its difference of means less than that of the one that was seen."""

    chosen: Floats | NDArray[np.bool_]
    moved: Floats
    first: int
    second: int

    def differences(self, values: Floats) -> Floats:
        """Each division's difference of means, second less first."""
        rows = len(self.chosen) if values.size <= _WIDE else _ROWS
        blocks = [self.chosen[row : row + rows] for row in range(0, len(self.chosen), rows)]
        sums = np.concatenate([block @ values for block in blocks])
        return np.asarray(sums * (1 / self.second + 1 / self.first) - values.sum() / self.first)


@lru_cache(maxsize=4)
def _splits(first: int, second: int) -> _Splits:
    size = first + second
    count = math.comb(size, second)
    if count <= MAX_SPLITS:
        chosen = np.zeros((count, size), dtype=bool)
        flat = itertools.chain.from_iterable(itertools.combinations(range(size), second))
        picks = np.fromiter(flat, dtype=np.intp, count=count * second).reshape(count, second)
        np.put_along_axis(chosen, picks, True, axis=1)
    else:
        observed = np.zeros(size, dtype=bool)
        observed[first:] = True
        rows = np.tile(observed, (MAX_SPLITS - 1, 1))
        chosen = np.random.default_rng(_SEED).permuted(rows, axis=1)
    left = second - chosen[:, first:].sum(axis=1)
    differs = left > 0
    chosen = chosen[differs]
    stored = chosen.astype(np.float64) if size <= _WIDE else chosen
    return _Splits(stored, left[differs] * (1 / first + 1 / second), first, second)
