"""Groups of runs beside one another: means, intervals and a named test for each metric.

The unit of repetition is the run. Must never know how a table is printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from fullpipe.metrics.harm import harm
from fullpipe.metrics.kinds import KINDS

#: What one run's summary (`metrics.summarise`) is compared by: name, unit, digits, value.
#: Completion comes first: of flows with an end goodput over the run says how long it lasted.
_METRICS: list[tuple[str, str, int, Callable[[dict[str, Any]], float | None]]] = [
    ("completion time", "s", 2, lambda s: _of_completion(s, "mean")),
    ("completion time p50", "s", 2, lambda s: _of_completion(s, "p50", least=2)),
    ("completion time p95", "s", 2, lambda s: _of_completion(s, "p95", least=2)),
    ("goodput", "Mbit/s", 2, lambda s: _goodput_mbps(s)),
    ("utilisation", "%", 2, lambda s: _percent(s["limit"]["utilisation"])),
    ("mean wait", "ms", 1, lambda s: _wait_ms(s)),
    ("queueing delay p50", "ms", 1, lambda s: s["limit"]["queue_delay_ms"]["p50"]),
    ("queueing delay p50", "RTTmin", 3, lambda s: s["limit"]["queue_delay_rttmin"]["p50"]),
    ("queueing delay p95", "ms", 1, lambda s: s["limit"]["queue_delay_ms"]["p95"]),
    ("queueing delay p95", "RTTmin", 3, lambda s: s["limit"]["queue_delay_rttmin"]["p95"]),
    ("ping p50", "ms", 1, lambda s: s["ping_ms"]["p50"]),
    ("ping p95", "ms", 1, lambda s: s["ping_ms"]["p95"]),
    ("loss", "%", 3, lambda s: _percent(s["limit"]["loss_ratio"])),
    ("Jain index", "", 3, lambda s: s["jain"]),
]
#: The group of flows whose harm is measured, in a scenario of `compare --harm-to`.
OTHERS = "others"
#: What they may lose: name, what is better, value in a run's summary.
_HARMS: list[tuple[str, Literal["more", "less"], Callable[[dict[str, Any]], float | None]]] = [
    ("goodput", "more", lambda s: _others(s)["goodput_bps"]["mean"]),
    ("ping p95", "less", lambda s: s["ping_ms"]["p95"]),
    ("retransmissions", "less", lambda s: _others(s)["retransmit_ratio"]),
]
#: The smallest difference that is worth noticing: of the mean of the first group, and of ratios.
LEAST_RELATIVE, LEAST_RATIO = 0.05, 0.02
#: Metrics that are ratios: name -> what 1 is in its unit.
_RATIOS = {"utilisation": 100.0, "loss": 100.0, "Jain index": 1.0}
#: Fewer runs have no interval, and a page of them does not wait for the libraries of statistics.
LEAST_RUNS = 3


@dataclass(frozen=True)
class Cell:
    """One metric of one group of n runs: mean and 95 % interval; `method` is "Student's t", or
    "constant" where all runs gave the same. None where n is below 3."""

    n: int
    mean: float
    low: float | None
    high: float | None
    method: str | None
    values: list[float]


@dataclass(frozen=True)
class Test:
    """A test of "all groups have the same mean": p, or the reason why there is none; beside it the
    Kruskal-Wallis test on ranks, which assumes less."""

    name: str
    p_value: float | None
    kruskal_wallis_p: float | None
    missing: str


@dataclass(frozen=True)
class Difference:
    """How much larger a group's mean is than that of the first: with its 95 % interval (Welch),
    which is None below two runs of each, and where both are constant. `is_noticeable`: whether all
    of the interval lies beyond `least`; None where it lies on both sides of that."""

    mean: float
    low: float | None
    high: float | None
    least: float
    is_noticeable: bool | None


@dataclass(frozen=True)
class Row:
    """One metric over all groups; the test is None for a single group. `differences`: of each group
    but the first from that. `censored`: group -> runs with a flow that had not ended."""

    metric: str
    unit: str
    digits: int
    cells: dict[str, Cell]
    test: Test | None
    differences: dict[str, Difference]
    censored: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON values."""
        return asdict(self)


