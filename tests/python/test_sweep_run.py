"""A sweep runs what is missing, whatever ended it before, wherever it runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import tomli_w

from fullpipe.base.errors import UserError
from fullpipe.base.toml import parse_toml
from fullpipe.sweep import running, schedule
from fullpipe.sweep.cells import Cell, asked, cells_of, plan_runs
from fullpipe.sweep.merging import merge
from fullpipe.sweep.pool import Here, Pool
from fullpipe.sweep.query import ask
from fullpipe.sweep.running import Shard
from fullpipe.sweep.store import Store
from fullpipe.sweep.together import run_together
from sweep_files import document, filled, rows, sweep


def _files(folder: Path) -> dict[str, bytes]:
    """The tables of a compacted store."""
    (part,) = Store(folder).parts()
    return {file.name: file.read_bytes() for file in part.glob("*.parquet")}


def test_a_sweep_runs_its_grid_and_a_second_time_nothing(tmp_path: Path) -> None:
    store, first = filled(tmp_path / "store", sweep())
    assert (first.cells, first.ran, first.reused) == (6, 12, 0)
    _, second = filled(tmp_path / "store", sweep())
    assert (second.ran, second.reused) == (0, 12)
    answer = ask(store, "select count(*) n, count(distinct cell) c from runs").to_pylist()
    assert answer == [{"n": 12, "c": 6}]


def test_sweeps_together_leave_results_and_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", create=True)
    ran = run_together([sweep(), sweep(sweep={"seeds": 1})], store, 1)
    assert (ran.runs, ran.failures, len(store.keys())) == (18, {}, 12)
    assert not (store.folder / "work").exists()


def test_planning_is_reported_cell_by_cell_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_PLANNING_S", 0.0)
    seen: list[schedule.Progress] = []
    running.run_sweep(
        sweep(), Store(tmp_path / "store", create=True), Here(), on_progress=seen.append
    )
    planning = [now for now in seen if now.is_planning]
    assert [(now.done, now.total) for now in planning] == [(done, 6) for done in range(1, 6)]
    assert seen[: len(planning)] == planning and seen[-1].done == 12


def test_axes_are_columns_as_written_and_in_base_units(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    found = ask(store, "select distinct rtt, rtt_s, buffer from flows order by rtt_s, buffer")
    assert found.to_pylist()[0] == {"rtt": "10ms", "rtt_s": 0.01, "buffer": 0.5}
    columns = ask(store, "select * from flows").column_names
    assert {"goodput_bps", "share", "retransmit_ratio", "seed"} <= set(columns)


@pytest.mark.parametrize(
    ("values", "written", "base"),
    [
        ([0.5, 1, 2, 16], "double", None), ([0.5, 1.5], "double", None),
        ([1, 2, 16], "int64", None), (["0.5", 1, "16"], "double", None),
        (["0%", "0.5%"], "string", ("fraction", [0.0, 0.005])),
        (["2bdp", "16bdp"], "string", ("bdp", [2.0, 16.0])),
        ([True, False], "bool", None), (["red", "1"], "string", None),
    ],
)  # fmt: skip
def test_numbers_and_quantities_of_an_axis_are_numbers(
    values: list[object], written: str, base: tuple[str, list[float]] | None
) -> None:
    of_file = parse_toml(tomli_w.dumps({"axis": values}))["axis"]
    cells = [Cell(index, {"axis": value}, [f"{index}"]) for index, value in enumerate(of_file)]
    found = asked(cells)
    assert str(found["axis"].type) == written
    others = set(found.column_names) - {"cell", "seed", "key", "axis"}
    assert others == (set() if base is None else {f"axis_{base[0]}"})
    if base is not None:
        assert found[f"axis_{base[0]}"].to_pylist() == base[1]


def test_a_name_that_is_an_axis_and_a_column_is_refused_with_both_named(tmp_path: Path) -> None:
    axes = {"rtt": ["10ms"], "buffer": [1], "cc": ["bbr3", "cubic"]}
    store, _ = filled(tmp_path / "store", sweep(axis=axes))
    for question in (
        "select cc, avg(share) from flows group by cc",
        "select count(*) from flows where CC = 'cubic'",
        "select f.cc from flows f",
    ):
        with pytest.raises(UserError, match="write axis_cc for the cell's value or flow_cc for"):
            ask(store, question)
    # In the tables of runs and cells only the axis has the name.
    assert set(ask(store, "select cc from runs")["cc"].to_pylist()) == {"bbr3", "cubic"}
    assert ask(store, "select cc from cells order by cc")["cc"].to_pylist() == ["bbr3", "cubic"]
    rows = ask(
        store, "select axis_cc, flow_id, flow_cc, own_cc from flows where seed = 1 order by all"
    )
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        ("bbr3", 0, "bbr3", True), ("bbr3", 1, "cubic", False),
        ("cubic", 0, "cubic", True), ("cubic", 1, "cubic", False),
    ]  # fmt: skip


def test_without_such_an_axis_a_flow_has_its_column(tmp_path: Path) -> None:
    scenario = document()["scenario"]
    scenario["flow"][0]["cc"] = "bbr3"
    axes = {"rtt": ["10ms"], "buffer": [1]}
    store, _ = filled(tmp_path / "store", sweep(scenario=scenario, axis=axes))
    assert set(ask(store, "select cc from flows")["cc"].to_pylist()) == {"bbr3", "cubic"}


def test_another_seed_count_runs_only_the_further_seeds(tmp_path: Path) -> None:
    filled(tmp_path / "store", sweep())
    _, more = filled(tmp_path / "store", sweep(sweep={"seeds": 3}))
    assert (more.ran, more.reused) == (6, 12)


def test_shards_merged_are_the_undisturbed_store_byte_for_byte(tmp_path: Path) -> None:
    filled(tmp_path / "whole", sweep())
    parts = [tmp_path / f"part{index}" for index in (1, 2, 3)]
    ran = [filled(part, sweep(), Shard(i + 1, 3))[1].ran for i, part in enumerate(parts)]
    assert sum(ran) == 12
    assert merge(tmp_path / "merged", parts).missing == 0
    filled(tmp_path / "whole", sweep(sweep={"seeds": 3}))
    for part in parts[:1]:
        assert merge(tmp_path / "partly", [part]).missing == 12 - ran[0]
    filled(tmp_path / "again", sweep())
    assert rows(Store(tmp_path / "merged")) == _in_order(rows(Store(tmp_path / "again")))


def _in_order(found: dict[str, list[dict[str, object]]]) -> dict[str, list[dict[str, object]]]:
    def order(row: dict[str, object]) -> tuple[str, int]:
        return str(row["key"]), int(str(row.get("flow_id", 0)))

    return {name: sorted(table, key=order) for name, table in found.items()}


@pytest.mark.slow
def test_a_pool_killed_and_resumed_leaves_the_undisturbed_bytes(tmp_path: Path) -> None:
    """Groups are small here, so that a killed run has some of them behind it."""
    file = tmp_path / "sweep.toml"
    small = document(axis={"rtt": ["10ms", "40ms"], "buffer": [0.5, 1, 4], "cc": ["bbr3", "reno"]})
    small["scenario"]["duration"] = "60s"
    file.write_text(tomli_w.dumps(small))
    script = tmp_path / "run.py"
    script.write_text(_REPORTING)
    command = [sys.executable, str(script), str(file)]
    # Of seven groups the first report leaves three at least that no worker has got.
    kills = [_killed([*command, str(tmp_path / "a")], groups) for groups in (1, 1, 2, 1, 3)]
    assert kills[:2] == [True, True]
    for name in ("a", "b"):
        free = [*command, str(tmp_path / name)]
        subprocess.run(free, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    again = Store(tmp_path / "a").keys()
    assert again == Store(tmp_path / "b").keys() and len(again) == 24
    assert rows(Store(tmp_path / "a")) == rows(Store(tmp_path / "b"))
    assert _files(tmp_path / "a") == _files(tmp_path / "b")


#: Runs a sweep in a pool of two and waits, after each report, for a line or the end of its input.
_REPORTING = """
from fullpipe.cli import set_environment; set_environment()  # so that workers are forks
import sys
from pathlib import Path
from fullpipe.sweep.file import load_sweep
from fullpipe.sweep.pool import Pool
from fullpipe.sweep.running import run_sweep
from fullpipe.sweep.store import Store

