"""Whether runs had settled within their windows (crates/fullpipe-metrics/src/settle.rs): as a
sentence, of one run and of its repetitions. Must never know how it is printed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

#: Runs that had settled and are flagged all the same, at most (docs/evidence/settling.md).
FALSE_ALARMS = 0.05
#: How many times as long the next window is suggested to be: a rule of thumb. Drifts end at their
#: own time, which no window that is too short can tell.
_LONGER = 6
_NOT_TESTED = {
    "too short": "too short to tell whether it had settled: {window:g} s of at least {least} s",
    "changing": "not tested for settling: flows or rates change within the window",
}
_TESTED = ("not settled", "no drift seen")
#: At most so many cells are listed by name.
_NAMED = 4
#: How a metric's slope is shown: unit, and how many of the recorded one it has.
_UNITS = {"goodput": (" Mbit/s", 1e6), "backlog": (" KiB", 1024.0)}
#: Parts of a store's column `unsettled` (`Settling::text` of settle.rs).
_STORED_DRIFT = re.compile(r"(.+) ([+-][0-9.]+e-?[0-9]+)/s")
_STORED_WINDOW = re.compile(r"([0-9.]+) s")


def settled_summary(
    state: str,
    least_s: float | None,
    drifts: Sequence[tuple[str, float, float, float]],
    window_s: float,
) -> dict[str, Any]:
    """What `run --json` has of a run's settling."""
    keys = ("metric", "mean", "slope_per_s", "p_value")
    return {
        "state": state if state != "tested" else "not settled" if drifts else "no drift seen",
        "window_s": window_s,
        "least_window_s": least_s,
        "drifts": [dict(zip(keys, drift, strict=True)) for drift in drifts],
    }


