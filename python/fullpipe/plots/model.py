"""What a plot is, before it is drawn. Both renderers draw the same plots.

A `Plot` is one pair of axes; a `Grid` is several with one legend. This module must not know a
recording or a drawing library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: More points than this in one trace cannot be seen on a screen.
MAX_POINTS = 4000
#: Thinning to fit a page leaves each trace so many points.
LEAST_POINTS = 60
#: Quantiles of a box: whiskers, quartiles and median.
BOX_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Trace:
    """A line, or a set of marks if `mark` names one, or both if the marks are `joined`.

    `dash` is "solid", "dot", "dash" or "dashdot"; `mark` is a key of the renderers' tables ("x",
    "triangle", "circle", "dash", "dot", "square", ...). `shape` is "linear", "before" if a value
    holds since the previous point, or "after" if it holds until the next. `band` is the (low, high)
    of an interval around each y. `is_reference`: it stands for no measurement, but for a rate, a
    limit or a base RTT. `keys`: what each point stands for, for programs. `run`: which of the
    plot's `runs` it is of, -1 for all."""

    name: str
    colour: str
    x: Floats
    y: Floats
    dash: str = "solid"
    width: float = 1.5
    opacity: float = 1.0
    shape: str = "linear"
    mark: str = ""
    joined: bool = False
    band: tuple[Floats, Floats] | None = None
    is_reference: bool = False
    keys: tuple[str, ...] = ()
    run: int = -1


@dataclass(frozen=True)
class Spans:
    """Time spans of one kind; `rows` has the row of the plot in which each is drawn."""

    name: str
    colour: str
    rows: Floats
    starts: Floats
    ends: Floats


@dataclass(frozen=True)
class Box:
    """A box: quartiles, whiskers, and single points if there are few.

    Boxes of a plot are drawn one below the other and labelled at the axis. With `at` they stand
    upright at that x, `width` wide, and their labels are in the legend."""

    label: str
    colour: str
    low: float
    q1: float
    median: float
    q3: float
    high: float
    points: Floats = field(default_factory=lambda: np.empty(0))
    at: float | None = None
    width: float = 0.5


