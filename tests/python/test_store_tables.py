"""Tables that a store writes and settles are what Arrow reads, sorts and counts."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fullpipe import _native
from fullpipe.base.errors import UserError
from fullpipe.sweep.measures import Rows
from fullpipe.sweep.store import Store
from fullpipe.sweep.tables import EXTRA, SCHEMAS, plain, read, read_part
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


def _write(table: pa.Table, file: Path, lasts: bool) -> None:
    _native.store.write(file, list(plain(table).items()), lasts)


@pytest.mark.parametrize("lasts", [False, True])
@pytest.mark.parametrize("rows", _ROWS)
def test_what_is_written_arrow_reads(rows: int, lasts: bool, tmp_path: Path) -> None:
    table = _table(rows, random.Random(rows))
    _write(table, tmp_path / "table", lasts)
    found = pq.read_table(tmp_path / "table")
    found.validate(full=True)
    assert found.equals(table) and found.schema == table.schema
    assert _native.store.texts(tmp_path / "table", "key") == table["key"].to_pylist()


@pytest.mark.parametrize("rows", _ROWS)
def test_settled_rows_are_those_that_arrow_sorts_and_the_first_of_equal_ones(
    rows: int, tmp_path: Path
) -> None:
    table = _table(rows, random.Random(rows))
    cut = rows // 3
    # As today's workers write them, and as older builds and Arrow do.
    _write(table.slice(0, cut), tmp_path / "ours", False)
    options = {"compression": "lz4", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table.slice(cut, cut), tmp_path / "older", **options)
    pq.write_table(table.slice(2 * cut), tmp_path / "arrows", compression="zstd")
    files = [tmp_path / name for name in ("ours", "older", "arrows")]
    _native.store.settle(files, ["key", "flow_id"], tmp_path / "settled")
    found = pq.read_table(tmp_path / "settled")
    found.validate(full=True)
    by = [(name, "ascending") for name in ("key", "flow_id", "place")]
    ordered = table.sort_by(by).to_pylist()
    first = {(row["key"], row["flow_id"]): row for row in reversed(ordered)}
    assert found.to_pylist() == list(reversed(first.values()))


@pytest.mark.parametrize("rows", [60, 3000, 70_000])
def test_the_same_rows_are_the_same_bytes_however_they_came_about(
    rows: int, tmp_path: Path
) -> None:
    draw = random.Random(rows)
    table = _table(rows, draw)
    settled = set()
    for count in (1, 2, 7):
        places = list(range(rows))
        draw.shuffle(places)
        files = []
        for part in range(count):
            mine = table.take(pa.array(places[part::count], pa.uint64()))
            files.append(tmp_path / str(part))
            if (part + count) % 2:
                pq.write_table(mine, files[-1], compression="zstd")
            else:
                _write(mine, files[-1], part == 2)
        _native.store.settle(files, ["place"], tmp_path / "settled")
        settled.add((tmp_path / "settled").read_bytes())
    assert len(settled) == 1


def test_a_file_of_other_columns_is_named(tmp_path: Path) -> None:
    table = _table(9, random.Random(1))
    _write(table, tmp_path / "one", False)
    _write(table.drop_columns(["text"]), tmp_path / "other", False)
    files = [tmp_path / "one", tmp_path / "other"]
    with pytest.raises(ValueError, match="has other columns") as raised:
        _native.store.settle(files, ["key"], tmp_path / "settled")
    assert raised.value.args[0] == files[1]
    assert not (tmp_path / "settled").exists()


def test_whatever_byte_of_a_table_flips_it_is_read_or_refused_and_nothing_else_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(5)
    _write(_table(60, draw), tmp_path / "good", True)
    good = (tmp_path / "good").read_bytes()
    refused = panics = 0
    for _ in range(600):
        bad = bytearray(good)
        bad[draw.randrange(len(bad))] = draw.randrange(256)
        (tmp_path / "bad").write_bytes(bad)
        try:
            _native.store.settle([tmp_path / "bad"], ["key", "flow_id"], tmp_path / "settled")
        except ValueError as error:
            assert error.args[0] == tmp_path / "bad"
            refused += 1
            panics += "no table can be read (" in str(error)
    assert refused > 300
    assert panics  # of the library, which says of such damage nothing else
    assert capfd.readouterr() == ("", "")


def test_parts_have_the_columns_that_readers_know_and_of_experiments_too(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    (key, *_) = sorted(store.known())
    values = pa.table({"key": [key], "name": ["share"], "version": ["1"], "value": [0.5]})
    spread = pa.table({"key": [key], "name": ["rtt"], "version": ["1"], "values": [[1.0, 2.5]]})
    store.write(Rows(), {}, {"values": plain(values), "distributions": plain(spread)})
    before = {name: store.table(name).to_pylist() for name in (*SCHEMAS, *EXTRA)}
    store.settle()
    (part,) = store.parts()
    tables = read_part(part)
    assert {name: table.schema for name, table in tables.items()} == {**SCHEMAS, **EXTRA}
    for name, rows in before.items():
        assert sorted(tables[name].to_pylist(), key=str) == sorted(rows, key=str)
    assert tables["distributions"]["values"].to_pylist() == [[1.0, 2.5]]


def test_of_a_table_that_is_gone_it_is_said_which(tmp_path: Path) -> None:
    store, _ = filled(tmp_path / "store", sweep())
    (part,) = Store(tmp_path / "store").parts()
    (part / "runs.parquet").unlink()
    with pytest.raises(UserError, match=r"runs\.parquet: damaged: .*move .* away"):
        store.known()
    with pytest.raises(UserError, match=r"runs\.parquet: damaged: .*move .* away"):
        read(part / "runs.parquet")
