"""A verdict on one axis: the measured value with its interval, the threshold, the paper's value.

Drawn as a line of text and as a small SVG; equal verdicts give equal bytes. This module must not
judge.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from fullpipe.experiments.verdicts import Verdict

_WIDTH = 24
_SVG_WIDTH, _SVG_HEIGHT, _EDGE = 150, 22, 6
#: A mark this many times farther from the value than another would press the others together.
_FAR = 50.0


def text_chart(verdict: Verdict) -> str:
    """Such as `..[==o==]...┃..x`: o measured, [ ] its interval, ┃ threshold, x the paper's value;
    empty if there is nothing to compare the measured value with."""
    scale = _scale(verdict)
    if scale is None:
        return ""
    line = ["·"] * _WIDTH

    def column(value: float) -> int:
        return round(scale(value) * (_WIDTH - 1))

    if verdict.low is not None and verdict.high is not None:
        low, high = column(verdict.low), column(verdict.high)
        for index in range(low, high + 1):
            line[index] = "="
        if high - low > 1:
            line[low], line[high] = "[", "]"
    for threshold in verdict.thresholds:
        line[column(threshold)] = "┃"
    if verdict.paper is not None:
        line[column(verdict.paper)] = "x"
    if verdict.value is not None:
        line[column(verdict.value)] = "o"
    return "".join(line)


def svg_chart(verdict: Verdict) -> str:
    """The same as an SVG element."""
    scale = _scale(verdict)
    if scale is None:
        return ""
    middle = _SVG_HEIGHT / 2

    def x(value: float) -> str:
        return f"{_EDGE + scale(value) * (_SVG_WIDTH - 2 * _EDGE):.1f}"

    def upright(value: float, kind: str) -> str:
        return (
            f'<line class="{kind}" x1="{x(value)}" x2="{x(value)}" y1="2" y2="{_SVG_HEIGHT - 2}"/>'
        )

    parts = [f'<line class="axis" x1="0" x2="{_SVG_WIDTH}" y1="{middle}" y2="{middle}"/>']
    parts += [upright(threshold, "threshold") for threshold in verdict.thresholds]
    if verdict.low is not None and verdict.high is not None:
        low, high = x(verdict.low), x(verdict.high)
        parts.append(f'<line class="interval" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>')
    if verdict.paper is not None:
        at, top, bottom = x(verdict.paper), middle - 4, middle + 4
        parts.append(
            f'<path class="paper" d="M{float(at) - 4} {top}L{float(at) + 4} {bottom}'
            f'M{float(at) - 4} {bottom}L{float(at) + 4} {top}"/>'
        )
    if verdict.value is not None:
        parts.append(f'<circle class="value" cx="{x(verdict.value)}" cy="{middle}" r="3.2"/>')
    title = escape(_described(verdict))
    return (
        f'<svg class="chart" role="img" width="{_SVG_WIDTH}" height="{_SVG_HEIGHT}" '
        f'viewBox="0 0 {_SVG_WIDTH} {_SVG_HEIGHT}"><title>{title}</title>{"".join(parts)}</svg>'
    )


def _described(verdict: Verdict) -> str:
    words = [f"measured {verdict.measured}"]
    if verdict.thresholds:
        words.append("threshold " + ", ".join(f"{value:.4g}" for value in verdict.thresholds))
    if verdict.paper is not None:
        words.append(f"paper {verdict.paper:.4g}")
    return "; ".join(words)


def _scale(verdict: Verdict) -> Callable[[float], float] | None:
    """Value -> its position from 0 to 1; None if there is nothing to compare, or if one mark lies
    so far off that the others would coincide."""
    beside = [*verdict.thresholds, *([] if verdict.paper is None else [verdict.paper])]
    measured = [value for value in (verdict.value, verdict.low, verdict.high) if value is not None]
    if not beside or not measured:
        return None
    low, high = min(*beside, *measured), max(*beside, *measured)
    if low == high:
        return lambda _: 0.5
    near = sorted(abs(value - measured[0]) for value in beside)
    if len(near) > 1 and near[-1] > _FAR * max(near[0], 1e-12) and near[0] > 0:
        return None
    low, span = low - 0.05 * (high - low), 1.1 * (high - low)
    return lambda value: (value - low) / span
