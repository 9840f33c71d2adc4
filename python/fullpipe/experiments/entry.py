"""An entry of the catalogue: one TOML file for a figure or table of a paper, validated key by key.

docs/reference/experiments.md explains the keys. This module must not know runs.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from fullpipe.experiments.grid import Cell, cells_of
from fullpipe.sweep.axes import Axis, read_axis

Size = Literal["default", "full"]
EngineName = Literal["sim", "vm", "live"]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
Sentence = Annotated[str, Field(min_length=1, max_length=2000)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


#: As a sweep's: lists or ranges (`fullpipe.sweep.axes`).
Axes = dict[Name, list[Any] | dict[str, Any]]


class _Gridded(_Section):
    """Has the axes of a grid, or of several that are united. Older files call them `grid`."""

    axis: list[Axes] = Field(default=[], description="axes of the grid, or of several")

    @model_validator(mode="before")
    @classmethod
    def _accept_grid(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not {"axis", "grid"} & data.keys():
            return data
        if {"axis", "grid"} <= data.keys():
            raise ValueError("grid: is what older files call axis; leave it out")
        axis = data.get("axis", data.get("grid"))
        fields = {key: value for key, value in data.items() if key != "grid"}
        return {**fields, "axis": [axis] if isinstance(axis, dict) else axis}


class SizeOptions(_Gridded):
    """The changes of one size of the experiment; its axes stand instead of the experiment's."""

    repetitions: int | None = Field(None, ge=1, le=1000, description="runs of each cell")
    scenario: dict[str, Any] = Field(default={}, description="merged into [scenario]")


class Metric(_Section):
    """A number measured in every run of every cell."""

    value: Sentence = Field(description="expression of the metric language; may hold {axes}")
    title: str = Field("", max_length=200, description="in tables and plots")
    unit: str = Field("", max_length=40, description="as it is printed")
    over_runs: Literal["mean", "median"] = Field("mean", description="a cell's value")
    predict: str | None = Field(
        None, description="what models predict of it: share:CC, jain, loss, queue_bytes, occupancy"
    )

    @field_validator("predict")
    @classmethod
    def _check_predict(cls, value: str | None) -> str | None:
        if value and not re.fullmatch(r"share:\S+|jain|loss|queue_bytes|occupancy", value):
            raise ValueError("must be share:CC, jain, loss, queue_bytes or occupancy")
        return value


class Published(_Section):
    """Values that the paper prints, for the cells that `at` selects, in the order of `along`."""

    metric: Name
    at: dict[Name, str | int | float] = {}
    along: Name | None = None
    values: list[float] = Field(min_length=1)
    source: str = Field("", description="where it is printed, if not in the figure")

    @model_validator(mode="after")
    def _consistent(self) -> Published:
        if self.along is None and len(self.values) != 1:
            raise ValueError("values: more than one need `along`, the axis that they follow")
        return self


class Number(_Section):
    """A number that claims use and no run measures: printed in the paper or from its raw data."""

    value: float
    source: Sentence


class Observed(_Section):
    """How rows of an --observed file match cells."""

    metric: Name
    column: str
    match: dict[str, str | int | float] = Field(description="column -> what it must hold")
    source: str = ""


#: What plots draw beside metrics, by their kind, with the title of its axis.
DRAWN: dict[str, dict[str, str]] = {
    "cdf": {
        "queue_delay_rttmin": "queueing delay (RTTmin)",
        "ping_ms": "ping (ms)",
        "goodput_mbps": "goodput of flows (Mbit/s)",
        "total_goodput_mbps": "total goodput (Mbit/s)",
        "page_s": "page load (s)",
        "flow_bytes": "size of a random flow (bytes)",
        "flow_bytes_by_byte": "size of a random byte's flow (bytes)",
    },
    "time": {
        "queue_delay_rttmin": "queueing delay (RTTmin)",
        "ping_ms": "ping (ms)",
        "goodput_mbps": "goodput of flows (Mbit/s)",
        "page_s": "page load (s)",
        "backlog_bytes": "backlog (bytes)",
        "inflight_packets": "packets of the first flow",
        "bbr_jitter_ms": "jitter as BBR estimates it (ms)",
        "estimate_mbps": "bandwidth that BBR estimates (Mbit/s)",
        "estimates_mbps": "sum of BBR's bandwidth estimates (Mbit/s)",
    },
}
DRAWN["box"] = {**DRAWN["cdf"], "stream_goodput_mbps": "goodput of each flow (Mbit/s)"}


