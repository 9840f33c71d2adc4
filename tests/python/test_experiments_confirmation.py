"""Which runs in the virtual machine confirm claims that fail, in which order, how many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiment_entries import MadeStore, claims, command, entry_of
from fullpipe.base.errors import UserError
from fullpipe.engines import engine
from fullpipe.experiments import Store, judge, kernel_confirmation, run_entries
from fullpipe.experiments.entry import Entry
from fullpipe.experiments.kernel_confirmation import (
    KERNEL_RUNS,
    Confirmation,
    Plan,
    confirm,
    confirmations,
)
from fullpipe.experiments.run_store import StoredRun
from fullpipe.experiments.runner import _GROUP_S, Outcome, job_of
from fullpipe.plan.resolve import resolve
from fullpipe.sweep.schedule import Item, grouped

#: In the regime in which the simulator was held against kernels, and as many runs as an interval
#: takes.
CHANGES = {
    "repetitions = 2": "repetitions = 3", "rate = [2, 4]": "rate = [10, 20]",
    "rtt = [10, 20]": "rtt = [20, 40]",
}  # fmt: skip


def by_hand(plan: Mapping[str, Any], text: str) -> float:
    """goodput: the rate in Mbit/s; share: half."""
    return float(plan["path"]["rate_bps"]) / 1e6 if text == "goodput_mbps()" else 0.5


class SomeRuns(MadeStore):
    """Has all runs of the simulator, and the chosen ones of the machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, by_hand)
        self.ran: set[str] = set()

    def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
        """The made run."""
        self.engines = ("sim", *self.ran)
        return super().read(key, expressions)

    def run(self, entry: Entry, cell: int, count: int) -> None:
        """The machine runs a cell so often."""
        cells = entry.cells("default")
        self.ran |= {job_of(entry, self, "vm", cells[cell], i).key for i in range(count)}


def entry_with(folder: Path, *checks: str) -> Entry:
    text = claims(*checks)
    for old, new in CHANGES.items():
        text = text.replace(old, new)
    return entry_of(folder, text)


def brief(asked: list[Confirmation]) -> list[tuple[str, str, tuple[int, ...], int]]:
    return [(one.claim, one.status, one.cells, one.runs) for one in asked]


#: The first holds in no cell, the second in those of 10 Mbit/s, the third in none of its own, the
#: fourth in all.
CHECKS = (
    "all(goodput < 1)", "all(goodput < 15)", "all(goodput[rate == 20, rtt == 20] < 1)",
    "all(goodput < 99)",
)  # fmt: skip


def test_contradictions_come_first_the_cheapest_of_them_and_each_run_is_wanted_once(
    tmp_path: Path,
) -> None:
    entry, store = entry_with(tmp_path, *CHECKS), SomeRuns(tmp_path)
    asked = confirmations([entry], store).wanted
    assert brief(asked) == [("c2", "contradicted", (2,), 3), ("c0", "contradicted", (0, 1, 3), 9)]
    assert asked[0].cost_s == pytest.approx(asked[1].cost_s / 3, rel=0.1)
    # What holds in part shares all its cells with what contradicts; alone it asks for them.
    part = entry_with(tmp_path / "part", *CHECKS[1:2])
    assert brief(confirmations([part], store).wanted) == [("c0", "partly", (2, 3), 6)]
    assert confirmations([part], store, most_packets=0) == Plan([], [])


def test_who_asks_again_asks_for_what_is_lacking_of_cells_that_were_begun(tmp_path: Path) -> None:
    entry, store = entry_with(tmp_path, CHECKS[0]), SomeRuns(tmp_path)
    store.run(entry, 0, KERNEL_RUNS)
    store.run(entry, 1, 1)
    assert brief(confirmations([entry], store).wanted) == [("c0", "contradicted", (1, 2, 3), 8)]
    for cell in range(4):
        store.run(entry, cell, KERNEL_RUNS)
    assert confirmations([entry], store) == Plan([], [])
    (verdict,) = judge(entry, store).verdicts
    assert (verdict.status, verdict.grade) == ("contradicted", "kernel")


def test_a_cell_that_a_kernel_has_begun_waits_for_the_runs_that_an_interval_takes(
    tmp_path: Path,
) -> None:
    entry, store = entry_with(tmp_path, CHECKS[1]), SomeRuns(tmp_path)
    store.run(entry, 2, KERNEL_RUNS)
    store.run(entry, 3, KERNEL_RUNS - 1)
    (verdict,) = judge(entry, store).verdicts
    of_cells = {one.cells[0]: one.grade for one in verdict.conditions}
    assert [of_cells[cell] == "kernel" for cell in range(4)] == [False, False, True, False]


