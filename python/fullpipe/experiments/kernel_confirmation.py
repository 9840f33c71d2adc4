"""Runs, on a real kernel, the cells in which a claim fails in the simulator alone.

Claims that contradict a paper come first, then those that differ or hold in part; within each group
the cheapest first, so that an early end leaves as many verdicts decided as possible. The engine
says which cells it cannot run. This module must not know what a verdict means.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fullpipe.base.machine import cores
from fullpipe.experiments.entry import Entry, Size
from fullpipe.experiments.grid import Cell
from fullpipe.experiments.run_store import Store
from fullpipe.experiments.runner import Outcome, job_of, run_entries, unable
from fullpipe.experiments.verdicts import EntryVerdicts, Status, judge
from fullpipe.sweep.schedule import Progress

#: Runs of each cell, the least that gives an interval.
KERNEL_RUNS = 3
#: Largest cell of a claim that contradicts a paper: a million packets take a core a minute.
MOST_PACKETS = 1e6
#: Work of each process, in CPU seconds, before the next confirmations are chosen.
_BATCH_S = 60.0
#: Statuses of claims that fail in some cells -> rank; lower ranks are confirmed first.
_FAILED: Mapping[Status, int] = {
    "contradicted": 0,
    "differs": 1,
    "unexplained": 1,
    "partly": 1,
}
_Update = Callable[[Progress], None]
#: Rank, id and status of a claim that fails, and the cells that would confirm it.
_FailedClaim = tuple[int, str, Status, Sequence[int]]


@dataclass(frozen=True)
class Confirmation:
    """The runs in the virtual machine that a claim needs: of the cells in which it fails in the
    simulator alone, without the stored runs and those of earlier confirmations.

    `cells`: indices of the cells that lack runs; `cost_s`: estimated CPU seconds."""

    entry: Entry
    claim: str
    status: Status
    cells: tuple[int, ...]
    runs: int
    cost_s: float


@dataclass(frozen=True)
class Refused:
    """A verdict that no run can confirm: the virtual machine can run none of the cells in which the
    claim fails, the first of them for this reason."""

    entry: Entry
    claim: str
    status: Status
    reason: str


@dataclass(frozen=True)
class Plan:
    """What `confirm` would run, in order, and the verdicts that it cannot confirm."""

    wanted: list[Confirmation]
    refused: list[Refused]


@dataclass
class Confirmed:
    """The result of `confirm`: what was run and what is left."""

    outcome: Outcome = field(default_factory=Outcome)
    done: list[Confirmation] = field(default_factory=list)
    left: list[Confirmation] = field(default_factory=list)


def confirmations(
    entries: Sequence[Entry],
    store: Store,
    size: Size = "default",
    observed: Sequence[Path] = (),
    most_packets: float = MOST_PACKETS,
) -> Plan:
    """The confirmations that the papers' claims in the simulator's entries need. Cells have at most
    MOST_PACKETS if the claim contradicts a paper, else at most `most_packets`; cells that the
    machine cannot run are left out."""
    ranked: list[tuple[int, float, Confirmation]] = []
    refused: list[Refused] = []
    for entry in entries:
        if entry.engines != ["sim"] or not entry.runnable or entry.compare_engines:
            continue
        judgement = judge(entry, store, size, "sim", None, observed, with_kernel=False)
        claims, refused_of_entry = _failed_claims(judgement, most_packets)
        refused += refused_of_entry
        cells = entry.cells(size)
        missing = {
            cell: _missing_runs(entry, store, cells[cell])
            for cell in {cell for *_, fitting in claims for cell in fitting}
        }
        position = (0, 0.0)
        for confirmation in _cheapest_first(entry, claims, missing):
            # It shares runs with the entry's earlier confirmations and must not precede them.
            position = max(position, (_FAILED[confirmation.status], confirmation.cost_s))
            ranked.append((*position, confirmation))
    wanted = [confirmation for *_, confirmation in sorted(ranked, key=lambda placed: placed[:2])]
    return Plan(wanted, refused)


def _failed_claims(
    judgement: EntryVerdicts, most_packets: float
) -> tuple[list[_FailedClaim], list[Refused]]:
    """The papers' claims that fail in some cells, with those of the cells to run; and those of
    which the machine can run no such cell."""
    entry = judgement.results.entry
    cells = entry.cells(judgement.results.size)
    reason_of = functools.cache(lambda cell: unable("vm", cells[cell]))
    claims: list[_FailedClaim] = []
    refused = []
    for verdict in judgement.verdicts:
        rank = _FAILED.get(verdict.status)
        if rank is None or verdict.claim.about != "paper":
            continue
        failing = sorted(verdict.failing)
        if failing and all(reason_of(cell) for cell in failing):
            reason = reason_of(failing[0])
            refused.append(Refused(entry, verdict.claim.id, verdict.status, reason))
            continue
        most = MOST_PACKETS if rank == 0 else most_packets
        fitting = [c for c in failing if not reason_of(c) and _packets(cells[c]) <= most]
        claims.append((rank, verdict.claim.id, verdict.status, fitting))
    return claims, refused


def confirm(
    wanted: Sequence[Confirmation],
    store: Store,
    size: Size = "default",
    jobs: int | None = None,
    on_progress: _Update = lambda _: None,
    budget_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Confirmed:
    """Runs the confirmations in order; with a budget only those that should end within so many
    seconds at the pace so far. Ctrl-C keeps the runs that have ended; a later call continues."""
    width = jobs or cores()
    confirmed = Confirmed(left=list(wanted))
    begin, done_s, done_runs = clock(), 0.0, 0
    while confirmed.left and not confirmed.outcome.interrupted:
        spent_s = clock() - begin
        # Wall-clock seconds for each estimated CPU second.
        pace = spent_s / done_s if done_s else 1 / width
        room_s = float("inf") if budget_s is None else (budget_s - spent_s) / pace
        fitting = _within(confirmed.left, room_s)
        batch = _within(fitting, _BATCH_S * width) or fitting[:1]
        if not batch:
            break
        report = _TotalProgress(on_progress, fitting, batch, done_s, done_runs, begin, clock)
        outcome = _run(batch, store, size, jobs, report)
        confirmed.outcome.add(outcome)
        done_s += sum(confirmation.cost_s for confirmation in batch)
        done_runs += sum(confirmation.runs for confirmation in batch)
        if not outcome.interrupted:
            confirmed.done += batch
            confirmed.left = [
                confirmation for confirmation in confirmed.left if confirmation not in batch
            ]
    return confirmed


def _run(
    batch: Sequence[Confirmation], store: Store, size: Size, jobs: int | None, report: _Update
) -> Outcome:
    wanted: dict[str, dict[int, int]] = {}
    for confirmation in batch:
        wanted.setdefault(confirmation.entry.id, {}).update(
            dict.fromkeys(confirmation.cells, KERNEL_RUNS)
        )
    entries = list({confirmation.entry.id: confirmation.entry for confirmation in batch}.values())
    return run_entries(entries, store, size, ["vm"], None, True, jobs, report, "", wanted)


@dataclass
class _TotalProgress:
    """Reports the progress of a batch as progress of all confirmations."""

    report: _Update
    fitting: Sequence[Confirmation]
    batch: Sequence[Confirmation]
    done_s: float
    done_runs: int
    begin: float
    clock: Callable[[], float]

    def __call__(self, now: Progress) -> None:
        total_s = self.done_s + sum(confirmation.cost_s for confirmation in self.fitting)
        total = self.done_runs + sum(confirmation.runs for confirmation in self.fitting)
        done_s = self.done_s + now.share * sum(confirmation.cost_s for confirmation in self.batch)
        share, spent_s = done_s / total_s if total_s else 1.0, self.clock() - self.begin
        left_s = spent_s * (1 - share) / share if share > 0 else None
        done = self.done_runs + now.done
        per_s = done / spent_s if spent_s > 0 else 0.0
        self.report(Progress(done, total, now.failed, share, left_s, per_s))


def _within(wanted: Sequence[Confirmation], room_s: float) -> list[Confirmation]:
    """The confirmations that fit into so many CPU seconds, in order."""
    fitting = []
    for confirmation in wanted:
        if confirmation.cost_s <= room_s:
            fitting.append(confirmation)
            room_s -= confirmation.cost_s
    return fitting


def _cheapest_first(
    entry: Entry,
    claims: Collection[_FailedClaim],
    missing: Mapping[int, Mapping[int, float]],
) -> list[Confirmation]:
    """The confirmations of an entry, each without the runs of earlier ones."""
    waiting, covered, ordered = list(claims), set[int](), []
    while waiting:

        def cost_of(claim: _FailedClaim) -> tuple[int, float]:
            return claim[0], sum(
                sum(missing[cell].values()) for cell in claim[3] if cell not in covered
            )

        best = min(waiting, key=cost_of)
        waiting.remove(best)
        _, claim, status, fitting = best
        _, cost_s = cost_of(best)
        cells = tuple(cell for cell in fitting if cell not in covered and missing[cell])
        covered.update(cells)
        if cells:
            runs = sum(len(missing[cell]) for cell in cells)
            ordered.append(Confirmation(entry, claim, status, cells, runs, cost_s))
    return ordered


def _missing_runs(entry: Entry, store: Store, cell: Cell) -> dict[int, float]:
    """Index -> CPU seconds of the runs of a cell that the store lacks."""
    jobs = {index: job_of(entry, store, "vm", cell, index) for index in range(KERNEL_RUNS)}
    return {
        index: job.cost_s
        for index, job in jobs.items()
        if store.read(job.key, job.expressions) is None
    }


def _packets(cell: Cell) -> float:
    """The most data packets that a run of the cell can carry."""
    scenario = cell.scenario
    return scenario.path.rate * scenario.duration / 1e9 / (8 * scenario.path.mtu)
