"""What a reader wants first of a group of runs: five figures, and who got which share.

Intervals are those of `comparison`. Must never know how it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fullpipe.agreement.expected import sentence
from fullpipe.metrics.settling import sentence as settled
from fullpipe.plots import style
from fullpipe.report.comparison import Cell, Row, compare_runs, compare_shares
from fullpipe.report.runs import Group

#: Metric of `compare_runs` -> how it is called here.
_FIGURES = {
    "completion time": "Completion time",
    "utilisation": "Utilisation",
    "mean wait": "Wait, mean",
    "queueing delay p50": "Queueing delay, median",
    "queueing delay p95": "Queueing delay, 95th percentile",
    "Jain index": "Fairness (Jain)",
    "loss": "Loss",
}


@dataclass(frozen=True)
class Figure:
    """One figure: what it is called, its mean and interval over the runs, unit and digits, and the
    same in another unit."""

    name: str
    cell: Cell
    unit: str
    digits: int
    beside: str = ""


@dataclass(frozen=True)
class Share:
    """The share of goodput of the flows of one congestion control, in its direction where there
    are two. `weight`: its part of a bar that both directions share; `is_down`: it is drawn pale."""

    name: str
    cell: Cell
    colour: str
    weight: float
    is_down: bool


@dataclass(frozen=True)
class Headline:
    """The figures of a group; `mark` says how many runs are not to be trusted. Shares are by
    direction, and empty where one congestion control ran. `error`: how far the simulator may be
    from a kernel; empty for other engines, and where the scenario is not known. `settling`: whether
    the runs had settled. `limited_by`: the links that packets waited longest for, where they are
    others than the one that the plan's path is about."""

    label: str
    count: str
    mark: str
    figures: list[Figure]
    shares: list[Share]
    error: str
    settling: str
    limited_by: str


def headline(group: Group) -> Headline:
    """The headline of a group. What its runs do not have is left out."""
    summaries = [run.summary for run in group.runs]
    rows: dict[str, list[Row]] = {}
    for row in compare_runs({group.label: summaries}):
        rows.setdefault(row.metric, []).append(row)
    figures = [
        _figure(name, rows[metric], group.label)
        for metric, name in _FIGURES.items()
        if metric in rows
    ]
    shares = [
        Share(
            name,
            cell,
            style.cc_colour(name.partition(",")[0]),
            _weight(summaries, name, cell),
            name.endswith(", down"),
        )
        for row in compare_shares(summaries)
        for name, cell in row.cells.items()
    ]
    settling = settled([summary["settling"] for summary in summaries])
    return Headline(
        group.label,
        count=group.count,
        mark=group.mark,
        figures=figures,
        shares=shares,
        error=_error(group),
        settling=settling,
        limited_by=_limited_by(summaries),
    )


def _weight(summaries: list[dict[str, Any]], name: str, cell: Cell) -> float:
    """The goodput of the flows of a share, over all runs; of one direction the share itself."""
    cc, _, direction = name.partition(", ")
    if not direction:
        return cell.mean
    rates = [
        flow["goodput_bps"] or 0.0
        for run in summaries
        for flow in run["flows"]
        if (flow["cc"], flow["direction"]) == (cc, direction)
    ]
    return sum(rates) / len(summaries) / 1e6


def _limited_by(summaries: list[dict[str, Any]]) -> str:
    """The links that limited the runs, where they are named ones."""
    limits = [summary["limit"] for summary in summaries]
    names = [
        f"{limit['link']} ({limit['direction']})"
        for limit in limits
        if limit.get("link") != "path" and "link" in limit
    ]
    return ", ".join(dict.fromkeys(names))


def _figure(name: str, rows: list[Row], label: str) -> Figure:
    """A figure in its first unit, with its mean in the second beside it."""
    first, *others = rows
    beside = ", ".join(f"{row.cells[label].mean:.{row.digits}f} {row.unit}" for row in others)
    return Figure(name, first.cells[label], first.unit, first.digits, beside)


def _error(group: Group) -> str:
    run = group.runs[0]
    trusted = run.trusted if run.metadata.engine == "sim" else None
    return "" if trusted is None else sentence(trusted[0])
