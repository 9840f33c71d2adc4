"""The HTML page: self-contained, opens offline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import plotly.offline
from jinja2 import Environment, select_autoescape
from markupsafe import Markup

from fullpipe import __version__
from fullpipe.errors import UserError
from fullpipe.metrics import summarise
from fullpipe.recording import Recording
from fullpipe.report.series import Plot, by_scenario, cdf_plots, goodput_boxes, time_plots
from fullpipe.report.style import colour, dash
from fullpipe.units import format_rate, format_time

#: Runs whose course over time is drawn; all are in the tables and distributions.
MAX_RUNS_OVER_TIME = 6


def write_report(recordings: Sequence[Recording], out: Path, title: str | None = None) -> Path:
    """Writes the page and returns its path.

    Raises UserError where there is nothing to report or the file cannot be written."""
    if not recordings:
        raise UserError("report: no recordings given")
    summaries = [summarise(recording) for recording in recordings]
    environment = Environment(autoescape=select_autoescape(default=True, default_for_string=True))
    source = resources.files("fullpipe.report").joinpath("template.html")
    template = environment.from_string(source.read_text(encoding="utf-8"))
    groups = by_scenario(recordings)
    first = [runs[0] for runs in groups.values()][:MAX_RUNS_OVER_TIME]
    page = template.render(
        title=title or " and ".join(groups),
        version=__version__,
        plotly=Markup(plotly.offline.get_plotlyjs()),
        runs=[
            _run(recording, summary)
            for recording, summary in zip(recordings, summaries, strict=True)
        ],
        overview=[_figure(plot, f"all-{plot.key}") for plot in cdf_plots(recordings)]
        + ([_boxes(recordings)] if len(recordings) > 1 else []),
        courses=[_course(index, recording) for index, recording in enumerate(first)],
        hidden=len(recordings) - len(first),
        repeats=_repeats(groups),
    )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}") from None
    return out


def _run(recording: Recording, summary: dict[str, Any]) -> dict[str, Any]:
    metadata = recording.metadata
    problems = list(metadata.get("health", {}).get("problems", []))
    if metadata.get("interrupted"):
        problems.append("interrupted before its end")
    if metadata.get("failure"):
        problems.append(f"failed: {metadata['failure']}")
    return {
        "name": summary["scenario"], "engine": summary["engine"], "seed": summary["seed"],
        "summary": summary, "problems": problems,
    }  # fmt: skip


def _course(index: int, recording: Recording) -> dict[str, Any]:
    plan = recording.metadata.get("plan", {})
    path = plan.get("path", {})
    line = ""
    if path:
        rtt_ns = path["forward_delay_ns"] + path["reverse_delay_ns"]
        kind = path["qdisc"]["aqm"]["kind"]
        limit = path["qdisc"]["limit_bytes"]
        held = f"{limit} bytes" if limit else f"{path['qdisc']['limit_packets']} packets"
        line = f"{format_rate(path['rate_bps'])}, base RTT {format_time(rtt_ns)}, {kind} of {held}"
    return {
        "name": plan.get("name") or recording.path.name,
        "line": line,
        "seed": recording.metadata.get("seed"),
        "plots": [_figure(plot, f"run{index}-{plot.key}") for plot in time_plots(recording)],
    }


def _repeats(groups: dict[str, list[Recording]]) -> list[dict[str, Any]]:
    repeats = []
    for name, runs in groups.items():
        metadata = runs[0].metadata
        constants = json.dumps(metadata.get("constants", {}), indent=1, sort_keys=True)
        repeats.append({
            "name": name, "toml": runs[0].scenario_toml, "n": len(runs),
            "engine": metadata.get("engine"), "seed": metadata.get("seed"),
            "version": metadata.get("fullpipe_version"), "commit": metadata.get("git_commit"),
            "kernel": metadata.get("kernel"), "constants": constants,
        })  # fmt: skip
    return repeats


def _layout(title: str, x_title: str, y_title: str) -> dict[str, Any]:
    axis = {"gridcolor": "#e8e8e8", "zerolinecolor": "#d0d0d0", "linecolor": "#888"}
    return {
        "title": {"text": title, "font": {"size": 15}, "x": 0.01},
        "xaxis": {**axis, "title": {"text": x_title}},
        "yaxis": {**axis, "title": {"text": y_title}, "rangemode": "tozero"},
        "height": 320,
        "margin": {"l": 70, "r": 20, "t": 45, "b": 45},
        "plot_bgcolor": "white",
        "font": {"family": "system-ui, sans-serif", "color": "#222"},
        "legend": {"font": {"size": 12}},
        "showlegend": True,
    }


def _figure(plot: Plot, identifier: str) -> Markup:
    figure = go.Figure(layout=_layout(plot.title, plot.x_title, plot.y_title))
    for line in plot.lines:
        shape = "hv" if plot.categories else "linear"
        style = {"color": colour(line.group), "dash": dash(line.position), "width": 1.4}
        style["shape"] = shape
        figure.add_scatter(x=line.x, y=line.y, name=_plain(line.name), mode="lines", line=style)
    if plot.categories:
        ticks = list(range(len(plot.categories)))
        figure.update_yaxes(tickvals=ticks, ticktext=list(plot.categories))
    return _html(figure, identifier)


def _boxes(recordings: Sequence[Recording]) -> Markup:
    figure = go.Figure(layout=_layout("Goodput of flows", "", "Mbit/s"))
    for label, cc, values in goodput_boxes(recordings):
        marker = {"color": colour(cc)}
        figure.add_box(y=values, name=_plain(label), marker=marker, boxpoints="all", jitter=0.3)
    return _html(figure, "all-goodput")


def _plain(text: str) -> str:
    """Plotly reads a little HTML in names: it gets none."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _html(figure: go.Figure, identifier: str) -> Markup:
    config = {"displaylogo": False, "responsive": True}
    return Markup(
        figure.to_html(full_html=False, include_plotlyjs=False, div_id=identifier, config=config)
    )
