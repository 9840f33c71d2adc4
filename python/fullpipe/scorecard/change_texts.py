"""A comparison as words: the same ones on the terminal, in Markdown, JUnit and HTML, and as JSON.
Must never judge.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from fullpipe.scorecard.beside_others import number
from fullpipe.scorecard.changes import LEAST_SHARE, LEVEL, Change, Comparison, Verdict
from fullpipe.scorecard.gate import Judged

_VERDICTS: tuple[Verdict, ...] = ("worse", "better", "same")


def shown(value: Any) -> str:
    """A number with three digits, or `never`."""
    parsed = number(value)
    if math.isnan(parsed):
        return "-"
    if math.isinf(parsed):
        return "never"
    return f"{parsed:.3g}" if abs(parsed) < 1000 else f"{parsed:.0f}"


def shown_with_interval(interval: Mapping[str, Any]) -> str:
    """A subject's value in a scorecard, with half of its 95 % interval where it has one."""
    low, high = number(interval["low"]), number(interval["high"])
    text = shown(interval["value"])
    if not (math.isfinite(low) and math.isfinite(high)):
        return text
    return f"{text} ±{(high - low) / 2:.2g}"


def figures(change: Change) -> tuple[str, str]:
    """Before and now, with the unit."""
    unit = f" {change.unit}" if change.unit else ""
    return f"{shown(change.before)}{unit}", f"{shown(change.now)}{unit}"


def worsening(change: Change) -> str:
    """By how much it got worse, with its interval: `+4.3 % (+3.1 to +5.6)`."""
    return _share(change.worse_by, change.worse_low, change.worse_high)


def sentence(change: Change) -> str:
    """One line for a change."""
    before, now = figures(change)
    if change.verdict == "better":
        by = f"better by {_share(-change.worse_by, -change.worse_high, -change.worse_low)}"
    else:
        by = f"worse by {worsening(change)}"
    if change.verdict == "same":
        is_chance = change.worse_low <= 0 <= change.worse_high
        by = f"{'not told from chance' if is_chance else 'too small to count'}: {by}"
    return f"{change.id}, {change.title}: {before} -> {now}, {by}"


def _share(by: float, low: float, high: float) -> str:
    if not math.isfinite(by):
        return "from 0"
    if not by and not low and not high:
        return "0 %"
    return f"{_percent(by)} % ({_percent(low)} to {_percent(high)})"


def what_was_tested(comparison: Comparison) -> str:
    """One paragraph: what the verdicts rest on."""
    tested = len(comparison.changes)
    seeds = sorted({change.seeds for change in comparison.changes})
    counts = ", ".join(
        str(now) if before == now else f"{before} and {now}" for before, now in seeds
    )
    return (
        f"{tested} measures tested with {counts or 'no'} seeds each. A change is told where its "
        f"interval leaves out 0 and it exceeds {100 * LEAST_SHARE:g} % and what the item calls the "
        "least. The intervals hold for all measures together: of equal algorithms a change is told "
        f"in at most {100 * LEVEL:g} of 100 comparisons."
    )


def conclusion(comparison: Comparison, judged: Judged) -> str:
    """One line: how many changes, and whether they count."""
    worse, better, same = (len(comparison.of(verdict)) for verdict in _VERDICTS)
    accepted = f" ({len(judged.accepted)} of them accepted)" if judged.accepted else ""
    return (
        f"{comparison.subject} beside {comparison.baseline}: of {worse + better + same} measures "
        f"{worse} worse{accepted}, {better} better, {same} not changed"
    )


def document(comparison: Comparison, judged: Judged) -> dict[str, Any]:
    """The comparison as JSON: null for what is infinite."""
    return {
        "baseline": comparison.baseline,
        "subject": comparison.subject,
        "level": LEVEL,
        "least_share": LEAST_SHARE,
        "changes": [_plain(change) for change in comparison.changes],
        "untested": dict(comparison.untested),
        "failing": [change.id for change in judged.failing],
        "accepted": [{"id": change.id, "reason": why} for change, why in judged.accepted],
        "fail_if": [
            {"condition": text, "holds": text in judged.holding} for text in judged.conditions
        ],
        "is_worse": judged.is_worse,
    }


def _plain(change: Change) -> dict[str, Any]:
    fields = {"id": change.id, **dataclasses.asdict(change)}
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in fields.items()
    }


def _percent(share: float) -> str:
    if not math.isfinite(share):
        return "?"
    percent = 100 * share
    return f"{percent:+.2g}" if abs(percent) < 10 else f"{percent:+.0f}"
