"""The scorecard as one self-contained HTML page, from its document. Must never run anything."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from html import escape
from typing import Any

from markupsafe import Markup

from fullpipe.base.templates import environment
from fullpipe.plots.style import cc_colour
from fullpipe.scorecard.beside_others import APART, beside_others, number
from fullpipe.scorecard.change_texts import figures, shown, what_was_tested, worsening
from fullpipe.scorecard.changes import Comparison
from fullpipe.scorecard.gate import Judged

_WIDTH, _HEIGHT, _TOP, _BOTTOM = 1100, 390, 16, 110
_STRIP_WIDTH, _STRIP_HEIGHT, _SCALE_HEIGHT = 220, 22, 12
#: Tolerances from the middle of the overview to its ends.
MOST_TOLERANCES = 10


def card_page(
    card: Mapping[str, Any], comparison: Comparison | None = None, judged: Judged | None = None
) -> str:
    """The page of a scorecard's document, with what changed."""
    templates = environment("fullpipe.scorecard", "fullpipe.plots")
    templates.filters["shown"] = shown
    colours = {name: cc_colour(name) for name in card["subjects"]}
    return templates.get_template("card_page.html").render(
        card=card,
        comparison=comparison,
        tested=what_was_tested(comparison) if comparison is not None else "",
        accepted=dict(judged.accepted) if judged is not None else {},
        figures=figures,
        worsening=worsening,
        colours=colours,
        overview=Markup(_overview(card, colours)),
        strip=lambda measure: Markup(_strip(measure, colours)),
        place=lambda measure: beside_others(measure, card["scorecard"]),
    )


def _overview(card: Mapping[str, Any], colours: Mapping[str, str]) -> str:
    """Parallel coordinates: an axis an item, with a line for each tolerance; nothing for one item,
    whose lines would be points."""
    axes = [
        (item["id"], item["measures"][0])
        for item in card["items"]
        if item["measures"] and item["measures"][0]["better"]
    ]
    if len(axes) < 2:
        return ""
    left, right = 30.0, _WIDTH - 30.0
    step = (right - left) / (len(axes) - 1)
    parts = [
        f'<svg class="overview drawn" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'aria-label="overview">'
    ]
    for tolerance in range(-MOST_TOLERANCES, MOST_TOLERANCES + 1):
        y, colour = _y(tolerance / MOST_TOLERANCES), "#e4e4e4" if tolerance else "#bbb"
        parts.append(f'<path d="M{left:.0f},{y:.1f}H{right:.0f}" stroke="{colour}"/>')
    for index, (name, measure) in enumerate(axes):
        x = left + index * step
        parts.append(
            f'<line x1="{x:.0f}" y1="{_TOP}" x2="{x:.0f}" y2="{_HEIGHT - _BOTTOM}" '
            'stroke="#ccc"/>'
            f'<a href="#{escape(name)}"><text transform="translate({x:.0f},'
            f'{_HEIGHT - _BOTTOM + 8}) rotate(60)" font-size="11" fill="#555">'
            f"{escape(name.removeprefix('rfc9743-'))}<title>{escape(measure['title'])}</title>"
            "</text></a>"
        )
    for subject in reversed(card["subjects"]):
        points = []
        for index, (_, measure) in enumerate(axes):
            values = {
                name: number(interval["value"]) for name, interval in measure["subjects"].items()
            }
            position = overview_place(values, subject, measure["better"])
            if position is not None:
                points.append(f"{left + index * step:.0f},{_y(position):.1f}")
        width = 3 if subject == card["scorecard"] else 1.3
        parts.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{colours[subject]}" '
            f'stroke-width="{width}" stroke-linejoin="round"><title>{escape(subject)}</title>'
            "</polyline>"
        )
    return "".join([*parts, "</svg>"])


def _y(position: float) -> float:
    return _TOP + (1 - position) / 2 * (_HEIGHT - _BOTTOM - _TOP)


def overview_place(values: Mapping[str, float], subject: str, better: str) -> float | None:
    """A subject's place on an axis from -1 (worst) to 1: by how many tolerances (`APART` of the
    median of all) it is better than the median, of at most `MOST_TOLERANCES`. None without a
    value."""
    subject_value = values[subject]
    finite = [value for value in values.values() if math.isfinite(value)]
    if math.isnan(subject_value) or not finite:
        return None
    if math.isinf(subject_value):  # never
        return -1.0
    middle = statistics.median(finite)
    tolerance = APART * abs(middle) or APART * max(map(abs, finite)) or 1.0
    steps = (subject_value - middle) / tolerance * (1 if better == "more" else -1)
    return max(-1.0, min(1.0, steps / MOST_TOLERANCES))


def _strip(measure: Mapping[str, Any], colours: Mapping[str, str]) -> str:
    """A small multiple: every subject's value with its interval on one axis from 0, whose ends are
    written."""
    numbers = [
        number(interval[key])
        for interval in measure["subjects"].values()
        for key in ("value", "low", "high")
    ]
    finite = [value for value in numbers if math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(0.0, *finite), max(0.0, *finite)
    span = (high - low) or 1.0

    def x(value: float) -> float:
        return 6 + (value - low) / span * (_STRIP_WIDTH - 12)

    middle = _STRIP_HEIGHT / 2
    parts = [
        f'<svg class="strip drawn" width="{_STRIP_WIDTH}" '
        f'height="{_STRIP_HEIGHT + _SCALE_HEIGHT}" role="img">'
        f'<line x1="6" x2="{_STRIP_WIDTH - 6}" y1="{middle}" y2="{middle}" stroke="#ddd"/>'
    ]
    for end, position, anchor in ((low, 6, "start"), (high, _STRIP_WIDTH - 6, "end")):
        parts.append(
            f'<path d="M{position} {middle - 4}v8" stroke="#999"/>'
            f'<text x="{position}" y="{_STRIP_HEIGHT + 9}" font-size="10" fill="#555" '
            f'text-anchor="{anchor}">{shown(end)}</text>'
        )
    for index, (name, interval) in enumerate(reversed(measure["subjects"].items())):
        value, left, right = (number(interval[key]) for key in ("value", "low", "high"))
        y = middle + (index % 3 - 1) * 4
        colour = colours[name]
        if math.isfinite(left) and math.isfinite(right):
            parts.append(
                f'<line x1="{x(left):.1f}" x2="{x(right):.1f}" y1="{y}" y2="{y}" '
                f'stroke="{colour}"/>'
            )
        if math.isfinite(value):
            parts.append(
                f'<circle cx="{x(value):.1f}" cy="{y}" r="3.4" fill="{colour}">'
                f"<title>{escape(name)}: {shown(interval['value'])}</title></circle>"
            )
    return "".join([*parts, "</svg>"])
