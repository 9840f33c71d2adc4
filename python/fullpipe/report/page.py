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
from fullpipe.plots.model import Plot, within
from fullpipe.plots.plotly_renderer import html
from fullpipe.recording.recording import Recording
from fullpipe.report import provenance
from fullpipe.report.comparison import compare_runs, compare_shares
from fullpipe.report.distributions import box_plots, cdf_plots
from fullpipe.report.headline import headline
from fullpipe.report.naming import differences
from fullpipe.report.overlay import overlaid
from fullpipe.report.predictions import compare as compare_predictions
from fullpipe.report.predictions import together
from fullpipe.report.runs import Group, grouped, read_run
from fullpipe.report.templates import template
from fullpipe.report.tradeoff import tradeoff

#: Groups whose course over time is drawn; all are in the tables and distributions.
MAX_GROUPS_OVER_TIME = 8
#: Points of all plots of a page: what keeps it below 1 MB beside Plotly's script.
MAX_POINTS_OF_PAGE = 50_000
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


def _title(groups: Sequence[Group]) -> str:
    """What is compared, and of which scenario where all have its name."""
    listed = _listed([group.label for group in groups])
    names = {run.name for group in groups for run in group.runs}
    return listed if len(groups) == 1 or len(names) > 1 else f"{names.pop()}: {listed}"


def render(groups: Sequence[Group], title: str | None, plotly: Markup | None) -> str:
    """The page's text; `plotly` is what brings the library into it, None for static plots."""
    runs = [run for group in groups for run in group.runs]
    alarm = "; ".join(f"{group.label}: {group.count}" for group in groups if group.mark)
    distributions = cdf_plots(groups) + (box_plots(groups) if len(runs) > 1 else [])
    draw = _static if plotly is None else _interactive
    over_time = groups[:MAX_GROUPS_OVER_TIME]
    against = tradeoff(groups)
    plots = within([*overlaid(over_time), *distributions], MAX_POINTS_OF_PAGE)
    courses = plots[: len(plots) - len(distributions)]
    distributions = plots[len(courses) :]
    return template("template.html").render(
        title=title or _title(groups),
        version=__version__,
        library=plotly,
        groups=groups,
        runs=runs,
        several=any(len(run.summary["groups"]) < len(run.ccs) for run in runs),
        each=runs[: max(1, MAX_FLOWS_LISTED // max(1, *(len(run.ccs) for run in runs)))],
        folded=len(runs) > MAX_RUNS_UNFOLDED,
        with_links=[run for run in runs if has_names(run.summary["links"])],
        with_kinds=[(kind, [run for run in runs if kind.key in run.summary]) for kind in KINDS],
        headlines=[headline(group) for group in groups[:MAX_HEADLINES]],
        comparison=_comparison(groups) if len(runs) > 1 else [],
        shares=[(group, compare_shares([run.summary for run in group.runs])) for group in groups],
        predictions=_predictions(groups, draw),
        distributions=[draw(plot, f"all-{plot.key}", alarm) for plot in distributions],
        tradeoff=None if against.empty else draw(against, "all-tradeoff", alarm),
        course=_course(over_time, courses, draw),
        is_split=plotly is not None and any(plot.runs for plot in courses),
        hidden=len(groups) - len(over_time),
        differences=differences([group.identity for group in groups]),
        repeats=[_repeat(group) for group in groups],
    )


def _comparison(groups: Sequence[Group]) -> list[Any]:
    return compare_runs({group.label: [run.summary for run in group.runs] for group in groups})


def _predictions(groups: Sequence[Group], draw: Draw) -> dict[str, Any]:
    compared = [
        (group.label, comparison) for group in groups if (comparison := compare_predictions(group))
    ]
    if not compared:
        return {}
    alarm = "; ".join(f"{group.label}: {group.mark}" for group in groups if group.mark)
    return {
        "tables": [{"label": label, "models": comparison} for label, comparison in compared],
        "figure": draw(together(compared), "predicted", alarm),
        "cautions": list(
            dict.fromkeys(text for _, comparison in compared for text in comparison.cautions)
        ),
    }


def _course(groups: Sequence[Group], plots: Sequence[Plot], draw: Draw) -> dict[str, Any]:
    first = groups[0].runs[0]
    marks = "; ".join(f"{group.label}: {group.mark}" for group in groups if group.mark)
    alarm = groups[0].mark if len(groups) == 1 else marks
    return {
        "line": provenance.path_line([first]) if len(groups) == 1 else "",
        "seed": first.metadata.seed,
        "warnings": first.warnings if len(groups) == 1 else [],
        "is_mean": any(len(group.runs) > 1 for group in groups),
        "warmup_s": max((plot.warmup_s for plot in plots), default=0.0),
        "plots": [draw(plot, f"course-{plot.key}", alarm) for plot in plots],
    }


def _repeat(group: Group) -> dict[str, Any]:
    return {
        "label": group.label,
        "facts": provenance.facts(group),
        "commands": provenance.commands(group),
        "constants": provenance.constants(group),
        "toml": group.runs[0].recording.scenario_toml,
        "texts": provenance.texts(group),
    }


def _interactive(plot: Plot, identifier: str, alarm: str) -> dict[str, Any]:
    return {"drawn": html(plot, identifier, alarm), "plot": plot}


def _static(plot: Plot, _identifier: str, alarm: str) -> dict[str, Any]:
    from fullpipe.plots.matplotlib_renderer import svg  # matplotlib: only where it draws

    return {"drawn": svg(plot, alarm), "plot": plot}
