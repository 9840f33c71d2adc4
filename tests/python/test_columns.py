"""Columns made and taken by their buffers are what Arrow's own functions give."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from fullpipe.columns import column, first_of_equals, order, taken

_TEXTS = ["", "a", "ab", "é", "queue", "z" * 40, None]


def _array(kind: pa.DataType, count: int, draw: random.Random) -> pa.Array:
    """Values of a kind, some of them null, that begin within their buffers."""
    values: list[object]
    if pa.types.is_list(kind):
        values = [draw.choice([None, [], [1.0], [2.5, None, 3.0]]) for _ in range(count + 3)]
    elif pa.types.is_string(kind):
        values = [draw.choice(_TEXTS) for _ in range(count + 3)]
    elif pa.types.is_boolean(kind):
        values = [draw.choice([True, False, None]) for _ in range(count + 3)]
    else:
        values = [draw.choice([None, 0, 1, 2, 2**40]) for _ in range(count + 3)]
    return pa.array(values, kind).slice(2, count)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.uint64(), pa.float64(), pa.bool_(), pa.list_(pa.float64())], ids=str
)
@pytest.mark.parametrize("count", [0, 1, 9, 100])
def test_rows_taken_are_those_that_arrow_takes(kind: pa.DataType, count: int) -> None:
    draw = random.Random(count)
    array = _array(kind, count, draw)
    rows = np.array([draw.randrange(count) for _ in range(count + 5)] if count else [], np.int64)
    found = taken(array, rows)
    found.validate(full=True)
    assert found.equals(array.take(pa.array(rows)))


@pytest.mark.parametrize("keys", [["b" * 8, "a" * 8, "a" * 7 + "b"], ["b", "", "a", "abc", "é"]])
def test_rows_in_order_and_the_first_of_equal_ones_are_arrows(keys: list[str]) -> None:
    draw = random.Random(1)
    for count in (1, 2, 60):
        table = pa.table({
            "key": pa.array([draw.choice(keys) for _ in range(count)], pa.string()),
            "flow_id": pa.array([draw.randrange(4) for _ in range(count)], pa.uint64()),
            "place": pa.array(range(count), pa.uint64()),
        })  # fmt: skip
        same = [table["key"].chunk(0), table["flow_id"].chunk(0)]
        rows = order(same)
        ordered = table.sort_by([("key", "ascending"), ("flow_id", "ascending")])
        assert rows.tolist() == ordered["place"].to_pylist()
        seen = set(zip(*(one.to_pylist() for one in same), strict=True))
        first = rows[first_of_equals(same, rows)]
        pairs = [(same[0][int(row)].as_py(), same[1][int(row)].as_py()) for row in first]
        assert pairs == sorted(seen, key=lambda pair: (pair[0].encode(), pair[1]))


def test_text_is_what_arrow_makes_of_it_whether_plain_or_not() -> None:
    for values in (["a", "", "bcd"], ["é", "a"], ["a", None], []):
        made = column(values, pa.string())
        made.validate(full=True)
        assert made.equals(pa.array(values, pa.string()))