@dataclass(frozen=True)
class Heat:
    """A heat map: `values` [y label, x label], NaN for none; `title` names the values. `crossed`:
    (y, x) of cells that are crossed out, since their runs are not to be trusted. `middle`: the
    value that is neutral; colours differ on its sides. `x_keys` and `y_keys`: the values that
    labels stand for, for programs."""

    values: Floats
    x_labels: tuple[str, ...]
    y_labels: tuple[str, ...]
    title: str
    crossed: tuple[tuple[int, int], ...] = ()
    middle: float | None = None
    x_keys: tuple[str, ...] = ()
    y_keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plot:
    """One pair of axes with traces, spans over `rows`, boxes, or a heat map.

    `right` is (title, factor): the same data in another unit on the right. `over_time` plots of
    one run share their time axis. `x_ticks` are (position, text) pairs; `log_x` is the base of a
    logarithmic x axis, 0 for a linear one; `log_y` makes the y axis logarithmic. `zero` lets the y
    axis begin at 0. `labels` are (x, y, text) written beside points. `warmup_s`: how much of the
    beginning is the warm-up, which is shaded. `runs`: names of what is overlaid, which may have a
    panel each instead."""

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
    heat: Heat | None = None
    x_ticks: tuple[tuple[float, str], ...] = ()
    log_x: float = 0.0
    log_y: bool = False
    zero: bool = True
    labels: tuple[tuple[float, float, str], ...] = ()
    warmup_s: float = 0.0
    runs: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to see."""
        has_data = any(np.isfinite(trace.y).any() for trace in self.traces)
        return not (has_data or self.spans or self.boxes or self.heat is not None)

    @property
    def upright(self) -> bool:
        """Whether its boxes stand upright at an x."""
        return any(box.at is not None for box in self.boxes)


@dataclass(frozen=True)
class Grid:
    """Plots side by side with one legend. `share_x` and `share_y`: and common axes."""

    title: str
    panels: Sequence[Plot]
    note: str = ""
    most_columns: int = 3
    share_x: bool = True
    share_y: bool = True

    @property
    def columns(self) -> int:
        """How many panels are side by side: four make a square."""
        wanted = 2 if len(self.panels) == 4 else len(self.panels)
        return min(wanted, self.most_columns)

    @property
    def heat_range(self) -> tuple[float, float] | None:
        """The least and the largest value of all heat maps; None without one."""
        heats = [panel.heat.values for panel in self.panels if panel.heat is not None]
        if not heats or all(np.isnan(values).all() for values in heats):
            return None
        everything = np.concatenate([values.ravel() for values in heats])
        low, high = float(np.nanmin(everything)), float(np.nanmax(everything))
        if self.heat_middle is None:
            return low, high
        reach = max(high - self.heat_middle, self.heat_middle - low) or abs(self.heat_middle)
        least = self.heat_middle - reach
        return max(least, 0.0) if low >= 0 else least, self.heat_middle + reach

    @property
    def heat_middle(self) -> float | None:
        """The value that is neutral in all heat maps; None where there is none."""
        middles = {panel.heat.middle for panel in self.panels if panel.heat is not None}
        return next(iter(middles)) if len(middles) == 1 else None


def box_of(
    label: str,
    colour: str,
    quantiles: Floats,
    points: Floats | None = None,
    at: float | None = None,
    width: float = 0.5,
) -> Box:
    """A box from its `BOX_QUANTILES`."""
    low, q1, median, q3, high = map(float, quantiles)
    shown = np.empty(0) if points is None else points
    return Box(label, colour, low, q1, median, q3, high, shown, at, width)


def thin(x: Floats, y: Floats, most: int = MAX_POINTS) -> tuple[Floats, Floats]:
    """At most `most` points. Each stretch keeps its first, least and largest, so that no peak is
    lost, and the last point stays."""
    indices = _thinned_indices(y, most)
    return x[indices], y[indices]


def thinned(trace: Trace, most: int) -> Trace:
    """The trace with at most `most` points, chosen as `thin` does."""
    if trace.x.size <= most or trace.keys:
        return trace
    indices = _thinned_indices(trace.y, most)
    band = None if trace.band is None else (trace.band[0][indices], trace.band[1][indices])
    return replace(trace, x=trace.x[indices], y=trace.y[indices], band=band)


def thinned_plot(plot: Plot, most: int) -> Plot:
    """The plot with at most `most` points in each trace."""
    return replace(plot, traces=[thinned(trace, most) for trace in plot.traces])


def within(plots: Sequence[Plot], points: int) -> list[Plot]:
    """The plots with so many points in all at most, as far as thinning leads; each trace keeps
    `LEAST_POINTS`."""
    sizes = np.array([_weight(trace) for plot in plots for trace in plot.traces])
    weights = np.array([3 if trace.band else 1 for plot in plots for trace in plot.traces])
    most = MAX_POINTS
    while most > LEAST_POINTS and np.minimum(sizes, most * weights).sum() > points:
        most = max(LEAST_POINTS, int(0.9 * most))
    return [thinned_plot(plot, most) for plot in plots]


def _weight(trace: Trace) -> int:
    """How many points it takes to draw a trace; an interval is two lines more."""
    return trace.x.size * (3 if trace.band else 1)


def _thinned_indices(y: Floats, most: int) -> npt.NDArray[np.int64]:
    if y.size <= most:
        return np.arange(y.size)
    keep = {y.size - 1}
    for chunk in np.array_split(np.arange(y.size), max(1, (most - 1) // 3)):
        keep.add(int(chunk[0]))
        valid = chunk[~np.isnan(y[chunk])]
        if valid.size:
            keep |= {int(valid[y[valid].argmin()]), int(valid[y[valid].argmax()])}
    return np.array(sorted(keep))


def ellipse(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The outline of one standard deviation of the normal distribution of these points."""
    values, vectors = np.linalg.eigh(np.cov(x, y))
    turn = np.linspace(0, 2 * np.pi, 65)
    axes = np.sqrt(np.maximum(values, 0.0))[:, None] * np.array([np.cos(turn), np.sin(turn)])
    around = vectors @ axes
    return x.mean() + around[0], y.mean() + around[1]


def cdf(values: Floats) -> tuple[Floats, Floats]:
    """(sorted values, share of values not above each), from share 0, thinned; NaN is left out."""
    ordered = np.sort(values[~np.isnan(values)])
    return thin(
        np.concatenate((ordered[:1], ordered)),
        np.arange(ordered.size + 1)[ordered.size == 0 :] / max(ordered.size, 1),
    )
