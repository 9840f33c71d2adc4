"""Whether runs had settled within their windows (crates/fullpipe-metrics/src/settle.rs): as a
sentence, of one run and of its repetitions. Must never know how it is printed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

#: Runs that had settled and are flagged all the same, at most (docs/evidence/settling.md).
FALSE_ALARMS = 0.05
#: How many times as long the next window is suggested to be: a rule of thumb. Drifts end at their
#: own time, which no window that is too short can tell.
_LONGER = 6
_NOT_TESTED = {
    "too short": "too short to tell whether it had settled: {window:g} s of at least {least:.3g} s",
    "changing": "not tested for settling: flows or rates change within the window",
}
#: How a metric's slope is shown: unit, and how many of the recorded one it has.
_UNITS = {"goodput": (" Mbit/s", 1e6), "backlog": (" KiB", 1024.0)}


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
    flagged = [one for one in runs if one["state"] == "not settled"]
    tested = sum(one["state"] in ("not settled", "no drift seen") for one in runs)
    return flagged if flagged and _chance(len(flagged), tested) <= FALSE_ALARMS else []


def sentence(runs: Sequence[Mapping[str, Any]]) -> str:
    """One sentence about the `settling` of a run, or of its repetitions."""
    flagged = unsettled(runs)
    window_s = runs[0]["window_s"]
    if flagged:
        of = f" in {len(flagged)} of {len(runs)} runs" if len(runs) > 1 else ""
        return f"not settled{of}: {_drift(flagged)}; needs some {_round(_LONGER * window_s)} s"
    states = Counter(one["state"] for one in runs)
    for state, text in _NOT_TESTED.items():
        if states[state]:
            return text.format(window=window_s, least=runs[0]["least_window_s"])
    chance = states["not settled"]
    more = f"; {chance} of {len(runs)} runs drift, as chance may have it" if chance else ""
    return f"no drift seen in {window_s:g} s{more}"


def of_stored(words: Sequence[str]) -> str:
    """What a store's column `unsettled` says of these runs, where that is to be known: `not settled
    in 10 of 40 runs: backlog`; empty where no more drift than false alarms would."""
    tested = [word for word in words if word not in _NOT_TESTED]
    flagged = [word for word in tested if word]
    if not flagged or _chance(len(flagged), len(tested)) > FALSE_ALARMS:
        return ""
    names = Counter(name for word in flagged for name in word.split(", "))
    most = ", ".join(name for name, _ in names.most_common(3))
    return f"not settled in {len(flagged)} of {len(words)} runs: {most}"


def _drift(runs: Sequence[Mapping[str, Any]]) -> str:
    """What drifts most often in these runs, and how fast on average."""
    slopes: dict[str, list[float]] = {}
    for run in runs:
        for drift in run["drifts"]:
            slopes.setdefault(drift["metric"], []).append(drift["slope_per_s"])
    metric, found = max(slopes.items(), key=lambda one: len(one[1]))
    unit, divisor = _UNITS.get(metric, ("", 1.0))
    slope = fmean(found) / divisor
    verb = "rises" if slope > 0 else "falls"
    return f"the {metric} still {verb} by {abs(slope):.2g}{unit} a second"


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
