"""Compares a congestion control's measures with those of others, and with its own earlier ones. It
gives no marks, because RFC 9743 has no thresholds. Must never run anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from fullpipe.base.errors import UserError

#: A value is better or worse than all others if it differs by at least this share of theirs.
APART = 0.1
#: Differences below this share of a value are ignored, even if they are significant.
_NEGLIGIBLE = 0.005


def number(value: Any) -> float:
    """A document's number: infinite for `never`, NaN for null."""
    return math.inf if value == "never" else math.nan if value is None else float(value)


def stands(measure: Mapping[str, Any], subject: str) -> str:
    """`worse` or `better` than all the others by more than a tenth, `among` them, or nothing where
    neither more nor less is better."""
    values = {name: number(found["value"]) for name, found in measure["subjects"].items()}
    mine = values.pop(subject)
    others = [value for value in values.values() if not math.isnan(value)]
    if not measure["better"] or not others or math.isnan(mine):
        return ""
    low, high = min(others), max(others)
    less, more = mine < low - APART * abs(low), mine > high + APART * abs(high)
    if measure["better"] == "more":
        less, more = more, less
    return "better" if less else "worse" if more else "among"


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What got better or worse since an earlier scorecard of the same subject: measures whose
    difference, run by run of the same cell and seed, is beyond Student's 95 % interval.

    Raises UserError if the two do not compare."""
    for key in ("format", "scorecard", "engine", "quick"):
        if before.get(key) != now[key]:
            raise UserError(
                f"--baseline: its {key} is {before.get(key)!r}, not {now[key]!r}; they do not "
                "compare"
            )
    known = {
        (item["id"], measure["id"]): (item, measure)
        for item in before["items"]
        for measure in item["measures"]
    }
    found = []
    for item in now["items"]:
        for measure in item["measures"]:
            earlier = known.get((item["id"], measure["id"]))
            if earlier is None or earlier[0].get("cells") != item["cells"]:
                continue
            change = _change(earlier[1], measure, now["scorecard"])
            if change:
                found.append({"item": item["id"], "measure": measure["id"], **change})
    return found


def _change(before: Mapping[str, Any], now: Mapping[str, Any], subject: str) -> dict[str, Any]:
    """Empty if nothing changed beyond the interval."""
    old, new = (_runs(measure["subjects"][subject]["values"]) for measure in (before, now))
    if old.shape != new.shape or not now["better"]:
        return {}
    both = np.isfinite(old) & np.isfinite(new)
    # A change between `never` and a number counts, whatever the other values are.
    ended = int((np.isinf(old) & np.isfinite(new)).sum() - (np.isfinite(old) & np.isinf(new)).sum())
    difference = (new - old)[both]
    mean = float(difference.mean()) if difference.size else 0.0
    half = 0.0
    if difference.size > 1:
        error = float(difference.std(ddof=1)) / math.sqrt(difference.size)
        half = float(stats.t.ppf(0.975, difference.size - 1)) * error
    scale = float(np.abs(old[both]).mean()) if both.any() else 0.0
    if not ended and (abs(mean) <= half or abs(mean) <= _NEGLIGIBLE * scale):
        return {}
    grew = ended < 0 if ended else mean > 0
    return {
        "title": now["title"], "unit": now["unit"],
        "verdict": "better" if grew == (now["better"] == "more") else "worse",
        "before": before["subjects"][subject]["value"], "now": now["subjects"][subject]["value"],
        "difference": float(f"{mean:.4g}"), "half_interval": float(f"{half:.4g}"),
    }  # fmt: skip


def _runs(values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([[number(value) for value in row] for row in values], dtype=np.float64)
