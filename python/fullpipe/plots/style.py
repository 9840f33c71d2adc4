"""How things look in every plot: one colour for each congestion control, one for each phase.

Knows no recording. The same name has the same colour in every report.
"""

from __future__ import annotations

import colorsys
import zlib

#: After Okabe and Ito's palette (jfly.uni-koeln.de/color), with lightness to tell apart what a
#: colour-blind reader sees in one hue, and darkened to a contrast of 3:1 with the page (WCAG 2.2,
#: 1.4.11).
CC_COLOURS = {
    "reno": "#555555",
    "cubic": "#0072b2",
    "bbr1": "#a0831c",
    "bbr2": "#009e73",
    "dctcp": "#9424e9",
    "prague": "#6a9c50",
    "bbr3-ecn": "#a64b00",
    "bbr3": "#d55e00",
    "bbr3-linux": "#7a1f0e",
    "bbrnplus": "#c9659f",
    "bbrnplus-literal": "#f042d0",
    "bbrnplus-asrun": "#6a1b6f",
    "bbrnplus-pseudocode": "#8f3f71",
    "bbrnplus-patch": "#4f00a9",
    "bbrn": "#0e03f7",
    "tarn": "#2b3a8f",
    "kernel:reno": "#858585",
    "kernel:cubic": "#3d92f5",
    "kernel:bbr": "#8f6245",
}

PHASE_COLOURS = {
    "startup": "#d1495b",
    "slow_start": "#c58a9a",
    "drain": "#4a2c5e",
    "refill": "#f2c14e",
    "up": "#d97326",
    "down": "#4f8fc0",
    "cruise": "#b9d6b0",
    "avoidance": "#e3e5ea",
    "probe_rtt": "#111111",
}

#: Lines and marks that belong to no congestion control.
NEUTRAL = "#111111"
REFERENCE = "#999999"
GRID = "#ececec"
WARMUP = "#f0f0f0"
ALARM = "#b3261e"

#: The ends of a scale with a neutral middle (ColorBrewer's PuOr): below and above it.
BELOW, MIDDLE, ABOVE = "#b35806", "#f7f7f7", "#542788"

#: Lines that stand for no congestion control: none of these is a congestion control's colour.
_LINE_COLOURS = (
    "#12819b",
    "#c2407e",
    "#5c7f00",
    "#e69f00",
    "#8e44ad",
    "#56b4e9",
    "#7f7f7f",
    "#8c2d19",
    "#cc79a7",
    "#5e3c99",
    "#000000",
    "#b0a000",
)
_DASHES = ["solid", "dot", "dash", "dashdot"]
_OPACITIES = [1.0, 0.7, 0.5, 0.35]


def cc_colour(name: str) -> str:
    """The colour of a congestion control; a name that is not known gets a stable one. A user's
    file keeps its colour when it is edited: the hash behind its name does not count."""
    bare = name.partition("@")[0]
    return CC_COLOURS.get(bare) or _hashed(bare)


def phase_colour(name: str) -> str:
    """The colour of a phase of an algorithm; a name that is not known gets a stable one."""
    return PHASE_COLOURS.get(name) or _hashed(name)


def phase_order(names: set[str]) -> list[str]:
    """Phases in the order in which algorithms pass through them, unknown ones last."""
    ordered = [name for name in PHASE_COLOURS if name in names]
    return ordered + sorted(names - set(ordered))


def line_colour(position: int) -> str:
    """The colour of the n-th line of a plot whose lines stand for no congestion control."""
    return _LINE_COLOURS[position % len(_LINE_COLOURS)]


def dash(position: int) -> str:
    """The line style of the n-th flow of one congestion control (Plotly's names)."""
    return _DASHES[position % len(_DASHES)]


def opacity(position: int) -> float:
    """The opacity of the n-th flow of one congestion control, once the line styles are used up."""
    return _OPACITIES[position // len(_DASHES) % len(_OPACITIES)]


def scale_around(low: float, high: float, middle: float) -> list[tuple[float, str]]:
    """(position from 0 to 1, colour) of a scale that is neutral at `middle`."""
    at = min(max((middle - low) / (high - low or 1.0), 0.0), 1.0)
    return [(0.0, BELOW), (at, MIDDLE), (1.0, ABOVE)]


def _hashed(name: str) -> str:
    hue = zlib.crc32(name.encode()) % 360 / 360
    red, green, blue = colorsys.hls_to_rgb(hue, 0.4, 0.5)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"