def compare_runs(summaries: Mapping[str, Sequence[dict[str, Any]]]) -> list[Row]:
    """A row for every metric that each run of each group has; `summaries`: group -> its runs'."""
    rows = []
    for name, unit, digits, value in _METRICS:
        values = {label: [value(run) for run in runs] for label, runs in summaries.items()}
        row = compare_values(name, unit, digits, values)
        if row is not None and name.startswith("completion"):
            row = replace(
                row, censored={label: _censored(runs) for label, runs in summaries.items()}
            )
        if row is not None:
            rows.append(row)
    return rows + _of_kinds(summaries)


def _of_kinds(summaries: Mapping[str, Sequence[dict[str, Any]]]) -> list[Row]:
    """The figures of pages, streams and probes that every run has, by their names."""
    rows = []
    for kind in KINDS:
        names = [
            {entry[kind.named] for entry in run.get(kind.key, ())}
            for runs in summaries.values()
            for run in runs
        ]
        for name in sorted(set.intersection(*names)) if names else ():
            for figure in kind.figures:
                if not figure.compared:
                    continue
                values = {
                    label: [
                        figure.read(
                            next(entry for entry in run[kind.key] if entry[kind.named] == name)
                        )
                        for run in runs
                    ]
                    for label, runs in summaries.items()
                }
                title = f"{kind.word} {name}: {figure.compared}"
                row = compare_values(title, figure.unit, figure.digits, values)
                if row is not None:
                    rows.append(row)
    return rows


def compare_values(
    metric: str,
    unit: str,
    digits: int,
    values: Mapping[str, Sequence[float | None]],
    lowest: float = 0.0,
) -> Row | None:
    """The row of one metric from one value a run; None where a run has none. No interval reaches
    below `lowest`, the least that the metric can be, nor a ratio's beyond 1."""
    finite = {
        label: [value for value in column if value is not None and math.isfinite(value)]
        for label, column in values.items()
    }
    if any(not column or len(column) < len(values[label]) for label, column in finite.items()):
        return None
    bounds = lowest, _RATIOS.get(metric, math.inf)
    cells = {label: _cell(column, *bounds) for label, column in finite.items()}
    test = _test(finite) if len(finite) > 1 else None
    return Row(metric, unit, digits, cells, test, _differences(metric, finite))


def compare_shares(summaries: Sequence[dict[str, Any]]) -> list[Row]:
    """The share of goodput of each congestion control in runs that they were in together, by
    direction where there are two; empty where there is but one. Shares of a direction sum to 1, so
    between them there is no test: it would count everything twice."""
    values: dict[str, list[float | None]] = {}
    has_two = len({flow["direction"] for run in summaries for flow in run["flows"]}) > 1
    for run in summaries:
        shares: dict[str, list[float | None]] = {}
        for flow in run["flows"]:
            label = f"{flow['cc']}, {flow['direction']}" if has_two else flow["cc"]
            shares.setdefault(label, []).append(flow["share"])
        for label, parts in shares.items():
            valid = [share for share in parts if share is not None]
            values.setdefault(label, []).append(sum(valid) if len(valid) == len(parts) else None)
    row = compare_values("share of goodput", "", 3, values) if len(values) > 1 else None
    return [replace(row, test=None, differences={})] if row is not None else []


def compare_harm(
    alone: Sequence[dict[str, Any]], beside: Mapping[str, Sequence[dict[str, Any]]]
) -> list[Row]:
    """Harm to the flows called `others`: a row for each metric, of every group of `beside`, whose
    runs are held against those of the same seed in `alone`, where nobody stood in its place.

    A metric that is nothing in both (no retransmission) has no harm, and no row."""
    rows = []
    for name, better, value in _HARMS:
        without = [value(run) for run in alone]
        harms = {
            label: [
                None
                if undisturbed is None or disturbed is None
                else harm(undisturbed, disturbed, better)
                for undisturbed, disturbed in zip(without, map(value, runs), strict=True)
            ]
            for label, runs in beside.items()
        }
        row = compare_values(f"harm: {name}", "", 3, harms, -math.inf)
        if row is not None:
            rows.append(row)
    return rows


