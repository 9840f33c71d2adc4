"""Adds runs while a verdict is uncertain.

This module chooses the cells that are run again; it must not judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fullpipe.experiments.entry import Entry, Size
from fullpipe.experiments.run_store import Store
from fullpipe.experiments.runner import Outcome, run_entries
from fullpipe.experiments.verdicts import EntryVerdicts, judge
from fullpipe.sweep.schedule import Progress

_Update = Callable[[Progress], None]


def run_until_decided(
    entries: Sequence[Entry],
    store: Store,
    size: Size,
    observed: Sequence[Path],
    jobs: int | None = None,
    on_progress: _Update = lambda _: None,
    keep_recordings: bool = False,
) -> Outcome:
    """Doubles the runs of the cells that decide an uncertain verdict until none is uncertain or the
    entry's `most_repetitions` are reached; only for entries that run on the simulator alone."""
    total = Outcome()
    left = [entry for entry in entries if entry.engines == ["sim"] and entry.runnable]
    while left:
        wanted = {}
        for entry in left:
            more = _more(judge(entry, store, size, "sim", None, observed))
            if more:
                wanted[entry.id] = more
        left = [entry for entry in left if entry.id in wanted]
        done = run_entries(
            left, store, size, ["sim"], None, keep_recordings, jobs, on_progress, "", wanted
        )
        total.add(done)
        if done.interrupted or not done.ran:
            break
    return total


def _more(judgement: EntryVerdicts) -> dict[int, int]:
    results = judgement.results
    most = max(results.entry.most_repetitions, results.entry.repetitions_of(results.size, "sim"))
    cells = {cell for verdict in judgement.verdicts for cell in verdict.undecided}
    return {
        cell: min(most, 2 * len(results.runs[cell]))
        for cell in sorted(cells)
        if 0 < len(results.runs[cell]) < most
    }
