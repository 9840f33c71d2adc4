"""What models predict for a scenario, beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fullpipe.plots import style
from fullpipe.plots.model import Plot, Trace
from fullpipe.report.runs import Group


@dataclass(frozen=True)
class Comparison:
    """Models beside a group's runs: a table (first row measured), cautions, a plot of shares."""

    ccs: list[str]
    rows: list[dict[str, Any]]
    cautions: list[str]
    plot: Plot


def compare(group: Group) -> Comparison | None:
    """The group's measurements and every model's prediction; None outside every model's domain."""
    trusted = group.runs[0].trusted
    if trusted is None:
        return None
    _, plan = trusted
    from fullpipe.models import predict  # a report without models' domains need not load them

    predictions = predict(plan, group.runs[0].metadata.warmup_ns / 1e9)
    if not predictions:
        return None
    ccs = group.ccs
    rows = [{"name": f"measured, mean ({group.count})", "measured": True, **_measured(group)}]
    rows += [
        {
            "name": f"predicted: {prediction.model}",
            "measured": False,
            "shares": prediction.shares,
            "queue_bytes": prediction.queue_bytes,
            "loss": prediction.loss,
            "jain": prediction.jain_index,
        }
        for prediction in predictions
    ]
    cautions = [
        f"{prediction.model}: {caution}"
        for prediction in predictions
        for caution in prediction.cautions
    ]
    return Comparison(ccs, rows, cautions, _plot(group, predictions))


def together(compared: Sequence[tuple[str, Comparison]]) -> Plot:
    """One plot of all groups, each (its label, its comparison): their rows one below the other."""
    if len(compared) == 1:
        return compared[0][1].plot
    traces: dict[str, Trace] = {}
    rows: list[str] = []
    for label, comparison in compared:
        for trace in comparison.plot.traces:
            x, y = trace.x, trace.y + len(rows)
            if before := traces.get(trace.name):
                x, y = np.concatenate((before.x, x)), np.concatenate((before.y, y))
            traces[trace.name] = replace(trace, x=x, y=y)
        alone = len(comparison.plot.rows) == 1
        rows += [label if alone else f"{label}: {row}" for row in comparison.plot.rows]
    measured = [trace for trace in traces.values() if trace.mark]
    models = [trace for trace in traces.values() if not trace.mark]
    return replace(compared[0][1].plot, traces=measured + models, rows=tuple(rows))


def _measured(group: Group) -> dict[str, Any]:
    paths = [run.summary["path"] for run in group.runs]
    return {
        "shares": {cc: _mean([run.shares.get(cc) for run in group.runs]) for cc in group.ccs},
        "queue_bytes": _mean([path["queue_bytes"]["mean"] for path in paths]),
        "loss": _mean([path["loss_ratio"] for path in paths]),
        "jain": _mean([run.summary["jain"] for run in group.runs]),
    }


def _mean(values: list[float | None]) -> float | None:
    finite = [value for value in values if value is not None and np.isfinite(value)]
    return float(np.mean(finite)) if finite else None


def _plot(group: Group, predictions: list[Any]) -> Plot:
    ccs = group.ccs
    traces = [
        Trace(
            f"{cc}, measured ({group.count})",
            style.cc_colour(cc),
            np.array([run.shares[cc] for run in group.runs if cc in run.shares]),
            np.full(sum(cc in run.shares for run in group.runs), float(row)),
            mark="circle",
        )
        for row, cc in enumerate(ccs)
    ]
    for position, prediction in enumerate(predictions):
        points = [
            (prediction.shares[cc], float(row))
            for row, cc in enumerate(ccs)
            if cc in prediction.shares
        ]
        if not points:  # a run that ended before any flow delivered
            continue
        x, y = np.array(points).T
        # Lines across the rows, one style a model.
        xs = np.column_stack((x, x, np.full(x.size, np.nan))).ravel()
        ys = np.column_stack((y - 0.35, y + 0.35, np.full(x.size, np.nan))).ravel()
        name = f"{prediction.model}, predicted"
        traces.append(Trace(name, style.NEUTRAL, xs, ys, style.dash(position), 1.8))
    return Plot(
        "shares",
        "Share of capacity, measured and predicted",
        x_title="goodput over nominal capacity",
        y_title="",
        traces=traces,
        rows=tuple(ccs),
        note="a point is one run, all flows of the congestion control",
    )