def _others(summary: dict[str, Any]) -> dict[str, Any]:
    """The group of the flows called `others`: the last one, whatever their number appends."""
    group: dict[str, Any] = summary["groups"][-1]
    assert group["group"].partition(".")[0] == OTHERS
    return group


def _cell(values: list[float], lowest: float, highest: float) -> Cell:
    mean = float(np.mean(values))
    if len(values) < LEAST_RUNS:
        return Cell(len(values), mean, None, None, None, values)
    if min(values) == max(values):
        return Cell(len(values), mean, mean, mean, "constant", values)
    from fullpipe.statistics.intervals import half_width

    half = half_width(values)
    low, high = max(mean - half, lowest), min(mean + half, highest)
    return Cell(len(values), mean, low, high, "Student's t", values)


def _differences(metric: str, groups: Mapping[str, list[float]]) -> dict[str, Difference]:
    (_, first), *others = groups.items()
    least = LEAST_RELATIVE * abs(float(np.mean(first)))
    if metric in _RATIOS:
        least = LEAST_RATIO * _RATIOS[metric]
    return {label: _difference(first, column, least) for label, column in others}


def _difference(first: list[float], other: list[float], least: float) -> Difference:
    mean = float(np.mean(other) - np.mean(first))
    if min(len(first), len(other)) < 2:
        return Difference(mean, None, None, least, None)
    from fullpipe.statistics.intervals import welch_interval

    interval = welch_interval(first, other)
    low, high = interval or (mean, mean)
    is_noticeable = None
    if min(abs(low), abs(high)) >= least and low * high > 0:
        is_noticeable = True
    elif max(abs(low), abs(high)) < least or low == high == 0:
        is_noticeable = False
    return Difference(
        mean, low if interval else None, high if interval else None, least, is_noticeable
    )


def _test(groups: Mapping[str, list[float]]) -> Test:
    name = "Welch's t-test" if len(groups) == 2 else "Welch's ANOVA"
    if any(len(column) < 2 for column in groups.values()):
        return Test(name, None, None, "needs 2 runs of each")
    from fullpipe.statistics.anova import kruskal_wallis, welch_anova
    from fullpipe.statistics.groups import by_run

    tested = by_run(groups)
    welch, kruskal = welch_anova(tested), kruskal_wallis(tested)
    constant = [label for label, column in groups.items() if len(set(column)) == 1]
    missing = f"all runs of {', '.join(constant)} are equal" if welch is None else ""
    if len(constant) == len(groups):
        means = {column[0] for column in groups.values()}
        missing = f"runs do not vary, the means {'differ' if len(means) > 1 else 'are equal'}"
    # For two groups Welch's F is the square of Welch's t, and p the same.
    return Test(
        name, welch.p_value if welch else None, kruskal.p_value if kruskal else None, missing
    )


def _of_completion(summary: dict[str, Any], part: str, least: int = 1) -> float | None:
    """A statistic of the completion times of flows with an end, of so many at least."""
    completion = summary["completion"]
    if completion is None or completion["flows"] < least:
        return None
    value: float | None = completion["completion_s"][part]
    return value


def _censored(runs: Sequence[dict[str, Any]]) -> int:
    """Runs in which a flow with an end had not reached it."""
    return sum(bool(run["completion"] and run["completion"]["censored"]) for run in runs)


def _goodput_mbps(summary: dict[str, Any]) -> float | None:
    """Of all flows over the window; where all have an end, the mean of each over its own time."""
    completion = summary["completion"]
    is_own = completion is not None and completion["is_all"]
    return _mega(completion["goodput_bps"]["mean"] if is_own else summary["goodput_bps"])


def _wait_ms(summary: dict[str, Any]) -> float | None:
    """Where the queueing delay is not known (Wi-Fi), by backlog over throughput."""
    limit = summary["limit"]
    wait: float | None = limit["wait_ms"] if limit["queue_delay_ms"]["p50"] is None else None
    return wait


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio


def _mega(rate_bps: float | None) -> float | None:
    return None if rate_bps is None else rate_bps / 1e6
