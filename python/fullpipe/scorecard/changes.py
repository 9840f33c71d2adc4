"""What changed between two subjects of scorecards: every measure tested, with a correction for
their number, so that of 100 comparisons of equal algorithms at most one tells any change.

The repetition is the seed: a measure gives one figure for each seed (the mean of its cells, or the
worst, as the measure says), and the two lots of figures are compared by permutation
(statistics/permutation.py), which needs no distribution. With few seeds Welch's test would: figures
of one cell may have two values only. Intervals hold for all measures at once (Bonferroni), so a
change is reported exactly where its printed interval leaves out 0. Must never run anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fullpipe.base.errors import UserError
from fullpipe.scorecard.beside_others import number
from fullpipe.scorecard.items import Item
from fullpipe.statistics.permutation import least_p, mean_shift

Floats = npt.NDArray[np.float64]
Verdict = Literal["worse", "better", "same"]

#: Probability that a comparison of two equal algorithms tells any change.
LEVEL = 0.01
#: A change below this share of the baseline's figure counts for nothing.
LEAST_SHARE = 0.01
#: A download that did not end counts as so many times the longest of both that did.
_NEVER = 2.0


@dataclass(frozen=True)
class Change:
    """One measure of two subjects.

    `before`, `now`: means over seeds, in `unit`. `worse_by`: the worsening as a share of `before`,
    negative where it got better, infinite where `before` is 0; from `worse_low` to `worse_high`,
    the interval that holds for all measures of the comparison together. `seeds`: how many each
    has. `cells_left_out`: those in which a run has no value."""

    item: str
    measure: str
    title: str
    unit: str
    verdict: Verdict
    before: float
    now: float
    worse_by: float
    worse_low: float
    worse_high: float
    seeds: tuple[int, int]
    cells_left_out: int = 0

    @property
    def id(self) -> str:
        """Its name in conditions: `rfc9743-5.1.3.utilisation`."""
        return f"{self.item}.{self.measure}"


@dataclass(frozen=True)
class Comparison:
    """All tested measures of two subjects, and those that could not be tested: id -> why."""

    baseline: str
    subject: str
    changes: tuple[Change, ...]
    untested: Mapping[str, str]

    def of(self, verdict: Verdict) -> list[Change]:
        """The changes with this verdict, the largest first."""
        changes = [change for change in self.changes if change.verdict == verdict]
        return sorted(changes, key=lambda change: -abs(change.worse_by))


@dataclass(frozen=True)
class _Pair:
    item: str
    measure: Mapping[str, Any]
    before: Floats  # one figure for each seed
    now: Floats
    left_out: int


def compare(
    before: Mapping[str, Any], now: Mapping[str, Any], baseline: str | None = None
) -> Comparison:
    """The subject of a scorecard's document beside a baseline: the subject of another document, or
    `baseline`, a subject of the same ones.

    Raises UserError if the documents were not made alike."""
    _check_alike(before, now)
    old, new = baseline or str(before["scorecard"]), str(now["scorecard"])
    measures = {
        (item["id"], measure["id"]): (item, measure)
        for item in before["items"]
        for measure in item["measures"]
    }
    pairs: list[_Pair] = []
    untested: dict[str, str] = {}
    for item in now["items"]:
        for measure in item["measures"]:
            if not measure["better"]:
                continue
            name = f"{item['id']}.{measure['id']}"
            earlier = measures.get((item["id"], measure["id"]))
            if earlier is None or earlier[0]["cells"] != item["cells"]:
                untested[name] = "the baseline has other cells"
                continue
            pair = _pair(
                item["id"],
                measure,
                earlier[1]["subjects"][old]["values"],
                measure["subjects"][new]["values"],
            )
            if isinstance(pair, str):
                untested[name] = pair
            else:
                pairs.append(pair)
    level = LEVEL / max(len(pairs), 1)
    shown = f"{old} (baseline)" if old == new else old
    return Comparison(shown, new, tuple(_tested(pair, level) for pair in pairs), untested)


def count_tests(items: Sequence[Item]) -> int:
    """How many measures a comparison of these items tests."""
    return sum(bool(m.better) for item in items if not item.needs for m in item.measure)


def check_seeds(tests: int, before: int, now: int) -> None:
    """Raises UserError where so few seeds can tell no change, however large."""
    if least_p(before, now) <= LEVEL / max(tests, 1):
        return
    needed = next(n for n in range(2, 100) if least_p(n, n) <= LEVEL / max(tests, 1))
    raise UserError(
        f"{before} seeds of the baseline and {now} of the subject cannot tell a change of "
        f"{tests} measures from chance: {needed} each are needed; see --seeds"
    )


def _check_alike(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key in ("format", "engine", "quick", "overrides", "until_settled"):
        if before.get(key, False) != now.get(key, False):
            raise UserError(
                f"--baseline: its {key} is {before.get(key)!r}, not {now.get(key)!r}; they do not "
                "compare"
            )


def _pair(item: str, measure: Mapping[str, Any], before: Any, now: Any) -> _Pair | str:
    """The figures of both, or why there are none."""
    old, new = _numbers(before), _numbers(now)
    # What one of the two lacks in a cell is left out of both, so that like is compared with like.
    whole = ~(np.isnan(old).any(axis=1) | np.isnan(new).any(axis=1))
    if not whole.any():
        return "no cell in which every run of both has a value"
    old, new = old[whole], new[whole]
    ended = np.concatenate([old[np.isfinite(old)], new[np.isfinite(new)]])
    never = _NEVER * float(np.abs(ended).max()) if ended.size else 1.0
    old, new = np.where(np.isinf(old), never, old), np.where(np.isinf(new), never, new)
    return _Pair(item, measure, _figures(measure, old), _figures(measure, new), int((~whole).sum()))


def _figures(measure: Mapping[str, Any], cells: Floats) -> Floats:
    """One figure for each seed, from cells x seeds."""
    more = measure["better"] == "more"
    if measure["over"] == "worst":
        return np.asarray(cells.min(axis=0) if more else cells.max(axis=0))
    if measure["over"] == "p5":
        return np.asarray(np.quantile(cells, 0.05 if more else 0.95, axis=0))
    return np.asarray(cells.mean(axis=0))


def _tested(pair: _Pair, level: float) -> Change:
    measure = pair.measure
    shift = mean_shift(pair.before, pair.now, level)
    before, now = float(pair.before.mean()), float(pair.now.mean())
    interval = (shift.low, shift.difference, shift.high)
    if measure["better"] == "more":
        interval = (-shift.high, -shift.difference, -shift.low)
    low, worsening, high = interval
    counts = max(LEAST_SHARE * abs(before), measure["least"])
    is_change = (low > 0 or high < 0) and abs(worsening) > counts
    return Change(
        item=pair.item,
        measure=measure["id"],
        title=_title(measure),
        unit=measure["unit"],
        verdict="same" if not is_change else "worse" if worsening > 0 else "better",
        before=before,
        now=now,
        worse_by=_share(worsening, before),
        worse_low=_share(low, before),
        worse_high=_share(high, before),
        seeds=(pair.before.size, pair.now.size),
        cells_left_out=pair.left_out,
    )


def _share(part: float, whole: float) -> float:
    if whole:
        return part / abs(whole)
    return math.copysign(math.inf, part) if part else 0.0


def _title(measure: Mapping[str, Any]) -> str:
    title = str(measure["title"])
    return title if measure["over"] == "mean" else f"{title} (of each seed, averaged)"


def _numbers(values: Any) -> Floats:
    return np.array([[number(value) for value in row] for row in values], dtype=np.float64)
