"""Programs that fill one store at once do each run once, and none waits for one that died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fullpipe.sweep import leases, stored_keys
from fullpipe.sweep.query import ask
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import read
from sweep_files import filled, rows, sweep

#: Holds the lease of a run until it is killed.
_HOLDER = """
import sys
from pathlib import Path
from fullpipe.sweep import leases
with leases.some_of(Path(sys.argv[1]), sys.argv[2:]) as held:
    print(*held, flush=True)
    sys.stdin.read()
"""
_SWEEPER = """
import sys
from pathlib import Path
from sweep_files import filled, sweep
filled(Path(sys.argv[1]), sweep())
"""
ONE, TWO = "1" * 32, "2" * 32


def _holder(folder: Path, *keys: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(folder), *keys],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_lease_is_taken_once_and_ends_with_its_process(tmp_path: Path) -> None:
    with _holder(tmp_path, ONE) as holder:
        assert holder.stdout is not None and holder.stdout.readline().strip() == ONE
        with leases.some_of(tmp_path, [ONE, TWO]) as held:
            assert held == {TWO}
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with leases.some_of(tmp_path, [ONE, TWO]) as held:
            assert held == {ONE, TWO}


def test_who_finds_no_lease_waits_for_one_and_then_has_it(tmp_path: Path) -> None:
    """The other gives its lease back when its input ends, which is while this one waits or
    before."""
    with _holder(tmp_path, ONE) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline().strip() == ONE
        holder.stdin.close()
        with leases.some_of(tmp_path, [ONE]) as held:
            assert held == {ONE}


def test_leases_are_given_back_and_are_of_the_folder_that_is_there_now(tmp_path: Path) -> None:
    for _ in range(2):
        folder = tmp_path / "store"
        folder.mkdir()
        with leases.some_of(folder, [ONE, TWO]) as held:
            assert held == {ONE, TWO}
        with _holder(folder, ONE) as holder:
            assert holder.stdout is not None and holder.stdout.readline().strip() == ONE
            with leases.some_of(folder, [TWO, ONE]) as held:
                assert held == {TWO}
            holder.kill()
        (folder / leases.FILE).unlink()
        folder.rmdir()


def test_runs_that_are_there_are_dropped_when_they_come_again(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    before, parts = rows(store), store.parts()
    tables = {name: store.table(name) for name in ("runs", "flows", "path")}
    store.write(tables)
    assert store.parts() == parts
    kept = before["runs"][0]["key"]
    other = Store(tmp_path / "other", create=True)
    other.write({name: table.filter(_of(table, kept)) for name, table in tables.items()})
    other.write(tables)
    assert len(other.parts()) == 2
    assert sorted(row["key"] for row in rows(other)["runs"]) == sorted(
        row["key"] for row in before["runs"]
    )
    other.compact()
    assert rows(other) == before


def _of(table: object, key: str) -> object:
    import pyarrow.compute as pc

    return pc.equal(table["key"], key)  # type: ignore[index]


def test_a_store_that_is_compacted_meanwhile_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if another program compacted between the list of parts and their reading."""
    store, _ = filled(tmp_path / "store", sweep())
    before = rows(store)["runs"]
    listed = Store._folders
    pending = [True]

    def compacted_after(self: Store) -> list[Path]:
        found = listed(self)
        if pending.pop() if pending else False:
            (part,) = found
            part.rename(part.with_name("compacted"))
        return found

    for read_runs in (
        lambda: Store(store.folder).table("runs").num_rows,
        lambda: ask(store, "select * from runs").num_rows,
    ):
        pending[:] = [True]
        with monkeypatch.context() as patched:
            patched.setattr(Store, "_folders", compacted_after)
            assert read_runs() == len(before)
        (part,) = store.parts()
        part.rename(part.with_name("first"))


def test_keys_are_read_again_where_a_store_is_compacted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    before = set(store.keys())
    original = stored_keys._keys_of
    pending = [True]

    def of_a_part_that_goes(part: Path) -> list[str]:
        if pending:
            pending.clear()
            part.rename(part.with_name("compacted"))
        return original(part)

    monkeypatch.setattr(stored_keys, "_keys_of", of_a_part_that_goes)
    assert store.keys() == before and not pending
    read_parts: list[Path] = []
    monkeypatch.setattr(stored_keys, "_keys_of", lambda part: read_parts.append(part) or [])
    assert store.keys_now() == before and read_parts == [], "a part is read once"


def test_sweeps_at_once_store_each_run_once(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    Store(folder, create=True)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    several = [
        subprocess.Popen([sys.executable, "-c", _SWEEPER, str(folder)], env=environment)
        for _ in range(3)
    ]
    assert [process.wait() for process in several] == [0, 0, 0]
    (part,) = Store(folder).parts()
    keys = read(part / "runs.parquet")["key"].to_pylist()
    assert len(keys) == len(set(keys)) == 12
    (cells,) = ask(Store(folder), "select min(runs) as a, max(runs) as b from cells").to_pylist()
    assert cells == {"a": 2, "b": 2}
