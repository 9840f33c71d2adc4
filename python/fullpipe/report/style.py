"""One colour for each congestion control, the same in every plot."""

from __future__ import annotations

import zlib

#: Okabe and Ito's palette, which colour-blind readers can tell apart, darkened where pale.
_FIXED = {
    "reno": "#7f7f7f", "cubic": "#0072b2", "bbr1": "#e69f00", "bbr2": "#009e73",
    "bbr3": "#d55e00", "bbr3-linux": "#a83232", "bbrnplus": "#8e44ad",
    "bbrnplus-literal": "#b07aa1", "bbrnplus-asrun": "#5e3c99",
}  # fmt: skip
_OTHERS = ["#56b4e9", "#cc79a7", "#4d4d4d", "#999933", "#117733"]
#: Background of each phase in plots of BBR's state.
PHASES = [
    "startup", "drain", "probe_rtt", "down", "cruise", "refill", "up", "slow_start", "avoidance",
]  # fmt: skip


def colour(cc: str) -> str:
    """The colour of a congestion control; names that are not known get a stable one."""
    return _FIXED.get(cc) or _OTHERS[zlib.crc32(cc.encode()) % len(_OTHERS)]


def dash(position: int) -> str:
    """A line style for the n-th flow of one congestion control (Plotly's names)."""
    return ["solid", "dot", "dash", "dashdot"][position % 4]
