"""A sweep's store, for programs and notebooks: tables, SQL, charts. Must never run anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from fullpipe.api.recordings import Drawing
from fullpipe.base.errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_SHOWN_CELLS = 10


class SweepResults:
    """A sweep in a store (docs/reference/sweeps.md). Its views are `cells` (a row for each cell),
    `runs` (for each run), `flows` (for each flow of a run), `path` (the bottleneck of each run),
    and `pages`, `streams`, `probes` and `traffic` (for each of these in a run).
    Each view has the sweep's axes as columns."""

    def __init__(self, folder: str | Path, sweep: str | None = None) -> None:
        """`sweep`: which one of the store, by name or id, or `all`; by default the one that was
        asked for last. Raises UserError if the folder is no store or has no such sweep."""
        from fullpipe.sweep.listing import ALL, chosen
        from fullpipe.sweep.store import Store

        self.folder = Path(folder)
        self._store = Store(self.folder)
        meant = chosen(self._store.listing(), sweep)
        self.sweep = meant[0].id if sweep != ALL and meant else sweep

    @property
    def sweeps(self) -> dict[str, str]:
        """All sweeps of the store: id -> name, the newest last."""
        return dict(self._store.listing())

    def table(self, view: str = "flows") -> pa.Table:
        """A view as Arrow. Raises UserError for an unknown one."""
        from fullpipe.sweep.query import VIEWS

        if view not in VIEWS:
            raise UserError(f"view {view!r}: unknown; known are {', '.join(VIEWS)}")
        return self.query(f"select * from {view} order by all")

    def _asked(self, question: str) -> pa.Table:
        """A view, or the answer to a question: only that has words."""
        return self.query(question) if len(question.split()) > 1 else self.table(question)

    def query(self, sql: str) -> pa.Table:
        """The answer to one SELECT over the views, as Arrow. Raises UserError with what is
        wrong with it."""
        from fullpipe.sweep.query import ask

        return ask(self._store, sql, sweep=self.sweep)

    def pandas(self, view: str = "flows") -> pd.DataFrame:
        """`table(view)`, or `query(view)` where it is a SELECT, for pandas."""
        frame: pd.DataFrame = self._asked(view).to_pandas()
        return frame

    def polars(self, view: str = "flows") -> pl.DataFrame:
        """`table(view)`, or `query(view)` where it is a SELECT, for Polars."""
        import polars as pl

        frame = pl.from_arrow(self._asked(view))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def plot(
        self,
        y: str,
        x: str | None = None,
        by: str | None = None,
        facet: str | None = None,
        kind: str = "line",
        where: str | None = None,
    ) -> Drawing:
        """A metric over axes, as `fullpipe plot`: `kind` is line (means of runs with 95 %
        intervals), heat, box, cdf or pareto. Raises UserError for an unknown column."""
        from fullpipe.plots.matplotlib_renderer import figure_of
        from fullpipe.sweep.chart import Request, make_chart

        request = Request(y, x, by, facet, kind, where, self.sweep)
        return Drawing(figure_of(make_chart(self._store, request)))

    def __repr__(self) -> str:
        return f"<SweepResults: {self.folder}>"

    def _repr_html_(self) -> str:
        frame = self.pandas("cells")
        shown = frame.head(_SHOWN_CELLS).to_html(index=False, border=0)
        more = len(frame) - _SHOWN_CELLS
        return str(shown) + (f"<p>and {more} more cells: .table()</p>" if more > 0 else "")