FLOWS = "[[scenario.flow]]"
#: Text of SMALL -> text with what the machine's kernel does not run, and the key that the engine
#: names. The kernel is 6.12.
FOREIGN = (
    (FLOWS, f'host = {{ tsq = "8ms" }}\n\n{FLOWS}', "host.tsq"),
    (FLOWS, f'host = {{ receive_aggregation = "1ms" }}\n\n{FLOWS}', "host.receive_aggregation"),
    ('cc = "reno"', 'cc = "reno"\necn = "accecn"', "flow.1.ecn"),
)


@pytest.mark.parametrize(("old", "new", "key"), FOREIGN)
def test_what_the_engine_refuses_is_not_planned_and_the_engine_says_why(
    old: str, new: str, key: str, tmp_path: Path
) -> None:
    text = claims(*CHECKS[:2])
    for was, now in {**CHANGES, old: new}.items():
        text = text.replace(was, now, 1)
    entry, store = entry_of(tmp_path, text), SomeRuns(tmp_path)
    plan = confirmations([entry], store)
    assert plan.wanted == []
    assert [one.claim for one in plan.refused] == ["c0", "c1"]
    for one in plan.refused:
        with pytest.raises(UserError, match=f"^{key}: .*--engine sim") as said:
            engine("vm").check(resolve(entry.cells("default")[0].scenario), {"machine": "auto"})
        assert one.reason == str(said.value)


def test_a_verdict_is_planned_in_those_of_its_cells_that_the_engine_runs(tmp_path: Path) -> None:
    text = claims("all(goodput < 1)", "all(goodput[tsq == '8ms'] < 1)")
    text = text.replace("rate = [2, 4]", "rate = [10, 20]")
    text = text.replace("rtt = [10, 20]", "rtt = [20]\ntsq = ['1ms', '8ms']")
    text = text.replace(FLOWS, f"host = {{ tsq = '{{tsq}}' }}\n\n{FLOWS}", 1)
    entry = entry_of(tmp_path, text.replace("repetitions = 2", "repetitions = 3"))
    plan = confirmations([entry], SomeRuns(tmp_path))
    assert brief(plan.wanted) == [("c0", "contradicted", (0, 2), 6)]
    assert [(one.claim, one.reason[:9]) for one in plan.refused] == [("c1", "host.tsq:")]


