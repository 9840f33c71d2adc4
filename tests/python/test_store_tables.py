"""Tables of a store: rows in one order, each once; damaged files are refused."""

from __future__ import annotations

import math
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from fullpipe.base.errors import UserError
from fullpipe.recording.parquet import write_parquet
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import EXTRA, SCHEMAS, read, read_part, unique_rows
from helpers import resealed
from sweep_files import filled, sweep

_TEXTS = ["", "a", "ab", "é", "queue", "z" * 40, None]
_KEYS = ["b" * 32, "a" * 32, "a" * 31 + "b", "b", "", "é"]
_ROWS = (0, 1, 2, 60, 3000)


def _table(rows: int, draw: random.Random) -> pa.Table:
    """Rows of every kind of column, equal keys among them."""
    reals = [draw.choice([None, 0.0, -1.5, 1e300, math.inf]) for _ in range(rows)]
    lists = [draw.choice([[], [1.0], [2.5, 3.0, -1.0]]) for _ in range(rows)]
    return pa.table({
        "key": pa.array([draw.choice(_KEYS) for _ in range(rows)], pa.string()),
        "flow_id": pa.array([draw.choice([0, 1, 2**63 + 1]) for _ in range(rows)], pa.uint64()),
        "place": pa.array(range(rows), pa.uint64()),
        "whole": pa.array([draw.choice([None, -1, 2**40]) for _ in range(rows)], pa.int64()),
        "real": pa.array(reals, pa.float64()),
        "truth": pa.array([draw.choice([True, False, None]) for _ in range(rows)], pa.bool_()),
        "text": pa.array([draw.choice(_TEXTS) for _ in range(rows)], pa.string()),
        "lists": pa.array(lists, pa.list_(pa.float64())),
    })  # fmt: skip


@pytest.mark.parametrize("rows", _ROWS)
def test_unique_rows_are_the_first_of_equal_ones_in_order(rows: int) -> None:
    table = _table(rows, random.Random(rows))
    first: dict[tuple[bytes, int], dict[str, object]] = {}
    for row in table.to_pylist():
        first.setdefault((row["key"].encode(), row["flow_id"]), row)
    wanted = [first[identity] for identity in sorted(first)]
    assert unique_rows(table, ["key", "flow_id"]).to_pylist() == wanted


@pytest.mark.parametrize("rows", [60, 3000, 70_000])
def test_the_same_rows_are_the_same_bytes_however_they_came_about(
    rows: int, tmp_path: Path
) -> None:
    draw = random.Random(rows)
    table = _table(rows, draw)
    files = set()
    for count in (1, 2, 7):
        places = list(range(rows))
        draw.shuffle(places)
        parts = []
        for part in range(count):
            write_parquet(
                table.take(pa.array(places[part::count], pa.uint64())), tmp_path / str(part)
            )
            parts.append(read(tmp_path / str(part)))
        write_parquet(unique_rows(pa.concat_tables(parts), ["place"]), tmp_path / "compact")
        assert read(tmp_path / "compact").equals(table)
        files.add((tmp_path / "compact").read_bytes())
    assert len(files) == 1


def test_a_file_of_other_columns_is_named(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    (part,) = store.parts()
    write_parquet(read(part / "path.parquet").drop_columns(["drops"]), part / "path.parquet")
    resealed(part)
    with pytest.raises(UserError, match=r"path\.parquet: damaged: has other columns"):
        store.table("path")
    shutil.copytree(part, part.with_name("again"))
    with pytest.raises(UserError, match=r"path\.parquet: damaged: has other columns"):
        store.compact()


def test_a_flipped_bit_is_refused_or_changes_no_value(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(5)
    table = _table(60, draw)
    write_parquet(table, tmp_path / "good")
    good = (tmp_path / "good").read_bytes()
    refused = 0
    for _ in range(600):
        bad = bytearray(good)
        bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        (tmp_path / "bad").write_bytes(bad)
        try:
            found = read(tmp_path / "bad")
        except UserError as error:
            assert f"{tmp_path}/bad: damaged: " in str(error)
            refused += 1
        else:
            # Pages have checksums; the footer, which has the columns and the number of rows, none.
            if found.schema == table.schema:
                assert found.equals(table.slice(0, found.num_rows))
    assert refused > 300
    assert capfd.readouterr() == ("", "")


def test_compacting_keeps_all_rows_and_columns(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    (key, *_) = sorted(store.keys())
    values = pa.table({"key": [key], "name": ["share"], "version": ["1"], "value": [0.5]})
    spread = pa.table({"key": [key], "name": ["rtt"], "version": ["1"], "values": [[1.0, 2.5]]})
    ping = {"key": [key], "kind": ["probes"], "name": ["ping"], "figure": ["probe_sent"]}
    probes = pa.table({**ping, "value": [3.0]})
    store.write({"applications": probes, "values": values, "distributions": spread})
    before = {name: store.table(name).to_pylist() for name in (*SCHEMAS, *EXTRA)}
    store.compact()
    (part,) = store.parts()
    tables = read_part(part)
    assert {name: table.schema for name, table in tables.items()} == {**SCHEMAS, **EXTRA}
    for name, rows in before.items():
        assert sorted(tables[name].to_pylist(), key=str) == sorted(rows, key=str)
    assert tables["distributions"]["values"].to_pylist() == [[1.0, 2.5]]


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    (part,) = Store(tmp_path / "store").parts()
    (part / "runs.parquet").unlink()
    with pytest.raises(UserError, match=r"runs\.parquet: damaged: .*sets it aside"):
        store.keys()
