"""What a claim fails by on the simulator alone, asked of a real kernel: which runs that takes, and
in which order.

First what contradicts a paper, then what differs or holds in part; of these the verdict that takes
the least, so that as many as may be are settled whenever it ends. Knows verdicts and the runner;
never what a verdict means.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fullpipe.base.errors import RunError, UserError
from fullpipe.engines import engine
from fullpipe.papers.entry import Entry, Size
from fullpipe.papers.grid import Cell
from fullpipe.papers.runner import Outcome, job_of, run_entries
from fullpipe.papers.store import Store
from fullpipe.papers.verdicts import Status, judge
from fullpipe.plan.resolve import resolve
from fullpipe.sweep.pool import cores
from fullpipe.sweep.schedule import Progress

#: Runs of a cell on the kernel: as many as an interval takes.
KERNEL_RUNS = 3
#: Of a cell that contradicts a paper: a million are a minute of a core for each run.
MOST_PACKETS = 1e6
#: What is run before it is looked again what comes next: CPU seconds for each process.
_BATCH_S = 60.0
#: What a claim's outcome is where some of its cells fail, the weightiest first.
_FAILED: Mapping[Status, int] = {"contradicted": 0, "differs": 1, "partly": 1}
_Update = Callable[[Progress], None]


@dataclass(frozen=True)
class Question:
    """What the virtual machine is to be asked about a claim: runs of the cells in which it fails by
    the simulator alone, as far as the store lacks them and no question before asks for them.

    `cells`: the numbers of those that lack runs; `cost_s`: CPU seconds, roughly."""

    entry: Entry
    claim: str
    status: Status
    cells: tuple[int, ...]
    runs: int
    cost_s: float


@dataclass
class Confirmed:
    """What became of questions, and which are left."""

    outcome: Outcome = field(default_factory=Outcome)
    answered: list[Question] = field(default_factory=list)
    left: list[Question] = field(default_factory=list)


def questions(
    entries: Sequence[Entry], store: Store, size: Size = "default", observed: Sequence[Path] = (),
    most_packets: float = MOST_PACKETS,
) -> list[Question]:  # fmt: skip
    """What is to be asked about the claims of papers in entries of the simulator, in the order in
    which it should be. Of cells at most as large as MOST_PACKETS where the simulator contradicts a
    paper, elsewhere as `most_packets`, and of those that the machine can run."""
    found: list[tuple[int, float, Question]] = []
    for entry in entries:
        if entry.engines != ["sim"] or not entry.runnable or entry.compare_engines:
            continue
        cells = entry.cells(size)
        left: dict[int, dict[int, float]] = {}
        claims = []
        for verdict in judge(entry, store, size, "sim", None, observed, with_kernel=False).verdicts:
            rank = _FAILED.get(verdict.status)
            if rank is None or verdict.claim.about != "paper":
                continue
            most = MOST_PACKETS if rank == 0 else most_packets
            fitting = [cell for cell in sorted(verdict.failing) if _fits(cells[cell], most)]
            for cell in fitting:
                if cell not in left:
                    left[cell] = _lacking(entry, store, cells[cell])
            claims.append((rank, verdict.claim.id, verdict.status, fitting))
        place = (0, 0.0)
        for one in _cheapest_first(entry, claims, left):
            # Not before those of the entry whose runs it shares.
            place = max(place, (_FAILED[one.status], one.cost_s))
            found.append((*place, one))
    return [one for *_, one in sorted(found, key=lambda placed: placed[:2])]


def confirm(
    asked: Sequence[Question], store: Store, size: Size = "default", jobs: int | None = None,
    on_progress: _Update = lambda _: None, budget_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Confirmed:  # fmt: skip
    """Asks, in this order; with a budget only what by the pace so far ends within so many seconds
    from now on. Ctrl-C leaves what has ended; who asks again asks for the rest."""
    width = jobs or cores()
    found = Confirmed(left=list(asked))
    begin, done_s, done_runs = clock(), 0.0, 0
    while found.left and not found.outcome.interrupted:
        spent_s = clock() - begin
        # Seconds for a CPU second as it was guessed.
        pace = spent_s / done_s if done_s else 1 / width
        room_s = float("inf") if budget_s is None else (budget_s - spent_s) / pace
        fitting = _within(found.left, room_s)
        batch = _within(fitting, _BATCH_S * width) or fitting[:1]
        if not batch:
            break
        report = _Whole(on_progress, fitting, batch, done_s, done_runs, begin, clock)
        done = _ask(batch, store, size, jobs, report)
        found.outcome.add(done)
        done_s += sum(one.cost_s for one in batch)
        done_runs += sum(one.runs for one in batch)
        if not done.interrupted:
            found.answered += batch
            found.left = [one for one in found.left if one not in batch]
    return found


def _ask(
    batch: Sequence[Question], store: Store, size: Size, jobs: int | None, report: _Update
) -> Outcome:
    wanted: dict[str, dict[int, int]] = {}
    for one in batch:
        wanted.setdefault(one.entry.id, {}).update(dict.fromkeys(one.cells, KERNEL_RUNS))
    entries = list({one.entry.id: one.entry for one in batch}.values())
    return run_entries(entries, store, size, ["vm"], None, True, jobs, report, "", wanted)


@dataclass
class _Whole:
    """Tells how far all questions are while some are asked."""

    tell: _Update
    fitting: Sequence[Question]
    batch: Sequence[Question]
    done_s: float
    done_runs: int
    begin: float
    clock: Callable[[], float]

    def __call__(self, now: Progress) -> None:
        total_s = self.done_s + sum(one.cost_s for one in self.fitting)
        total = self.done_runs + sum(one.runs for one in self.fitting)
        done_s = self.done_s + now.share * sum(one.cost_s for one in self.batch)
        share, spent_s = done_s / total_s if total_s else 1.0, self.clock() - self.begin
        left_s = spent_s * (1 - share) / share if share > 0 else None
        done = self.done_runs + now.done
        per_s = done / spent_s if spent_s > 0 else 0.0
        self.tell(Progress(done, total, now.failed, share, left_s, per_s))


def _within(asked: Sequence[Question], room_s: float) -> list[Question]:
    """Those, in their order, for which there is room."""
    found = []
    for one in asked:
        if one.cost_s <= room_s:
            found.append(one)
            room_s -= one.cost_s
    return found


def _cheapest_first(
    entry: Entry, claims: Collection[tuple[int, str, Status, Sequence[int]]],
    left: Mapping[int, Mapping[int, float]],
) -> list[Question]:  # fmt: skip
    """Questions of an entry: each without the runs that those before it ask for."""
    waiting, taken, found = list(claims), set[int](), []
    while waiting:

        def costs(one: tuple[int, str, Status, Sequence[int]]) -> tuple[int, float]:
            return one[0], sum(sum(left[cell].values()) for cell in one[3] if cell not in taken)

        best = min(waiting, key=costs)
        waiting.remove(best)
        _, claim, status, fitting = best
        _, cost_s = costs(best)
        cells = tuple(cell for cell in fitting if cell not in taken and left[cell])
        taken.update(cells)
        if cells:
            runs = sum(len(left[cell]) for cell in cells)
            found.append(Question(entry, claim, status, cells, runs, cost_s))
    return found


def _lacking(entry: Entry, store: Store, cell: Cell) -> dict[int, float]:
    """The runs of a cell that the store has none of, by number, with what they cost."""
    jobs = {index: job_of(entry, store, "vm", cell, index) for index in range(KERNEL_RUNS)}
    return {
        index: job.cost_s
        for index, job in jobs.items()
        if store.read(job.key, job.expressions) is None
    }


def _fits(cell: Cell, most_packets: float) -> bool:
    scenario = cell.scenario
    packets = scenario.path.rate * scenario.duration / 1e9 / (8 * scenario.path.mtu)
    try:
        engine("vm").check(resolve(cell.on("vm").scenario))
    except (UserError, RunError):
        return False
    return packets <= most_packets
