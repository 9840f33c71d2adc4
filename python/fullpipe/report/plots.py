"""What a plot is, before it is drawn: the page and the static figures draw the same ones.

Knows no recording and no drawing library.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fullpipe.metrics.view import Floats

#: More points than this in one trace cannot be seen on a screen.
MAX_POINTS = 4000


@dataclass(frozen=True)
class Trace:
    """One line, or one set of marks where `mark` says which ("x", "triangle", "circle", "dash").

    `shape` is "linear", "before" where a value holds since the point before it, or "after" where
    it holds until the next."""

    name: str
    colour: str
    x: Floats
    y: Floats
    dash: str = "solid"
    width: float = 1.5
    opacity: float = 1.0
    shape: str = "linear"
    mark: str = ""


@dataclass(frozen=True)
class Spans:
    """Stretches of time of one kind: `rows` says on which row of the plot each lies."""

    name: str
    colour: str
    rows: Floats
    starts: Floats
    ends: Floats


@dataclass(frozen=True)
class Box:
    """A box: quartiles, whiskers, and points where there are few enough to be shown."""

    label: str
    colour: str
    low: float
    q1: float
    median: float
    q3: float
    high: float
    points: Floats = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class Plot:
    """A plot: traces over common axes, or spans over `rows`, or boxes.

    `right` is (title, factor): the same data in another unit on the right. `over_time` plots of
    one run share their time axis."""

    key: str
    title: str
    x_title: str
    y_title: str
    traces: list[Trace] = field(default_factory=list)
    spans: list[Spans] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    rows: tuple[str, ...] = ()
    right: tuple[str, float] | None = None
    note: str = ""
    over_time: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to see."""
        seen = any(np.isfinite(trace.y).any() for trace in self.traces)
        return not (seen or self.spans or self.boxes)


def thin(x: Floats, y: Floats, most: int = MAX_POINTS) -> tuple[Floats, Floats]:
    """At most so many points: of each stretch its first, its least and its largest, so that no
    peak is lost; and the very last."""
    if x.size <= most:
        return x, y
    keep = {x.size - 1}
    for chunk in np.array_split(np.arange(x.size), (most - 1) // 3):
        keep.add(int(chunk[0]))
        known = chunk[~np.isnan(y[chunk])]
        if known.size:
            keep |= {int(known[y[known].argmin()]), int(known[y[known].argmax()])}
    order = np.array(sorted(keep))
    return x[order], y[order]


def cdf(values: Floats) -> tuple[Floats, Floats]:
    """(values in order, share of values not above each), from share 0 on, thinned; NaN is left
    out."""
    ordered = np.sort(values[~np.isnan(values)])
    return thin(
        np.concatenate((ordered[:1], ordered)),
        np.arange(ordered.size + 1)[ordered.size == 0 :] / max(ordered.size, 1),
    )