def report(now):
    print(now.done, flush=True)
    sys.stdin.readline()

store = Store(Path(sys.argv[2]), create=True)
run_sweep(load_sweep(sys.argv[1]), store, Pool(2), on_progress=report)
"""


def _killed(command: list[str], groups: int) -> bool:
    """Kills a run as it goes on after it has stored so many groups; whether it was not done before.
    Returns when its workers, which hold its output too, have ended."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin and process.stdout
        seen: set[str] = set()
        while len(seen - {"0"}) < groups:
            report = process.stdout.readline()
            if not report:
                return False
            seen.add(report.strip())
            process.stdin.write("on\n")
            process.stdin.flush()
        process.kill()
        process.stdout.read()
    return True


def _dies_once(payloads: Sequence[Path]) -> list[schedule.Failure]:
    for mark in payloads:
        if mark.name == "bad" or not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return []


def test_work_whose_process_dies_is_done_again_and_given_up_when_it_always_dies(
    tmp_path: Path,
) -> None:
    items = [schedule.Item(tmp_path / name, 1.0) for name in ("once", "bad")]
    result = schedule.run_all(items, _dies_once, Pool(1, preload="fullpipe.sweep.schedule"))
    assert result.done == 1
    assert [payload.name for payload, _ in result.failures] == ["bad"]


