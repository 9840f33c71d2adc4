"""The scorecard's items as files: `scorecard/rfc9743/*.toml`, `scorecard/others/*.toml`.

A file is a sweep without the congestion control: its axes are the ranges, and the axis `cc` (fields
`cc.name` and `cc.n`) holds the subject and the congestion controls to compare with. To measure harm
it also runs without the subject: `cc.n` is 0, and only the other flows use the path.
`[[measure]]` selects the numbers of a run. Must never run anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.base.model_files import read_model
from fullpipe.base.overrides import apply_changes
from fullpipe.sweep.file import Sweep, read_sweep
from fullpipe.sweep.tables import SCHEMAS

#: In the place of a subject: nobody. A valid name that no flow has.
ALONE = "alone"
#: Runs of each cell where a file says nothing: with fewer than nine no change of a whole card can
#: be told from chance (changes.py).
SEEDS = 10
_FOLDERS = ("rfc9743", "others")
#: Columns that are numbers, by table. `path.offered` is computed (values.py).
_COLUMNS = {
    table: [column.name for column in SCHEMAS[table] if column.type == pa.float64()] + computed
    for table, computed in {"runs": [], "path": ["offered"], "flows": []}.items()
}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Measure(_Part):
    """A number of a run. `column`: of the store's tables, `table.column`, times `scale`; of flows,
    those called `group` or `group.*`, aggregated by `at`. `over` aggregates cells and seeds.
    `harm`: compares with the same run without the subject. `least`: a change by less counts for
    nothing, in `unit`. `target`: a number from another source."""

    id: str
    title: str
    unit: str = ""
    column: str
    group: str = ""
    at: Literal["mean", "min", "max", "p95", "min_times_count"] = "mean"
    better: Literal["more", "less", ""] = ""
    harm: bool = False
    over: Literal["mean", "worst", "p5"] = "mean"
    scale: float = 1.0
    least: Annotated[float, Field(ge=0)] = 0.0
    target: float | None = None


class Quick(_Part):
    """Replacements for `--quick`."""

    axis: dict[str, Any] = {}
    seeds: Annotated[int, Field(ge=1)] = SEEDS
    sample: dict[str, Any] | None = None


class Item(_Part):
    """One item."""

    id: str
    source: str
    level: str = ""
    title: str
    shows: str = ""
    needs: str = Field("", description="what is missing to run it")
    scenario: dict[str, Any] = {}
    axis: dict[str, Any] = {}
    sweep: dict[str, Any] = {}
    quick: Quick = Quick()
    measure: list[Measure] = []

    def is_of(self, chosen: str | None) -> bool:
        """Whether it is meant by an id, or by the beginning of one, such as rfc9743; None means
        all."""
        return chosen is None or self.id == chosen or self.id.startswith(f"{chosen}-")

    @property
    def harms(self) -> bool:
        """Whether it needs runs without the subject."""
        return any(measure.harm for measure in self.measure)

    def runs(
        self,
        subject: str,
        quick: bool,
        engine: str,
        seeds: int | None = None,
        overrides: Sequence[str] = (),
    ) -> Sweep:
        """The sweep of one subject, or of ALONE, with the same cells in the same order. `seeds`:
        runs of each cell, in place of the file's. `overrides`: keys of its scenarios, such as
        `path.loss=1%`.

        Raises UserError if it is none."""
        nobody = subject == ALONE
        name = {"label": subject, "name": "cubic" if nobody else subject, "n": int(not nobody)}
        options = {"seeds": SEEDS, **self.sweep, "name": self.id, "engine": engine}
        axes = {**self.axis}
        if quick:
            axes |= self.quick.axis
            options["seeds"] = min(self.quick.seeds, options["seeds"])
            if self.quick.sample:
                options["sample"] = self.quick.sample
        if seeds is not None:
            options["seeds"] = seeds
        document = {
            "scenario": apply_changes({"name": self.id, **self.scenario}, overrides),
            "axis": {**axes, "cc": [name]},
            "sweep": options,
        }
        return read_sweep(document, self.id)


def items(folder: Path | None = None) -> list[Item]:
    """All items, RFC 9743's first. Raises UserError naming file and key."""
    source_folder = folder or shipped("scorecard")
    return [
        _read(path) for name in _FOLDERS for path in sorted((source_folder / name).glob("*.toml"))
    ]


def check_measures(measures: Sequence[Measure], where: str) -> None:
    """Raises UserError for a measure that the store's tables do not have; `where` is the key of
    the list, with its file."""
    for index, measure in enumerate(measures):
        item_where = f"{where}.{index}"
        table, _, column = measure.column.partition(".")
        if table not in _COLUMNS:
            tables = ", ".join(_COLUMNS)
            raise UserError(
                f"{item_where}.column: {measure.column!r} is no TABLE.COLUMN; "
                f"the tables are {tables}"
            )
        if column not in _COLUMNS[table]:
            columns = ", ".join(_COLUMNS[table])
            raise UserError(
                f"{item_where}.column: {column!r} is no column of {table}; there are {columns}"
            )
        if (table == "flows") != bool(measure.group):
            raise UserError(f"{item_where}.group: belongs to columns of flows, which need it")
        if measure.harm and not measure.better:
            raise UserError(f"{item_where}.better: is missing; harm needs it")


def _read(path: Path) -> Item:
    item = read_model(Item, path)
    check_measures(item.measure, f"{path}: measure")
    return item
