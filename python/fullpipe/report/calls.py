"""A chart of the calls of an algorithm: columns of `fullpipe trace calls` over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from fullpipe.base.errors import UserError
from fullpipe.plots import style
from fullpipe.plots.model import Grid, Plot, Trace, thin

#: More connections than this in one plot cannot be told apart.
MAX_CONNECTIONS = 16


def calls_chart(table: pa.Table, columns: Sequence[str]) -> Grid:
    """A panel a column, one below the other, with a line a connection; a value holds until the next
    call that has one. Raises UserError for a column of text."""
    times = table["t_us"].to_numpy() / 1e6
    ccs, numbers = np.array(table["cc"].to_pylist()), table["connection"].to_numpy()
    shown = list(dict.fromkeys(zip(ccs.tolist(), numbers.tolist(), strict=True)))[:MAX_CONNECTIONS]
    panels = []
    for column in columns:
        if pa.types.is_string(table[column].type):
            raise UserError(f"--plot {column}: holds text; name a column of numbers")
        values = table[column].cast(pa.float64(), safe=False).to_numpy()
        traces = []
        for position, (cc, number) in enumerate(shown):
            of_connection = (ccs == cc) & (numbers == number) & np.isfinite(values)
            name = f"{cc} {number}" if len(shown) > 1 else cc
            x, y = thin(times[of_connection], values[of_connection])
            traces.append(Trace(name, style.line_colour(position), x, y, width=1.0, shape="after"))
        panels.append(Plot(column, column, "time (s)", "", traces, over_time=True, zero=False))
    return Grid("Calls of the algorithm", panels, most_columns=1, share_y=False)