def test_a_cell_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    bad = document()
    bad["axis"]["cc"] = ["bbr3", "kernel:cubic"]
    _, outcome = filled(tmp_path / "store", sweep(axis=bad["axis"]))
    assert outcome.ran == 12
    assert len(outcome.failures) == 12
    cell, _, reason = outcome.failures[0]
    assert cell.point["cc"] == "kernel:cubic" and "kernel:cubic" in reason


def test_the_rule_to_stop_adds_seeds_where_the_interval_is_wide(tmp_path: Path) -> None:
    # Three at least: two runs of so short a flow may well have the very same share.
    rule = {"least": 3, "most": 5, "until": "goodput_bps's 95 % interval < 1e12"}
    _, outcome = filled(tmp_path / "loose", sweep(sweep={"seeds": rule}))
    assert outcome.ran == 18
    rule["until"] = "share < 1e-9"
    _, outcome = filled(tmp_path / "tight", sweep(sweep={"seeds": rule}))
    assert outcome.ran == 30


def test_keys_change_with_the_code_that_a_plan_uses_and_with_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fullpipe import _native
    from fullpipe.sweep import keys

    def made(changed: str) -> list[str]:
        known = _native.sim.components()

        class Changed:
            @staticmethod
            def components() -> dict[str, str]:
                return {**known, changed: "other"}

        monkeypatch.setattr(keys._native, "sim", Changed)
        keys._simulated.cache_clear()
        found = sweep(axis={"rtt": ["10ms"], "buffer": [1], "cc": ["reno"]})
        return [one.run.facts.key for one in plan_runs(found, cells_of(found), 1)]

    try:
        usual = made("cc:nobody")
        assert made("cc:bbr3") == usual and made("net:fq_codel") == usual
        assert made("core") != usual and made("cc:cubic") != usual
    finally:
        monkeypatch.undo()
        keys._simulated.cache_clear()


