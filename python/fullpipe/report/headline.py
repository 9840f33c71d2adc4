"""What a reader wants first of a group of runs: five figures, and who got which share.

Intervals are those of `comparison`. Must never know how it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass

from fullpipe.agreement.expected import sentence
from fullpipe.metrics.settling import sentence as settled
from fullpipe.plots import style
from fullpipe.report.comparison import Cell, compare_runs, compare_shares
from fullpipe.report.runs import Group

#: Metric of `compare_runs` -> how it is called here.
_FIGURES = {
    "utilisation": "Utilisation",
    "queueing delay p50": "Queueing delay, median",
    "queueing delay p95": "Queueing delay, 95th percentile",
    "Jain index": "Fairness (Jain)",
    "loss": "Loss",
}


@dataclass(frozen=True)
class Figure:
    """One figure: what it is called, its mean and interval over the runs, unit and digits."""

    name: str
    cell: Cell
    unit: str
    digits: int


@dataclass(frozen=True)
class Share:
    """The share of goodput of the flows of one congestion control, as a bar is drawn."""

    name: str
    cell: Cell
    colour: str


@dataclass(frozen=True)
class Headline:
    """The figures of a group; `mark` says how many runs are not to be trusted. Shares are by
    direction, and empty where one congestion control ran. `error`: how far the simulator may be
    from a kernel; empty for other engines, and where the scenario is not known. `settling`: whether
    the runs had settled."""

    label: str
    count: str
    mark: str
    figures: list[Figure]
    shares: list[Share]
    error: str
    settling: str


def headline(group: Group) -> Headline:
    """The headline of a group. What its runs do not have is left out."""
    summaries = [run.summary for run in group.runs]
    rows = {row.metric: row for row in compare_runs({group.label: summaries})}
    figures = [
        Figure(name, rows[metric].cells[group.label], rows[metric].unit, rows[metric].digits)
        for metric, name in _FIGURES.items()
        if metric in rows
    ]
    shares = [
        Share(name, cell, style.cc_colour(name.partition(",")[0]))
        for row in compare_shares(summaries)
        for name, cell in row.cells.items()
    ]
    settling = settled([summary["settling"] for summary in summaries])
    return Headline(group.label, group.count, group.mark, figures, shares, _error(group), settling)


def _error(group: Group) -> str:
    run = group.runs[0]
    trusted = run.trusted if run.metadata.engine == "sim" else None
    return "" if trusted is None else sentence(trusted[0])
