"""Groups of runs over time in the same plots: one plot a metric, whatever number of groups.

An algorithm keeps its colour; groups with the same one differ in their dashes. Where one algorithm
ran in all, each group has a colour. This module must not know a metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fullpipe.plots import style
from fullpipe.plots.model import Plot, Spans, Trace
from fullpipe.report.repetitions import group_plots
from fullpipe.report.runs import Group

#: More lines of flows than this in one plot cannot be told apart.
MAX_LINES = 12
#: More rows than this in one plot, and each group has those of its first flows only.
MAX_ROWS = 24


def overlaid(groups: Sequence[Group]) -> list[Plot]:
    """A plot for each metric that any group has over time, in the order of the first group that
    has it."""
    if len(groups) == 1:
        return group_plots(groups[0])
    most = max(1, MAX_LINES // len(groups))
    of_groups = [{plot.key: plot for plot in group_plots(group, most)} for group in groups]
    keys = list(dict.fromkeys(key for plots in of_groups for key in plots))
    look = _Look(groups)
    return [_merged([plots.get(key) for plots in of_groups], groups, look) for key in keys]


class _Look:
    """Which colour and dash each group's lines have."""

    def __init__(self, groups: Sequence[Group]) -> None:
        ccs = {cc for group in groups for cc in group.ccs}
        self.is_of_groups = len(ccs) == 1
        self.colours = [{style.cc_colour(cc) for cc in group.ccs} for group in groups]
        #: For each group, how many earlier ones share an algorithm with it.
        self.positions = [
            sum(bool(colours & earlier) for earlier in self.colours[:index])
            for index, colours in enumerate(self.colours)
        ]

    def dressed(self, trace: Trace, name: str, index: int) -> Trace:
        """The trace as one of the group with this index."""
        renamed = replace(trace, name=name, run=index)
        of_algorithm = trace.colour in self.colours[index]
        if self.is_of_groups:
            same = of_algorithm or trace.colour == style.NEUTRAL
            return replace(renamed, colour=style.line_colour(index)) if same else renamed
        if of_algorithm:
            position = self.positions[index]
            return replace(renamed, dash=style.dash(position)) if position else renamed
        if trace.colour == style.NEUTRAL and len(self.colours[index]) == 1:
            (colour,) = self.colours[index]
            return replace(renamed, colour=colour, dash=style.dash(self.positions[index]))
        return replace(renamed, dash=style.dash(index), opacity=style.opacity(index))


def _merged(plots: Sequence[Plot | None], groups: Sequence[Group], look: _Look) -> Plot:
    there = [(index, plot) for index, plot in enumerate(plots) if plot is not None]
    first = there[0][1]
    traces: list[Trace] = []
    for index, plot in there:
        lines = [trace for trace in plot.traces if not trace.is_reference]
        for trace in lines:
            label = groups[index].label
            is_alone = len(lines) == 1 and not first.key.startswith("variables")
            name = label if is_alone else f"{label}: {trace.name}"
            traces.append(look.dressed(trace, name, index))
    rights = {plot.right for _, plot in there}
    warmups = {plot.warmup_s for _, plot in there}
    return replace(
        first,
        traces=traces + _references(there, groups),
        rows=tuple(
            groups[index].label if len(plot.rows) == 1 else f"{groups[index].label}: {row}"
            for index, plot in there
            for row in _rows(plot, there)
        ),
        spans=_spans(there),
        boxes=[
            replace(box, label=f"{groups[index].label}: {box.label}")
            for index, plot in there
            for box in plot.boxes
        ],
        right=first.right if len(rights) == 1 else None,
        warmup_s=first.warmup_s if len(warmups) == 1 else 0.0,
        note=_common([plot.note for _, plot in there]),
        runs=() if first.rows or len(there) < 2 else tuple(group.label for group in groups),
    )


def _references(there: Sequence[tuple[int, Plot]], groups: Sequence[Group]) -> list[Trace]:
    """Rates and limits: one line where it is the same in all groups, else one a group."""
    by_line: dict[tuple[str, bytes], list[tuple[int, Trace]]] = {}
    for index, plot in there:
        for trace in plot.traces:
            if trace.is_reference:
                by_line.setdefault((trace.name, trace.y.tobytes()), []).append((index, trace))
    names = [name for name, _ in by_line]
    lines = []
    for (name, _), members in by_line.items():
        longest = max((trace for _, trace in members), key=lambda trace: trace.x[-1])
        if names.count(name) == 1:
            lines.append(longest)
            continue
        label = ", ".join(groups[index].label for index, _ in members)
        run = members[0][0] if len(members) == 1 else -1
        lines.append(replace(longest, name=f"{name}: {label}", run=run))
    return lines


def _rows(plot: Plot, there: Sequence[tuple[int, Plot]]) -> tuple[str, ...]:
    return plot.rows[: max(1, MAX_ROWS // len(there))]


def _spans(there: Sequence[tuple[int, Plot]]) -> list[Spans]:
    """The rows of all groups, one below the other, with the spans of each kind together."""
    by_name: dict[str, Spans] = {}
    offset = 0
    for _, plot in there:
        rows = len(_rows(plot, there))
        for spans in plot.spans:
            shown = spans.rows < rows
            moved = Spans(
                spans.name,
                spans.colour,
                rows=spans.rows[shown] + offset,
                starts=spans.starts[shown],
                ends=spans.ends[shown],
            )
            by_name[spans.name] = _joined(by_name.get(spans.name), moved)
        offset += rows
    ordered = style.phase_order(set(by_name))
    return [by_name[name] for name in ordered if by_name[name].rows.size]


def _joined(first: Spans | None, second: Spans) -> Spans:
    if first is None:
        return second
    rows, starts, ends = (
        np.concatenate((getattr(first, part), getattr(second, part)))
        for part in ("rows", "starts", "ends")
    )
    return Spans(first.name, first.colour, rows, starts, ends)


def _common(notes: Sequence[str]) -> str:
    """The parts of the notes that hold for all groups."""
    first, *others = (note.split("; ") for note in notes)
    return "; ".join(part for part in first if all(part in other for other in others))