class Plot(_Section):
    """A plot of the results."""

    kind: Literal["line", "cdf", "box", "time"] = "line"
    of: Name = Field(description="line: a metric; else what DRAWN has of this kind")
    x: Name | None = Field(None, description="line, box: the horizontal axis")
    part: str = Field(
        "", max_length=80, description="of backlog_bytes the queue, of page_s over time the page"
    )
    flow: int | None = Field(None, ge=1, description="time: only this flow, counted from 1")
    consecutive: bool = Field(
        False,
        description="time: runs one after another: up to ten of bbr_jitter_ms, three of others",
    )
    quartiles: bool = Field(
        False, description="time: median and quartiles of the runs, of queue_delay_rttmin"
    )
    phases: list[Name] = Field(
        default=[], description="time: a line where the first flow begins one of these phases"
    )
    between_s: tuple[float, float] | None = Field(
        None, description="time: only from one time of the run to another"
    )
    by: list[Name] = Field(default=[], description="axes of which each value is a line")
    panel: list[Name] = Field(default=[], description="axes of which each value is a figure")
    log_x: bool = False
    log_y: bool = False
    whiskers: Literal["5-95", "1.5 IQR"] = Field(
        "5-95", description="of boxes: percentiles, or the last within 1.5 interquartile ranges"
    )
    title: str = ""


class Tried(_Section):
    """A cause that was tried for a number that is not understood."""

    cause: Sentence
    effect: Sentence = Field(description="what it changed, measured")


class Unexplained(_Section):
    """Why a claim that fails contradicts nothing yet: the paper's own set-up gives another number,
    and no cause that was tried accounts for it."""

    setup: Sentence = Field(description="in what the cells are the paper's own set-up")
    tried: list[Tried] = Field(min_length=2, description="causes with their measured effects")