def unsettled(runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of the runs' `settling` those that had not settled, where they are more than false alarms
    would be: by chance no more than one group of twenty has so many."""
    flagged = [run for run in runs if run["state"] == "not settled"]
    return flagged if flagged and _chance_of(runs) <= FALSE_ALARMS else []


def goes_on(runs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether longer runs than these could settle: more had not than chance gives, or half of them
    drift or are too short to tell. A rule to stop asks for more than the `sentence`."""
    doubtful = sum(run["state"] in ("not settled", "too short") for run in runs)
    return bool(unsettled(runs)) or 2 * doubtful >= max(len(runs), 1)


def _is_short(runs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether so many are too short to tell that the others tell nothing of all: half of them."""
    short = sum(bool(run["state"] == "too short") for run in runs)
    return 2 * short >= max(len(runs), 1)


def sentence(runs: Sequence[Mapping[str, Any]]) -> str:
    """One sentence about the `settling` of a run, or of its repetitions."""
    flagged = unsettled(runs)
    if flagged:
        of = f" in {len(flagged)} of {len(runs)} runs" if len(runs) > 1 else ""
        window_s = max(run["window_s"] for run in flagged)
        return f"not settled{of}: {_drift(flagged)}; needs some {_round(_LONGER * window_s)} s"
    window_s = runs[0]["window_s"]
    states = Counter(run["state"] for run in runs)
    if _is_short(runs):
        least = median(run["least_window_s"] for run in runs if run["state"] == "too short")
        return _NOT_TESTED["too short"].format(window=window_s, least=_round(least))
    if states["changing"]:
        return _NOT_TESTED["changing"]
    chance = states["not settled"]
    more = f"; {chance} of {len(runs)} runs drift, as chance may have it" if chance else ""
    return f"no drift seen in {window_s:g} s{more}"


def of_stored(words: Sequence[str]) -> str:
    """The `sentence` about runs of which a store's column `unsettled` has these words, where that
    is to be known; empty where no more drift than false alarms would."""
    runs = [stored_summary(word) for word in words]
    return sentence(runs) if unsettled(runs) else ""


def stored_summary(word: str) -> dict[str, Any]:
    """What a store's column `unsettled` says of a run, as `settled_summary`. The window is known of
    runs that drift."""
    if word in _NOT_TESTED:
        return {"state": word, "drifts": []}
    *drifts, window = word.split("; ")
    matches = [match for match in map(_STORED_DRIFT.fullmatch, drifts) if match]
    length = _STORED_WINDOW.fullmatch(window)
    return {
        "state": "not settled" if word else "no drift seen",
        "window_s": float(length[1]) if length else math.nan,
        "drifts": [{"metric": match[1], "slope_per_s": float(match[2])} for match in matches],
    }


@dataclass(frozen=True)
class CellsSettled:
    """What is known of the settling of a result that rests on several cells. `cells`: their number;
    `unsettled`: names of those whose runs had not settled; `too_short`: number of those that are
    too short to tell; `drift`: what drifts in the first."""

    cells: int
    unsettled: tuple[str, ...]
    too_short: int
    drift: str

    def text(self) -> str:
        """As a qualification of the result; empty where there is nothing to say."""
        words = []
        if self.unsettled:
            named = "; ".join(name for name in self.unsettled[:_NAMED] if name)
            more = len(self.unsettled) - _NAMED
            where = f" ({named}{f' and {more} more' if more > 0 else ''})" if named else ""
            of = f" in {len(self.unsettled)} of {self.cells} cells{where}" if self.cells > 1 else ""
            words.append(f"not settled{of}: {self.drift}")
        if self.too_short:
            of = f" in {self.too_short} of {self.cells} cells" if self.cells > 1 else ""
            words.append(f"too short to tell whether it had settled{of}")
        return "; ".join(words)


def of_cells(cells: Sequence[tuple[str, Sequence[str]]]) -> CellsSettled:
    """The settling of cells, of each its name and what the column `unsettled` has of its runs.

    A cell counts where more of its runs drift than chance gives in one cell of twenty. Of many
    cells some do so by chance: where no more do, only those count that would in as many cells
    (Bonferroni)."""
    recorded = [(name, [stored_summary(word) for word in words]) for name, words in cells if words]
    chances = [_chance_of(runs) for _, runs in recorded]
    flagged = sum(chance <= FALSE_ALARMS for chance in chances)
    tested = sum(any(run["state"] in _TESTED for run in runs) for _, runs in recorded)
    several = flagged and _chance(flagged, tested) <= FALSE_ALARMS
    level = FALSE_ALARMS if several else FALSE_ALARMS / max(tested, 1)
    drifting = [cell for cell, chance in zip(recorded, chances, strict=True) if chance <= level]
    short = sum(_is_short(runs) for _, runs in recorded)
    drift = _drift([run for run in drifting[0][1] if run["drifts"]]) if drifting else ""
    return CellsSettled(len(recorded), tuple(name for name, _ in drifting), short, drift)


def _chance_of(runs: Sequence[Mapping[str, Any]]) -> float:
    """Probability that so many of the tested runs are flagged where they had settled."""
    flagged = sum(run["state"] == "not settled" for run in runs)
    return _chance(flagged, sum(run["state"] in _TESTED for run in runs))


def _drift(runs: Sequence[Mapping[str, Any]]) -> str:
    """What drifts most often in these runs, and how fast on average."""
    slopes: dict[str, list[float]] = {}
    for run in runs:
        for drift in run["drifts"]:
            slopes.setdefault(drift["metric"], []).append(drift["slope_per_s"])
    metric, metric_slopes = max(slopes.items(), key=lambda item: len(item[1]))
    unit, divisor = _UNITS.get(metric, ("", 1.0))
    verb = (
        "rises"
        if min(metric_slopes) > 0
        else "falls"
        if max(metric_slopes) < 0
        else "rises or falls"
    )
    slope = fmean(map(abs, metric_slopes)) / divisor
    return f"the {metric} still {verb} by {slope:.2g}{unit} a second"


def _chance(flagged: int, runs: int) -> float:
    """Probability of so many false alarms or more."""
    return sum(
        math.comb(runs, k) * FALSE_ALARMS**k * (1 - FALSE_ALARMS) ** (runs - k)
        for k in range(flagged, runs + 1)
    )


def _round(seconds: float) -> int:
    """To two figures."""
    digits = 1 - math.floor(math.log10(seconds))
    return round(round(seconds, digits))
