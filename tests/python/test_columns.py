"""Columns made by their buffers are what Arrow's own functions give."""

from __future__ import annotations

import pyarrow as pa

from fullpipe.base.columns import column


def test_text_is_what_arrow_makes_of_it_whether_plain_or_not() -> None:
    for values in (["a", "", "bcd"], ["é", "a"], ["a", None], []):
        made = column(values, pa.string())
        made.validate(full=True)
        assert made.equals(pa.array(values, pa.string()))