class Claim(_Section):
    """One checkable sentence."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=60)]
    text: Sentence = Field(description="the sentence, in our words or quoted")
    where: str = Field("", description="section, table or figure of the paper")
    about: Literal["paper", "simulator", "arithmetic"] = Field(
        "paper", description="simulator: our own target; arithmetic: of the paper's own numbers"
    )
    published: str = Field("", description="as the paper prints it")
    check: Sentence | None = Field(None, description="expression that holds or not")
    value: Sentence | None = Field(None, description="expression shown as measured")
    unit: str = ""
    needs: str = Field("", description="what is missing to test it here")
    explanation: str = Field("", description="why it is contradicted; shown only then")
    right_if: str = Field(
        "",
        description="a sentence: what would have to be true for the paper to be right. Pages of a "
        "paper ask for it where a claim is contradicted or differs",
    )
    unexplained: Unexplained | None = Field(None, description="makes a contradiction *unexplained*")
    held_out: bool = Field(
        False, description="not looked at before all entries were final; counted by itself too"
    )
    note: str = Field("", description="always shown")
    reread: str = Field(
        "", description="what reading the claim again against the paper changed, and why; counted"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Claim:
        if (self.check is None) == (not self.needs):
            raise ValueError("check: give either check or needs (what is missing)")
        if self.unexplained is not None and (self.check is None or self.about == "arithmetic"):
            raise ValueError("unexplained: only of a claim with a check on runs")
        return self


class Entry(_Gridded):
    """One figure or table of a paper."""

    id: str = Field("", exclude=True, description="stem of the file's name, set by the reader")
    folder: Path = Field(Path(), exclude=True, description="the file's folder, set by the reader")
    paper: str = Field(
        "",
        max_length=60,
        description="citation key of docs/background/papers.md, or any text: a page's section",
    )
    figure: str = Field("", max_length=200, description="such as Fig. 8, or Table I")
    title: Sentence
    shows: str = Field(
        "", max_length=2000, description="what the figure shows and how it was measured"
    )
    differs: str = Field("", description="the differences from the paper, and why")
    engines: list[EngineName] = Field(default=["sim"], min_length=1)
    compare_engines: bool = Field(False, description="engine is an axis that claims may use")
    comparison_file: str = Field(
        "",
        pattern=r"^(|[a-z0-9_]+(/[a-z0-9_]+)*\.md)$",
        description="page of the engines' comparison, relative to the catalogue's parent folder",
    )
    not_yet_runnable: str = Field("", description="what is missing to run it")
    scenario: dict[str, Any] = Field(default={}, description="keys of a scenario file")
    repetitions: int = Field(3, ge=1, le=1000)
    repetitions_on: dict[Literal["sim", "vm", "live"], Annotated[int, Field(ge=1, le=1000)]] = (
        Field({}, description="runs of each cell on one engine, in every size")
    )
    most_repetitions: int = Field(
        24, ge=1, le=1000, description="runs of a cell at most, while a verdict stays uncertain"
    )
    default: SizeOptions = SizeOptions()
    full: SizeOptions = SizeOptions()
    metric: dict[Name, Metric] = {}
    published: list[Published] = []
    number: dict[Name, Number] = {}
    observed: list[Observed] = Field([], description="a table, or several")
    plot: list[Plot] = []
    claim: list[Claim] = []

    @field_validator("observed", mode="before")
    @classmethod
    def _several(cls, value: object) -> object:
        return [value] if isinstance(value, dict) else value

    @property
    def source(self) -> str:
        """The file's name, for errors."""
        return f"{self.id}.toml"

    @property
    def heading(self) -> str:
        """The figure, if there is one, and the title."""
        return f"{self.figure}: {self.title}" if self.figure else self.title

    @property
    def runnable(self) -> bool:
        """Whether it has cells to run. Entries without a scenario are arithmetic only."""
        return bool(self.scenario) and not self.not_yet_runnable

    @property
    def axes(self) -> list[str]:
        """Names of the axes, with `engine` if engines are compared."""
        names = list(self.axis[0]) if self.axis else []
        return [*names, "engine"] if self.compare_engines else names

    def grids(self, of: _Gridded | None = None) -> list[list[Axis]]:
        """The axes of its grids, or of those of one size. Raises UserError naming file and key."""
        return [
            [
                read_axis(name, values, f"{self.source}: axis.{index}.{name}")
                for name, values in axes.items()
            ]
            for index, axes in enumerate((of or self).axis)
        ]

    def repetitions_of(self, size: Size, engine: str = "") -> int:
        """Runs of each cell, on a given engine if it is named."""
        counts = [count for name, count in self.repetitions_on.items() if name == engine]
        return counts[0] if counts else self._options(size).repetitions or self.repetitions

    @property
    def shortened(self) -> bool:
        """Whether the default size differs from the paper's."""
        default, full = self.default, self.full
        same = default.axis == full.axis and default.scenario == full.scenario
        return not same or self.repetitions_of("default") != self.repetitions_of("full")

    def cells(self, size: Size) -> list[Cell]:
        """The cells of this size. Raises UserError naming file, cell and key."""
        return self._cells[size]

    def _options(self, size: Size) -> SizeOptions:
        return self.full if size == "full" else self.default

    @cached_property
    def _cells(self) -> dict[Size, list[Cell]]:
        if not self.runnable:
            return {"default": [], "full": []}
        sizes: tuple[Size, ...] = ("default", "full")
        return {
            size: cells_of(
                self.grids(self._options(size)) or self.grids(),
                _merged({"name": self.id, **self.scenario}, self._options(size).scenario),
                self.source,
                self.folder,
            )
            for size in sizes
        }


def _merged(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        result[key] = _merged(old, value) if both else value  # type: ignore[arg-type]
    return result