def test_a_damaged_table_is_named_and_costs_only_what_it_held(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    filled(tmp_path / "other", sweep(axis={"rtt": ["20ms"], "buffer": [1], "cc": ["bbr3"]}))
    merge(tmp_path / "store", [tmp_path / "other"])
    (part,) = store.parts()
    (part / "runs.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(UserError, match=r"runs\.parquet: damaged.*sets it aside"):
        store.keys()
    _, outcome = filled(tmp_path / "store", sweep())
    assert outcome.ran == 12 and "runs.parquet: damaged" in outcome.damaged[0]


def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "store", sweep())
    (tmp_path / "store" / "store.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(UserError, match="format is 99, this program reads 2"):
        Store(tmp_path / "store")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("mine")
    with pytest.raises(UserError, match="not empty and no store"):
        Store(tmp_path / "full", create=True)


@pytest.mark.root
def test_a_full_disk_is_said_and_what_was_there_stays_whole(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode().strip()}")
    try:
        few = sweep()
        filled(disk / "store", few)
        many = sweep(sweep={"seeds": 2, "keep": "recordings"},
                     axis={"rtt": ["30ms"], "buffer": [1, 2, 4, 8], "cc": ["bbr3"]})  # fmt: skip
        try:
            reasons = [reason for _, _, reason in filled(disk / "store", many)[1].failures]
        except UserError as error:  # met while rows were written, not a recording
            reasons = [str(error)]
        assert reasons and all("No space left" in reason for reason in reasons)
        assert Store(disk / "store").table("runs").num_rows >= 12
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.root
def test_a_read_only_store_is_said_before_anything_runs_and_answers_all_the_same(
    tmp_path: Path,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode().strip()}")
    try:
        filled(disk / "store", sweep())
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(UserError, match="cannot be written: Read-only file system"):
            Store(disk / "store", create=True)
        (answer,) = ask(Store(disk / "store"), "select count(*) as n from runs").to_pylist()
        assert answer == {"n": 12}
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_in_a_worker_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    """The executor of this process stands for a worker: what it raises the scheduler reports."""

    def full(_payloads: Sequence[object]) -> list[schedule.Failure]:
        raise UserError("cannot be written: No space left on device")

    with pytest.raises(UserError, match="No space left"):
        schedule.run_all([schedule.Item(0, 1.0)], full, Here())


def test_a_run_of_two_sweeps_is_counted_once_and_a_numeric_axis_is_a_number(
    tmp_path: Path,
) -> None:
    """Whole numbers in one sweep and fractions in the next are numbers, in their order."""
    small = {"rtt": ["10ms"], "buffer": [16, 2], "cc": ["reno"]}
    store, _ = filled(tmp_path / "store", sweep(axis=small))
    store, _ = filled(tmp_path / "store", sweep(axis={**small, "buffer": [16, 0.5, 2]}))
    runs = ask(store, "select key, buffer from runs order by buffer, seed", sweep="all")
    assert runs["buffer"].to_pylist() == [0.5, 0.5, 2, 2, 16, 16]
    assert len(set(runs["key"].to_pylist())) == 6
    (mean,) = ask(store, "select avg(buffer) as mean from runs")["mean"].to_pylist()
    assert mean == pytest.approx(18.5 / 3)
    cells = ask(
        store, "select buffer, runs from cells order by buffer, sweep", sweep="all"
    ).to_pylist()
    assert [cell["buffer"] for cell in cells] == [0.5, 2, 2, 16, 16]
    assert {cell["runs"] for cell in cells} == {2}


def test_a_run_that_is_in_a_store_twice_is_counted_once(tmp_path: Path) -> None:
    """Copied parts, or those of an earlier program whose sweeps ran at once."""
    store, _ = filled(
        tmp_path / "store", sweep(axis={"rtt": ["10ms"], "buffer": [1], "cc": ["reno"]})
    )
    count = "select (select count(*) from runs), (select count(*) from flows), max(runs) from cells"
    before = ask(store, count).to_pylist()
    (part,) = store.parts()
    shutil.copytree(part, part.with_name("copied"))
    assert len(store.parts()) > 1
    assert ask(store, count).to_pylist() == before
