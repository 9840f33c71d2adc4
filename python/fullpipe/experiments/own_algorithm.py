"""A paper's experiment with another algorithm beside the paper's own.

Where an axis of the grid has the algorithms, it gets one more. Else the paper has one, and it and
the other become an axis of their own. Claims are about the paper's algorithms and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.congestion import userfiles
from fullpipe.congestion.registry import cc_set, cc_sets
from fullpipe.experiments.entry import Entry, Plot, Published, SizeOptions
from fullpipe.sweep.axes import Axis

#: The axis of an entry whose grid has none of algorithms.
AXIS = "algorithm"


def with_algorithm(entry: Entry, cc: str) -> Entry:
    """The entry with cells for a congestion control: a set's name, or a file.

    Raises UserError if it cannot be used, or if the entry's flows take theirs from an axis of other
    things, such as pairs of algorithms."""
    # Paths in an entry are relative to the entry; this one is to the caller's folder.
    is_file = userfiles.is_file_name(cc.partition("[")[0])
    algorithm = {"label": cc_set(cc).name, "file": str(Path(cc).absolute()) if is_file else cc}
    axis = _axis_of_algorithms(entry)
    if axis:
        return _rewritten(entry, axis, algorithm, {f"{{{axis}}}": f"{{{axis}.file}}"}, "")
    subject = _subject(entry)
    return _rewritten(entry, AXIS, algorithm, {subject: f"{{{AXIS}.file}}"}, subject)


def _axis_of_algorithms(entry: Entry) -> str:
    """The axis whose values are algorithms; empty if there is none."""
    grids = entry.grids()
    for name in [axis.name for axis in grids[0]] if grids else ():
        values = [
            value for axes in grids for axis in axes if axis.name == name for value in axis.values
        ]
        if values and all(isinstance(value, str) and value in cc_sets() for value in values):
            return name
    return ""


def _subject(entry: Entry) -> str:
    """The paper's algorithm: the first version of BBR that a flow of the entry has."""
    named = [
        str(flow.get("cc", ""))
        for key in ("flow", "traffic", "page")
        for flow in entry.scenario.get(key, ())
    ]
    for name in named:
        if name in cc_sets() and name.startswith("bbr"):
            return name
    raise UserError(
        f"{entry.source}: --cc: its flows have no algorithm that another could replace: "
        f"{', '.join(dict.fromkeys(named)) or 'it has no flows'}"
    )


def _rewritten(
    entry: Entry, axis: str, algorithm: dict[str, Any], templates: Mapping[str, str], subject: str
) -> Entry:
    """The entry with an axis of algorithms as tables: `label` is what metrics and figures call one,
    `file` what flows run."""
    label = f"{{{axis}.label}}"

    def grids(of: Sequence[Sequence[Axis]]) -> list[dict[str, Any]]:
        tables = [{each.name: list(each.values) for each in axes} for axes in of]
        extended = []
        for table in tables:
            paper = table.get(axis, [subject])
            more = [] if algorithm["label"] in paper else [algorithm]
            extended.append({**table, axis: [*map(_table, paper), *more]})
        return extended

    def size(options: SizeOptions) -> SizeOptions:
        changed = {
            "axis": grids(entry.grids(options)),
            "scenario": _filled(options.scenario, templates),
        }
        return options.model_copy(update=changed)

    def of_metric(text: str) -> str:
        if subject:
            return text.replace(f"'{subject}'", f"'{label}'")
        return text.replace(f"{{{axis}}}", label)

    metrics = {
        name: metric.model_copy(update={"value": of_metric(metric.value), "predict": None})
        for name, metric in entry.metric.items()
    }
    fields = {name: getattr(entry, name) for name in Entry.model_fields}
    return Entry.model_validate(
        fields
        | {
            "id": f"{entry.id}_with_{algorithm['label']}".replace("-", "_"),
            "axis": grids(entry.grids() or [[]]),
            "default": size(entry.default),
            "full": size(entry.full),
            "scenario": _filled(entry.scenario, templates),
            "metric": metrics,
            "published": [_of_paper(published, axis, subject) for published in entry.published],
            "observed": [] if subject else entry.observed,
            "plot": [_drawn_by(plot, axis) for plot in entry.plot],
            "claim": [],
        }
    )


def _table(name: str) -> dict[str, Any]:
    return {"label": name, "file": name}


def _filled(value: Any, templates: Mapping[str, str]) -> Any:
    """The scenario with these texts in place of algorithms' names. Keys of tables stay: parameters
    of the paper's algorithm are not the other's."""
    if isinstance(value, dict):
        return {key: _filled(inner, templates) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, templates) for inner in value]
    return templates.get(value, value) if isinstance(value, str) else value


def _of_paper(published: Published, axis: str, subject: str) -> Published:
    """The printed values, which are the paper's algorithm's alone."""
    return (
        published.model_copy(update={"at": {**published.at, axis: subject}})
        if subject
        else published
    )


def _drawn_by(plot: Plot, axis: str) -> Plot:
    """The plot with a series for each algorithm."""
    if axis in (plot.x, *plot.by, *plot.panel):
        return plot
    return plot.model_copy(update={"by": [*plot.by, axis]})