def test_the_summary_counts_verdicts_that_no_kernel_confirms_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real runs of the simulator; there is none that the machine could do."""
    text = claims("all(goodput < 0.5)", "all(goodput < 0.6)").replace(
        "rtt = [10, 20]", "rtt = [20]"
    )
    text = text.replace("rate = [2, 4]", "rate = [10]").replace(
        "[[scenario.flow]]", "host = { tsq = '8ms' }\n\n[[scenario.flow]]", 1
    )
    entry_of(tmp_path / "catalogue", text)
    where = ["--catalogue", str(tmp_path / "catalogue"), "--store", str(tmp_path / "store")]
    page = ["--out", str(tmp_path / "page.html")]
    assert command(["run", "small", *where, *page, "--confirm", "--once"], monkeypatch) == 0
    ran = capsys.readouterr()
    assert "cannot be run on a kernel: 2 verdicts: host.tsq: " in ran.out + ran.err
    assert "left" not in ran.out + ran.err and "virtual machine" not in ran.out + ran.err
    assert command(["report", "small", *where, "--confirm"], monkeypatch) == 0
    said = capsys.readouterr()
    assert "to confirm on a kernel: 0 verdicts, 0 runs" in said.out + said.err
    assert "cannot be run on a kernel: 2 verdicts: host.tsq: " in said.out + said.err


class Machine:
    """A fake machine. It records the claims of each batch and takes `pace` seconds for each
    estimated CPU second."""

    def __init__(self, pace: float) -> None:
        self.pace, self.now_s = pace, 0.0
        self.batches: list[list[str]] = []

    def run(self, batch: list[Confirmation], *_rest: Any) -> Outcome:
        """Runs a batch."""
        self.batches.append([one.claim for one in batch])
        self.now_s += self.pace * sum(one.cost_s for one in batch)
        return Outcome(ran=sum(one.runs for one in batch))

    def clock(self) -> float:
        """Seconds spent so far."""
        return self.now_s


def costing(entry: Entry, *costs_s: float) -> list[Confirmation]:
    return [
        Confirmation(entry, f"c{place}", "contradicted", (place,), 3, cost_s)
        for place, cost_s in enumerate(costs_s)
    ]


class BusyMachine(SomeRuns):
    """Of which all runs carried half a Mbit/s, and may have had problems."""

    problems: tuple[str, ...] = ()

    def read(self, key: str, expressions: Mapping[str, str]) -> StoredRun | None:
        """The made run."""
        run = super().read(key, expressions)
        if run is None or key.startswith("sim"):
            return run
        return replace(run, metrics=dict.fromkeys(run.metrics, 0.5), problems=list(self.problems))


def test_a_kernel_that_could_not_keep_up_overrules_nothing_and_is_not_run_again(
    tmp_path: Path,
) -> None:
    entry, store = entry_with(tmp_path, CHECKS[0]), BusyMachine(tmp_path)
    for cell in range(4):
        store.run(entry, cell, KERNEL_RUNS)
    (verdict,) = judge(entry, store).verdicts
    assert (verdict.status, verdict.grade) == ("reproduced", "kernel")
    store.problems = ("the virtual processor was 100 % busy in one second",)
    (verdict,) = judge(entry, store).verdicts
    assert (verdict.status, verdict.grade) == ("contradicted", "simulator")
    assert confirmations([entry], store) == Plan([], [])


def test_a_budget_is_kept_by_the_pace_at_which_runs_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, store = entry_with(tmp_path, CHECKS[0]), SomeRuns(tmp_path)
    asked = costing(entry, 50, 50, 500, 40)
    slow = Machine(pace=2.0)
    monkeypatch.setattr(kernel_confirmation, "_run", slow.run)
    found = confirm(asked, store, jobs=1, budget_s=185, clock=slow.clock)
    # There seems to be room for 50, 50 and 40 s, in batches of a minute; the first takes 100 s.
    assert slow.batches == [["c0"], ["c3"]] and slow.now_s <= 185
    assert [one.claim for one in found.left] == ["c1", "c2"]
    assert found.outcome.ran == 6
    assert confirm(asked, store, jobs=1, budget_s=0, clock=slow.clock).left == asked


def test_without_a_budget_all_is_run_and_a_batch_is_no_longer_than_it_must_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, store = entry_with(tmp_path, CHECKS[0]), SomeRuns(tmp_path)
    machine = Machine(pace=1.0)
    monkeypatch.setattr(kernel_confirmation, "_run", machine.run)
    found = confirm(costing(entry, 50, 20, 500, 40), store, jobs=1, clock=machine.clock)
    assert machine.batches == [["c0"], ["c1", "c3"], ["c2"]]
    assert found.left == [] and found.outcome.ran == 12


def test_an_interruption_leaves_the_unfinished_confirmations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, store = entry_with(tmp_path, CHECKS[0]), SomeRuns(tmp_path)
    monkeypatch.setattr(kernel_confirmation, "_run", lambda *_: Outcome(ran=1, interrupted=True))
    asked = costing(entry, 50, 20)
    found = confirm(asked, store, jobs=1)
    assert found.outcome.interrupted and found.left == asked and not found.done


def test_each_run_of_a_kernel_is_a_task_of_its_own(tmp_path: Path) -> None:
    """So that it is stored when it ends, and an interruption costs no other."""
    entry, store = entry_with(tmp_path, CHECKS[0]), SomeRuns(tmp_path)
    cells = entry.cells("default")
    jobs = [job_of(entry, store, "vm", cell, index) for cell in cells for index in range(3)]
    groups = grouped([Item(job, job.cost_s) for job in jobs], 2, _GROUP_S)
    assert [len(group.items) for group in groups] == [1] * 12


def test_a_budget_without_anything_to_bound_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ["run", "zeynali2024_ecn"]
    assert command([*run, "--budget", "30min"], monkeypatch) == 2
    assert "--confirm" in capsys.readouterr().err
    assert command([*run, "--confirm", "--budget", "soon"], monkeypatch) == 2
    assert "--budget: 'soon' is not a time such as 40ms" in capsys.readouterr().err


@pytest.mark.vm
@pytest.mark.slow
def test_contradictions_run_on_a_kernel_whatever_limit_other_failures_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real runs: at 10 Mbit/s the claim on 0.5 is wrong, that on 12 fails at 20 Mbit/s alone."""
    monkeypatch.setitem(CHANGES, "rtt = [10, 20]", "rtt = [20]")
    entry = entry_with(
        tmp_path / "catalogue", "all(goodput[rate == 10] < 0.5)", "all(goodput < 12)"
    )
    store = Store(tmp_path / "store")
    run_entries([entry], store, jobs=1)
    assert [v.status for v in judge(entry, store).verdicts] == ["contradicted", "partly"]
    where = ["--catalogue", str(tmp_path / "catalogue"), "--store", str(tmp_path / "store")]
    report = ["report", "small", *where, "--confirm", "--packets", "0"]
    assert command(report, monkeypatch) == 0
    said = capsys.readouterr()
    assert "c0" in said.out and "1 verdict, 3 runs" in said.out + said.err
    done = confirm(confirmations([entry], store, most_packets=0).wanted, store, jobs=1)
    assert done.outcome.ran == KERNEL_RUNS and not done.left
    contradicted, partly = judge(entry, store).verdicts
    assert (contradicted.status, contradicted.grade) == ("contradicted", "kernel")
    assert (partly.status, partly.grade) == ("partly", "simulator")
