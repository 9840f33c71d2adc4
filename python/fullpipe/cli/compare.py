"""`fullpipe compare`: congestion controls beside one another on one path."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tomli_w
import typer
from rich.table import Table
from scipy import stats

from fullpipe.cli.output import console, fail, messages, number, progress
from fullpipe.engines import engine_names, run_scenario
from fullpipe.errors import UserError
from fullpipe.metrics import summarise
from fullpipe.recording import Recording
from fullpipe.report import write_report
from fullpipe.scenario import make_scenario

#: What is compared: name, unit, digits, and where it stands in a summary.
_METRICS: list[tuple[str, str, int, Callable[[dict[str, Any]], float | None]]] = [
    ("goodput", "Mbit/s", 2, lambda s: sum(f["goodput_bps"] for f in s["flows"]) / 1e6),
    ("queueing delay p50", "RTTmin", 3, lambda s: s["path"]["queue_delay_rttmin"]["p50"]),
    ("queueing delay p95", "RTTmin", 3, lambda s: s["path"]["queue_delay_rttmin"]["p95"]),
    ("ping p95", "ms", 1, lambda s: s["ping_ms"]["p95"]),
    ("loss", "%", 3, lambda s: 100 * s["path"]["loss_ratio"]),
    ("Jain", "", 3, lambda s: s["jain"]),
]


def compare(
    names: Annotated[list[str], typer.Argument(help="congestion controls, such as bbr3 cubic")],
    rate: Annotated[str, typer.Option(help="rate of the bottleneck")] = "100mbit",
    rtt: Annotated[str, typer.Option(help="base RTT")] = "40ms",
    buffer: Annotated[str, typer.Option(help="limit of the queue")] = "1bdp",
    qdisc: Annotated[str, typer.Option(help="fifo, fq, codel, fq_codel, red, cake")] = "fifo",
    flows: Annotated[int, typer.Option(min=1, max=500, help="equal flows in each run")] = 1,
    duration: Annotated[str, typer.Option(help="of each run")] = "30s",
    warmup: Annotated[str, typer.Option(help="left out of the metrics")] = "5s",
    loss: Annotated[str, typer.Option(help="random loss")] = "0%",
    repeat: Annotated[int, typer.Option(min=1, max=1000, help="runs of each, by seed")] = 5,
    engine: Annotated[str, typer.Option(help="sim, vm or live")] = "sim",
    together: Annotated[bool, typer.Option(help="all in one run, against each other")] = False,
    out: Annotated[Path | None, typer.Option(help="folder for recordings and report")] = None,
    json_: Annotated[bool, typer.Option("--json", help="print the metrics as JSON")] = False,
) -> int:
    """Compares congestion controls on the same path, each alone or all together.

    Medians over the runs with 95 % intervals (bootstrap); with two controls alone, Welch's t-test
    for each metric. The unit of repetition is the run."""
    if engine not in engine_names():
        raise UserError(f"--engine {engine}: unknown; known are {', '.join(engine_names())}")
    base = out or Path("recordings") / f"compare-{time.strftime('%Y%m%d-%H%M%S')}"
    groups = [names] if together else [[name] for name in names]
    if len({tuple(group) for group in groups}) < len(groups):
        raise UserError("compare: a name is given twice")
    results: dict[str, list[Recording]] = {}
    for group in groups:
        label = " + ".join(group)
        document: dict[str, Any] = {
            "name": f"compare {label}", "duration": duration, "warmup": warmup,
            "path": {"rate": rate, "rtt": rtt, "buffer": buffer, "qdisc": qdisc, "loss": loss},
            "flow": [{"cc": name, "count": flows} for name in group],
            "probe": [{"kind": "ping"}],
        }  # fmt: skip
        scenario = make_scenario(document, "compare")
        folder = base / label.replace(" ", "").replace(":", "_")
        folders = [folder / f"run-{index:03d}" for index in range(repeat)]
        with progress(label[:40], scenario.duration / 1e9 * repeat) as update:
            outcome = run_scenario(scenario, tomli_w.dumps(document), folders, engine, {}, update)
        results[label] = outcome.recordings
        if outcome.interrupted:
            fail(f"interrupted; what was recorded is readable in {base}", 130)
        if outcome.failures:
            fail("; ".join(outcome.failures), 1)
    summaries = {label: [summarise(run) for run in runs] for label, runs in results.items()}
    if json_:
        print(json.dumps(summaries, allow_nan=False))
    else:
        console.print(_table(summaries, repeat))
        if together:
            console.print(_shares(summaries))
    page = write_report([run for runs in results.values() for run in runs], base / "report.html")
    messages.print(f"report: {page}")
    return 0


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """A 95 % bootstrap interval (BCa, seeded) of the median; None for fewer than 3 values or where
    all are equal."""
    if len(values) < 3 or len(set(values)) == 1:
        return None
    found = stats.bootstrap((np.array(values),), np.median, n_resamples=2000, rng=1)
    low, high = found.confidence_interval
    return (float(low), float(high)) if np.isfinite([low, high]).all() else None


def _table(summaries: dict[str, list[dict[str, Any]]], repeat: int) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column(f"median of {repeat} runs")
    for label in summaries:
        table.add_column(label, justify="right", overflow="fold")
    pair = list(summaries.values()) if len(summaries) == 2 and repeat > 1 else None
    if pair:
        table.add_column("Welch p", justify="right")
    for name, unit, digits, get in _METRICS:
        columns = [
            [value for summary in runs if (value := get(summary)) is not None]
            for runs in summaries.values()
        ]
        if any(len(column) < repeat for column in columns):
            continue
        cells = [_cell(column, digits) for column in columns]
        if pair:
            same = any(len(set(column)) == 1 for column in columns)
            p_value = None if same else float(stats.ttest_ind(*columns, equal_var=False).pvalue)
            cells.append("-" if p_value is None else f"{p_value:.2g}")
        table.add_row(f"{name} ({unit})" if unit else name, *cells)
    return table


def _cell(values: list[float], digits: int) -> str:
    middle = number(float(np.median(values)), 1, digits)
    around = interval(values)
    if around is None:
        return middle
    return f"{middle} [{around[0]:.{digits}f}, {around[1]:.{digits}f}]"


def _shares(summaries: dict[str, list[dict[str, Any]]]) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("congestion control")
    table.add_column("share of goodput", justify="right")
    for runs in summaries.values():
        names = list(dict.fromkeys(flow["cc"] for flow in runs[0]["flows"]))
        for name in names:
            shares = [
                sum(flow["share"] for flow in run["flows"] if flow["cc"] == name) for run in runs
            ]
            table.add_row(name, _cell(shares, 3))
    return table
