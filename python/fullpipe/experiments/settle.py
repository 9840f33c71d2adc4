"""More runs where a verdict needs them: until it is settled, and on a real kernel where it would
contradict a paper.

Knows verdicts and the runner; decides which cells are run again, never what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from fullpipe.engines import engine
from fullpipe.errors import RunError, UserError
from fullpipe.experiments.entry import Entry, Size
from fullpipe.experiments.runner import Outcome, run_entries
from fullpipe.experiments.store import Store
from fullpipe.experiments.verdicts import EntryVerdicts, Status, judge
from fullpipe.plan import resolve
from fullpipe.sweep.schedule import Progress

#: Runs of a cell on the kernel: as many as an interval takes.
KERNEL_RUNS = 3
#: Of a cell that contradicts a paper: a million are minutes of a core for each run.
MOST_PACKETS = 1e6
_CONTRADICTED: frozenset[Status] = frozenset({"contradicted"})
#: What a claim's outcome is where some of its cells fail.
_FAILED: frozenset[Status] = frozenset({"partly", "contradicted", "differs"})
_Update = Callable[[Progress], None]


def settle(
    entries: Sequence[Entry], store: Store, size: Size, observed: Sequence[Path],
    jobs: int | None = None, on_progress: _Update = lambda _: None, keep_recordings: bool = False,
) -> Outcome:  # fmt: skip
    """Doubles the runs of the cells on which an uncertain verdict rests until none is left, or the
    entry's `most_repetitions` are reached. Of entries on the simulator alone."""
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
        _add(total, done)
        if done.interrupted or not done.ran:
            break
    return total


def confirm(
    entries: Sequence[Entry], store: Store, size: Size, observed: Sequence[Path],
    most_packets: float, jobs: int | None = None, on_progress: _Update = lambda _: None,
) -> Outcome:  # fmt: skip
    """Runs the cells in which a claim of a paper fails by the simulator alone in the virtual
    machine too, as far as that can run them: first those of contradictions, up to MOST_PACKETS,
    then those where it differs or holds in part, of at most so many packets."""
    total = Outcome()
    named = [
        entry
        for entry in entries
        if entry.engines == ["sim"] and entry.runnable and not entry.compare_engines
    ]
    for statuses, packets in ((_CONTRADICTED, MOST_PACKETS), (_FAILED, most_packets)):
        wanted = {}
        for entry in named:
            found = judge(entry, store, size, "sim", None, observed)
            fitting = _fitting(entry, size, _failing(found, statuses), packets)
            if fitting:
                wanted[entry.id] = dict.fromkeys(fitting, KERNEL_RUNS)
        chosen = [entry for entry in named if entry.id in wanted]
        done = run_entries(chosen, store, size, ["vm"], None, True, jobs, on_progress, "", wanted)
        _add(total, done)
        if done.interrupted:
            break
    return total


def _failing(found: EntryVerdicts, statuses: Collection[Status]) -> list[int]:
    return sorted(
        {
            cell
            for verdict in found.verdicts
            if verdict.claim.about == "paper" and verdict.status in statuses
            for cell in verdict.failing
        }
    )


def _more(found: EntryVerdicts) -> dict[int, int]:
    results = found.results
    most = max(results.entry.most_repetitions, results.entry.repetitions_of(results.size, "sim"))
    cells = {cell for verdict in found.verdicts for cell in verdict.unsettled}
    return {
        cell: min(most, 2 * len(results.runs[cell]))
        for cell in sorted(cells)
        if 0 < len(results.runs[cell]) < most
    }


def _fitting(entry: Entry, size: Size, cells: Iterable[int], most_packets: float) -> list[int]:
    found = []
    for index in cells:
        scenario = entry.cells(size)[index].scenario
        packets = scenario.path.rate * scenario.duration / 1e9 / (8 * scenario.path.mtu)
        try:
            engine("vm").check(resolve(scenario))
        except (UserError, RunError):
            continue
        if packets <= most_packets:
            found.append(index)
    return found


def _add(total: Outcome, done: Outcome) -> None:
    total.ran += done.ran
    total.interrupted |= done.interrupted
    total.failures |= done.failures
