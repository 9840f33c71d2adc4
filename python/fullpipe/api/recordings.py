"""Recordings for programs and notebooks: sequences of them, their tables, metrics and plots.

Reads recordings; must never run one.
"""

from __future__ import annotations

import html
import io
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from fullpipe.base.errors import UserError
from fullpipe.recording.recording import TABLES, Recording

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.figure import Figure

#: Rows of metrics, and runs, that a notebook shows.
_SHOWN_ROWS, _SHOWN_PLOTS = 12, ("throughput", "queue")


class Drawing:
    """A figure that a notebook shows by itself and a program saves.

    `figure` is Matplotlib's, of no window: change it as you like."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def save(self, path: str | Path) -> Path:
        """Writes it by the file's ending (.svg, .png, .pdf). Raises UserError if it cannot."""
        try:
            self.figure.savefig(path, dpi=150)
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: cannot be written: {error}") from None
        return Path(path)

    def _repr_svg_(self) -> str:
        text = io.StringIO()
        self.figure.savefig(text, format="svg", metadata={"Date": None})
        return text.getvalue()


class Recordings(Sequence[Recording]):
    """A sequence of `Recording`, usually one scenario's runs with several seeds.

    Tables have the rows of all runs, with `run` (the position here, from 0) and `seed` before their
    own columns. Times are in us or s, rates in bit/s, as the names of columns state."""

    def __init__(
        self, recordings: Sequence[Recording], keeps: TemporaryDirectory[str] | None = None
    ) -> None:
        """`keeps`: a temporary folder that holds them, deleted with the last of them."""
        self._recordings = [
            replace(recording, keeps=keeps) if keeps else recording for recording in recordings
        ]

    @overload
    def __getitem__(self, index: int) -> Recording: ...
    @overload
    def __getitem__(self, index: slice) -> Recordings: ...
    def __getitem__(self, index: int | slice) -> Recording | Recordings:
        if isinstance(index, slice):
            return Recordings(self._recordings[index])
        return self._recordings[index]

    def __len__(self) -> int:
        return len(self._recordings)

    def __iter__(self) -> Iterator[Recording]:
        return iter(self._recordings)

    @property
    def seeds(self) -> list[int | None]:
        """The seed of each run; None if an imported recording has none."""
        return [recording.metadata.get("seed") for recording in self]

    @property
    def warnings(self) -> list[str]:
        """Why runs are unreliable, one sentence each; empty if all are reliable."""
        return [
            f"run {run}: {text}"
            for run, recording in enumerate(self)
            for text in recording.warnings
        ]

    def table(self, name: str) -> pa.Table:
        """A table of the recordings as Arrow: flows, flow_samples, queue_samples, ping_samples,
        cc_samples, events; a row a flow, a sample, an event.

        Raises UserError for an unknown name, RecordingError where a file is damaged."""
        if name not in TABLES:
            raise UserError(f"table {name!r}: unknown; known are {', '.join(TABLES)}")
        return self._joined([recording.table(name) for recording in self], TABLES[name])

    def metrics(self, of: str = "flows") -> pa.Table:
        """Metrics after the warm-up as Arrow, in the columns of a sweep's store
        (docs/reference/sweeps.md).

        "flows": a row a flow of a run (goodput_bps, share, retransmit_ratio, rtt_*_us,
        cwnd_mean_packets, completion_s); "path": a row a run of the bottleneck (utilisation,
        queue_delay_*_ms, loss_ratio, ...); "runs": a row a run (goodput_bps, jain, ping_*_ms).
        Raises UserError for another name."""
        from fullpipe.sweep.measures import measured, recorded
        from fullpipe.sweep.tables import SCHEMAS

        if of not in SCHEMAS:
            raise UserError(f"metrics {of!r}: unknown; known are {', '.join(SCHEMAS)}")
        tables = []
        for recording in self:
            table = measured([recorded("", recording)])[of]
            tables.append(
                table.drop_columns([c for c in ("key", "seed") if c in SCHEMAS[of].names])
            )
        return self._joined(tables, tables[0].schema if tables else pa.schema([]))

    def pandas(self, name: str = "flows") -> pd.DataFrame:
        """`table(name)` for pandas."""
        frame: pd.DataFrame = self.table(name).to_pandas()
        return frame

    def polars(self, name: str = "flows") -> pl.DataFrame:
        """`table(name)` for Polars."""
        import polars as pl

        frame = pl.from_arrow(self.table(name))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def summaries(self) -> list[dict[str, Any]]:
        """The summary of each run, as `fullpipe run --json` prints it
        (`fullpipe.metrics.summarise`)."""
        from fullpipe.metrics import summarise

        return [summarise(recording) for recording in self]

    def plot(self, name: str = "throughput", run: int = 0) -> Drawing:
        """A run over time: throughput, cwnd, rtt, queue, rates, phases or ping. Raises UserError
        if the run has no such data, with what it has."""
        from fullpipe.plots.matplotlib_renderer import figure_of
        from fullpipe.report.runs import read_run
        from fullpipe.report.timeline import time_plots

        plots = {plot.key: plot for plot in time_plots(read_run(self[run]))}
        if name not in plots:
            raise UserError(f"plot {name!r}: this run has {', '.join(plots)}")
        return Drawing(figure_of(plots[name]))

    def report(self, path: str | Path, light: bool = False) -> Path:
        """Writes the HTML page of `fullpipe run`; `light`: without scripts. Returns its path."""
        from fullpipe.report.page import write_report

        written: Path = write_report(list(self), Path(path), light=light)
        return written

    def save(self, folder: str | Path) -> Recordings:
        """Copies the recordings into a folder, where `fullpipe.load` finds them: itself for one,
        `run-000` and so on for several. Raises UserError if it exists."""
        folder = Path(folder)
        if folder.exists():
            raise UserError(f"{folder}: exists already; name another folder")
        targets = [folder / f"run-{index:03d}" for index in range(len(self))]
        targets = [folder] if len(self) == 1 else targets
        for recording, target in zip(self, targets, strict=True):
            try:
                shutil.copytree(recording.path, target)
            except OSError as error:
                raise UserError(f"{target}: cannot be written: {error}") from None
        return Recordings([Recording.open(target) for target in targets])

    def _joined(self, tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
        marked = []
        for run, (table, seed) in enumerate(zip(tables, self.seeds, strict=True)):
            rows = table.num_rows
            table = table.add_column(0, "seed", pa.array([seed] * rows, pa.uint64()))
            marked.append(table.add_column(0, "run", pa.array([run] * rows, pa.uint64())))
        first = [("run", pa.uint64()), ("seed", pa.uint64())]
        if not marked:
            return pa.schema([*first, *schema]).empty_table()
        # A run has columns for the variables of its own algorithms only.
        return pa.concat_tables(marked, promote_options="default")

    def __repr__(self) -> str:
        names = {
            str(recording.metadata.get("plan", {}).get("name") or recording.path.name)
            for recording in self
        }
        return f"<Recordings: {len(self)} of {', '.join(sorted(names)) or 'nothing'}>"

    def _repr_html_(self) -> str:
        """A table of flows and two small plots of the first run. Text of a recording may come from
        anywhere: it is escaped."""
        from fullpipe.plots.matplotlib_renderer import svg
        from fullpipe.report.runs import read_run
        from fullpipe.report.timeline import time_plots

        if not self:
            return "<p>no recordings</p>"
        parts = [_html_table(self.metrics().slice(0, _SHOWN_ROWS))]
        rows = self.metrics().num_rows
        if rows > _SHOWN_ROWS:
            parts.append(f"<p>and {rows - _SHOWN_ROWS} more flows: .metrics()</p>")
        parts += [f"<p><b>{html.escape(text)}</b></p>" for text in self.warnings]
        plots = {plot.key: plot for plot in time_plots(read_run(self[0]))}
        drawn = [
            f"<div style='max-width:560px'><b>{html.escape(plots[key].title)}</b>"
            f"{svg(plots[key])}</div>"
            for key in _SHOWN_PLOTS
            if key in plots
        ]
        return "".join([*parts, f"<div style='display:flex;flex-wrap:wrap'>{''.join(drawn)}</div>"])


#: column -> (heading, what its value is divided by, digits).
_COLUMNS = {
    "run": ("run", 1, 0),
    "seed": ("seed", 1, 0),
    "flow": ("flow", None, 0),
    "cc": ("cc", None, 0),
    "goodput_bps": ("goodput, Mbit/s", 1e6, 2),
    "share": ("share", 1, 3),
    "rtt_p50_us": ("RTT p50, ms", 1e3, 1),
    "rtt_p95_us": ("RTT p95, ms", 1e3, 1),
    "retransmit_ratio": ("retransmitted, %", 0.01, 2),
    "cwnd_mean_packets": ("cwnd, packets", 1, 1),
}


def _html_table(table: pa.Table) -> str:
    head = "".join(f"<th>{title}</th>" for title, _, _ in _COLUMNS.values())
    rows = []
    for row in table.to_pylist():
        cells = []
        for name, (_, scale, digits) in _COLUMNS.items():
            value = row[name]
            if scale is None or value is None:
                cells.append(html.escape("" if value is None else str(value)))
            else:
                cells.append(f"{value / scale:.{digits}f}")
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
