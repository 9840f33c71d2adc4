"""The HTML page: self-contained, opens offline."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import plotly.offline
from jinja2 import Environment, StrictUndefined, select_autoescape
from markupsafe import Markup

from fullpipe import __version__
from fullpipe.errors import UserError
from fullpipe.recording import Recording
from fullpipe.report import provenance
from fullpipe.report.comparison import BOOTSTRAP_SEED, compare_runs, compare_shares
from fullpipe.report.distributions import box_plots, cdf_plots
from fullpipe.report.interactive import html
from fullpipe.report.plots import Plot
from fullpipe.report.predictions import compare as compare_predictions
from fullpipe.report.runs import Group, grouped, read_run
from fullpipe.report.timeline import left_out, time_plots

#: Runs whose course over time is drawn; all are in the tables and distributions.
MAX_RUNS_OVER_TIME = 6
#: Flows that a page lists one by one; the table of groups has all.
MAX_FLOWS_LISTED = 1000
#: More runs than this, and the table of single runs is folded away.
MAX_RUNS_UNFOLDED = 8


def write_report(recordings: Sequence[Recording], out: Path, title: str | None = None) -> Path:
    """Writes the page and returns its path.

    Raises UserError where there is nothing to report or the file cannot be written."""
    if not recordings:
        raise UserError("report: no recordings given")
    page = render(grouped([read_run(recording) for recording in recordings]), title)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}") from None
    return out


def render(groups: Sequence[Group], title: str | None = None) -> str:
    """The page's text."""
    environment = Environment(
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    source = resources.files("fullpipe.report").joinpath("template.html")
    template = environment.from_string(source.read_text(encoding="utf-8"))
    runs = [run for group in groups for run in group.runs]
    alarm = "; ".join(f"{group.label}: {group.count}" for group in groups if group.mark)
    plots = cdf_plots(groups) + (box_plots(groups) if len(runs) > 1 else [])
    return template.render(
        title=title or " and ".join(group.label for group in groups),
        version=__version__,
        plotly=Markup(plotly.offline.get_plotlyjs()),
        groups=groups,
        runs=runs,
        several=any(len(run.summary["groups"]) < len(run.ccs) for run in runs),
        each=runs[: max(1, MAX_FLOWS_LISTED // max(len(run.ccs) for run in runs))],
        folded=len(runs) > MAX_RUNS_UNFOLDED,
        comparison=_comparison(groups) if len(runs) > 1 else [],
        shares=[(group, compare_shares([run.summary for run in group.runs])) for group in groups],
        bootstrap_seed=BOOTSTRAP_SEED,
        predictions=_predictions(groups),
        distributions=[_figure(plot, f"all-{plot.key}", alarm) for plot in plots],
        courses=[_course(i, group) for i, group in enumerate(groups[:MAX_RUNS_OVER_TIME])],
        hidden=len(runs) - min(len(groups), MAX_RUNS_OVER_TIME),
        repeats=[_repeat(group) for group in groups],
    )


def _comparison(groups: Sequence[Group]) -> list[Any]:
    return compare_runs({group.label: [run.summary for run in group.runs] for group in groups})


def _predictions(groups: Sequence[Group]) -> list[dict[str, Any]]:
    found = []
    for index, group in enumerate(groups):
        compared = compare_predictions(group)
        if compared is not None:
            drawn = _figure(compared.plot, f"predicted{index}", group.mark)
            found.append({"label": group.label, "models": compared, "figure": drawn})
    return found


def _course(index: int, group: Group) -> dict[str, Any]:
    run = group.runs[0]
    return {
        "label": group.label,
        "line": provenance.path_line(run),
        "seed": run.metadata.seed,
        "warnings": run.warnings,
        "left_out": left_out(run),
        "plots": [_figure(plot, f"run{index}-{plot.key}", run.mark) for plot in time_plots(run)],
    }


def _repeat(group: Group) -> dict[str, Any]:
    return {
        "label": group.label,
        "facts": provenance.facts(group),
        "commands": provenance.commands(group),
        "constants": provenance.constants(group),
        "toml": group.runs[0].recording.scenario_toml,
    }


def _figure(plot: Plot, identifier: str, alarm: str) -> dict[str, Any]:
    return {
        "drawn": html(plot, identifier, alarm), "note": plot.note, "over_time": plot.over_time,
    }  # fmt: skip
