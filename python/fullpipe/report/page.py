"""The HTML pages: one that is self-contained, or a folder of them; all open offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fullpipe import __version__
from fullpipe.base.errors import UserError
from fullpipe.base.writing import write_text
from fullpipe.metrics import has_names
from fullpipe.metrics.kinds import KINDS
from fullpipe.plots import plotly_script
from fullpipe.plots.model import Plot
from fullpipe.plots.plotly_renderer import html
from fullpipe.recording.recording import Recording
from fullpipe.report import provenance
from fullpipe.report.comparison import BOOTSTRAP_SEED, compare_runs, compare_shares
from fullpipe.report.distributions import box_plots, cdf_plots
from fullpipe.report.headline import headline
from fullpipe.report.predictions import compare as compare_predictions
from fullpipe.report.repetitions import group_plots
from fullpipe.report.runs import Group, grouped, read_run
from fullpipe.report.templates import template

#: Runs whose course over time is drawn; all are in the tables and distributions.
MAX_RUNS_OVER_TIME = 6
#: The same of a light page, which is to stay below 300 kB.
MAX_RUNS_OVER_TIME_LIGHT = 2
#: Flows that a page lists one by one; the table of groups has all.
MAX_FLOWS_LISTED = 1000
#: More runs than this, and the table of single runs is folded away.
MAX_RUNS_UNFOLDED = 8

#: Groups whose figures stand at the top; all are in the tables.
MAX_HEADLINES = 6

#: Draws a plot under an identifier, with an alarm.
Draw = Callable[[Plot, str, str], dict[str, Any]]


def write_report(
    recordings: Sequence[Recording], out: Path, title: str | None = None, light: bool = False
) -> Path:
    """Writes one page that needs nothing else and returns its path; a light one has static plots
    and less of each run over time.

    Raises UserError where there is nothing to report or the file cannot be written."""
    if not recordings:
        raise UserError("report: no recordings given")
    groups = grouped([read_run(recording) for recording in recordings])
    write_text(out, render(groups, title, None if light else plotly_script.inline()))
    return out


def write_pages(
    recordings: Sequence[Recording], folder: Path, title: str | None = None, light: bool = False
) -> Path:
    """Writes a page for each scenario, and an index of them, which share one copy of the plotting
    library; returns the index.

    Raises UserError where there is nothing to report or a file cannot be written."""
    if not recordings:
        raise UserError("report: no recordings given")
    groups = grouped([read_run(recording) for recording in recordings])
    link = None if light else Markup('<script src="{}"></script>').format(plotly_script.file_name())
    if not light:
        write_text(folder / plotly_script.file_name(), plotly_script.script())
    links = []
    for index, group in enumerate(groups):
        page = f"{index + 1:03d}.html"
        write_text(folder / page, render([group], None, link))
        links.append({"page": page, "label": group.label, "count": group.count})
    heading = title or f"{len(groups)} scenarios"
    write_text(folder / "index.html", template("index.html").render(title=heading, links=links))
    return folder / "index.html"


def _listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def render(groups: Sequence[Group], title: str | None, plotly: Markup | None) -> str:
    """The page's text; `plotly` is what brings the library into it, None for static plots."""
    runs = [run for group in groups for run in group.runs]
    alarm = "; ".join(f"{group.label}: {group.count}" for group in groups if group.mark)
    plots = cdf_plots(groups) + (box_plots(groups) if len(runs) > 1 else [])
    draw = _static if plotly is None else _interactive
    over_time = groups[: MAX_RUNS_OVER_TIME if plotly is not None else MAX_RUNS_OVER_TIME_LIGHT]
    return template("template.html").render(
        title=title or _listed([group.label for group in groups]),
        version=__version__,
        library=plotly,
        groups=groups,
        runs=runs,
        several=any(len(run.summary["groups"]) < len(run.ccs) for run in runs),
        each=runs[: max(1, MAX_FLOWS_LISTED // max(1, *(len(run.ccs) for run in runs)))],
        folded=len(runs) > MAX_RUNS_UNFOLDED,
        with_links=[run for run in runs if has_names(run.summary["links"])],
        with_kinds=[(kind, [run for run in runs if kind.key in run.summary]) for kind in KINDS],
        with_traffic=[run for run in runs if "traffic" in run.summary],
        headlines=[headline(group) for group in groups[:MAX_HEADLINES]],
        comparison=_comparison(groups) if len(runs) > 1 else [],
        shares=[(group, compare_shares([run.summary for run in group.runs])) for group in groups],
        bootstrap_seed=BOOTSTRAP_SEED,
        predictions=_predictions(groups, draw),
        distributions=[draw(plot, f"all-{plot.key}", alarm) for plot in plots],
        courses=[_course(i, group, draw) for i, group in enumerate(over_time)],
        hidden=len(runs) - len(over_time),
        repeats=[_repeat(group) for group in groups],
    )


def _comparison(groups: Sequence[Group]) -> list[Any]:
    return compare_runs({group.label: [run.summary for run in group.runs] for group in groups})


def _predictions(groups: Sequence[Group], draw: Draw) -> list[dict[str, Any]]:
    found = []
    for index, group in enumerate(groups):
        compared = compare_predictions(group)
        if compared is not None:
            drawn = draw(compared.plot, f"predicted{index}", group.mark)
            found.append({"label": group.label, "models": compared, "figure": drawn})
    return found


def _course(index: int, group: Group, draw: Draw) -> dict[str, Any]:
    run = group.runs[0]
    return {
        "label": group.label,
        "line": provenance.path_line([run]),
        "seed": run.metadata.seed,
        "warnings": run.warnings,
        "is_mean": len(group.runs) > 1,
        "plots": [draw(plot, f"run{index}-{plot.key}", group.mark) for plot in group_plots(group)],
    }


def _repeat(group: Group) -> dict[str, Any]:
    return {
        "label": group.label,
        "facts": provenance.facts(group),
        "commands": provenance.commands(group),
        "constants": provenance.constants(group),
        "toml": group.runs[0].recording.scenario_toml,
    }


def _interactive(plot: Plot, identifier: str, alarm: str) -> dict[str, Any]:
    return {"drawn": html(plot, identifier, alarm), "plot": plot}


def _static(plot: Plot, _identifier: str, alarm: str) -> dict[str, Any]:
    from fullpipe.plots.matplotlib_renderer import svg  # matplotlib: only where it draws

    return {"drawn": svg(plot, alarm), "plot": plot}
