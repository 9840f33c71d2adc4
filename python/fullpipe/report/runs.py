"""Recordings as a report reads them: checked, summarised, grouped by what was repeated.

Must never know how anything is drawn. Metadata may come from anywhere: what a report relies on is
checked here, once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fullpipe.base.errors import UserError
from fullpipe.base.refusals import explain
from fullpipe.base.units import UnitError, counted, parse_spread, parse_time
from fullpipe.congestion.trust import from_outside
from fullpipe.metrics import View, goodput_bps, link_share, ping_ms, queue_delay_rttmin, summary_of
from fullpipe.metrics.view import Floats
from fullpipe.plan.plan import Plan as ResolvedPlan
from fullpipe.plan.resolve import resolve
from fullpipe.plan.seeds import without_seed
from fullpipe.recording.recording import Recording, RecordingError
from fullpipe.report.naming import Identity, labels_of
from fullpipe.scenario.model import Scenario, make_scenario

_Count = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Sender = TypeVar("_Sender", bound=_Named)


class _Checked(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)


class Aqm(_Checked):
    """The discipline of a queue."""

    kind: str


class Qdisc(_Checked):
    """A queue."""

    limit_bytes: _Count | None = None
    limit_packets: _Count | None = None
    aqm: Aqm


class Path(_Checked):
    """What lies between the ends."""

    rate_bps: _Rate
    reverse_rate_bps: _Rate | None = None
    forward_delay_ns: _Count
    reverse_delay_ns: _Count
    mtu_bytes: _Count = 1500
    qdisc: Qdisc
    reverse_qdisc: Qdisc | None = None


class Plan(_Checked):
    """What was to run."""

    name: str | None = None
    duration_ns: _Count = 0
    sample_interval_ns: _Count = 0
    path: Path | None = None


class Health(_Checked):
    """What the instrument says of itself."""

    problems: list[str] = Field(default=[])


class Variable(_Checked):
    """A variable that only some algorithms have."""

    unit: str
    meaning: str


class Metadata(_Checked):
    """What a report reads of a recording's metadata.json."""

    engine: str | None = None
    options: dict[str, str] = Field(default={})
    kernel: str | None = None
    fullpipe_version: str | None = None
    git_commit: str | None = None
    seed: int | None = None
    warmup_ns: _Count = 0
    interrupted: bool = False
    failure: str | None = None
    plan: Plan = Field(default_factory=Plan)
    health: Health = Field(default_factory=Health)
    constants: dict[str, dict[str, float]] = Field(default={})
    variables: dict[str, dict[str, Variable]] = Field(default={})


@dataclass(frozen=True)
class Run:
    """One recording, checked, and what tables and distributions need of it."""

    recording: Recording
    metadata: Metadata
    summary: dict[str, Any]
    warnings: list[str]
    ccs: list[str]
    goodput_bps: Floats
    queue_delay_rttmin: Floats
    ping_ms: Floats
    #: Goodput of the flows of each congestion control over nominal capacity; NaN where not known.
    shares: dict[str, float]

    @cached_property
    def trusted(self) -> tuple[Scenario, ResolvedPlan] | None:
        """The recording's scenario and plan; None where the scenario, read again, gives another
        plan, since an external recording may say anything."""
        try:
            with from_outside():  # reading a class executes it
                scenario = make_scenario(self.recording.document)
                plan = resolve(scenario, self.metadata.seed)
        except (UserError, ValueError):
            return None
        return (scenario, plan) if plan == self.recording.metadata.get("plan") else None

    @property
    def mark(self) -> str:
        """What is wrong in capitals, such as `UNHEALTHY, INTERRUPTED`, for where `warnings` take
        too much room; empty where the run is to be trusted."""
        return ", ".join(dict.fromkeys(_first_word(text).upper() for text in self.warnings))

    @property
    def name(self) -> str:
        """The scenario's name, or the folder's."""
        return self.metadata.plan.name or self.recording.path.name


@dataclass(frozen=True)
class Group:
    """Repetitions: runs of the same thing that differ in their seed alone."""

    label: str
    runs: list[Run]

    @property
    def count(self) -> str:
        """`n = 5 runs`, saying how many of them are not to be trusted."""
        text = f"n = {counted(len(self.runs), 'run')}"
        return f"{text}, {self.mark}" if self.mark else text

    def senders(
        self, read: Callable[[View], Sequence[_Sender]]
    ) -> Iterator[tuple[str, tuple[_Sender, ...]]]:
        """What `read` finds in the runs, sender by sender (a page, a group of traffic): the label,
        which names the sender where there are several, and one of each run."""
        runs = [read(View(run.recording)) for run in self.runs]
        for members in zip(*runs, strict=False):
            alone = len(runs[0]) == 1
            yield self.label if alone else f"{self.label}: {members[0].name}", members

    @property
    def mark(self) -> str:
        """Such as `2 UNHEALTHY`; empty where all runs are to be trusted."""
        marks = [run.mark for run in self.runs if run.mark]
        return ", ".join(f"{marks.count(mark)} {mark}" for mark in dict.fromkeys(marks))

    @property
    def alarm(self) -> str:
        """Why runs of the group are not to be trusted, each reason once; empty where all are."""
        reasons = list(dict.fromkeys(warning for run in self.runs for warning in run.warnings))
        bad = sum(bool(run.warnings) for run in self.runs)
        return f"{self.label}: {bad} of {len(self.runs)}: {'; '.join(reasons)}" if bad else ""

    @property
    def identity(self) -> Identity:
        """What tells the group apart from others."""
        return _identity(self.runs)

    @property
    def ccs(self) -> list[str]:
        """The congestion controls that ran, in the order of the flows."""
        return list(dict.fromkeys(cc for run in self.runs for cc in run.ccs))


def _first_word(text: str) -> str:
    return text.split()[0].rstrip(":")


def read_run(recording: Recording) -> Run:
    """The run in a recording. Raises RecordingError where a report cannot rely on it."""
    metadata = _metadata(recording)
    view = View(recording)
    identifiers = view.flows["flow_id"]
    if not np.array_equal(identifiers, np.arange(identifiers.size)):
        raise RecordingError(
            f"{recording.path}/flows.parquet: flow_id is not 0, 1, 2, ... in this order"
        )
    ccs = [str(cc) for cc in view.flows["cc"]]
    return Run(
        recording,
        metadata,
        summary=summary_of(view),
        warnings=recording.warnings,
        ccs=ccs,
        goodput_bps=goodput_bps(view),
        queue_delay_rttmin=queue_delay_rttmin(view),
        ping_ms=ping_ms(view),
        shares={cc: link_share(view, cc) for cc in dict.fromkeys(ccs)},
    )


def grouped(runs: Sequence[Run]) -> list[Group]:
    """Runs grouped by engine, its options, the kernel and the plan, the seed left out; labels tell
    groups apart."""
    by_key: dict[str, list[Run]] = {}
    for run in runs:
        metadata = run.metadata
        plan = _repeated(run.recording)
        identity = [run.name, metadata.engine, metadata.options, metadata.kernel, plan]
        key = json.dumps(identity, sort_keys=True)
        by_key.setdefault(key, []).append(run)
    labels = labels_of([_identity(members) for members in by_key.values()])
    return [Group(label, members) for label, members in zip(labels, by_key.values(), strict=True)]


def _identity(runs: Sequence[Run]) -> Identity:
    """What repetitions have in common, as names tell it."""
    metadata = runs[0].metadata
    settings = {name.replace("_", "-"): value for name, value in metadata.options.items()}
    settings |= {"engine": metadata.engine or "", "kernel": metadata.kernel or ""}
    folders = [run.recording.path for run in runs]
    return Identity(runs[0].name, folders, runs[0].recording.document, settings)


def _repeated(recording: Recording) -> Any:
    """What repetitions of a run have in common of their plans."""
    plan = recording.metadata.get("plan", {})
    try:
        starts = parse_time(recording.document.get("start_spread", 0))
        spread = parse_spread(recording.document.get("rtt_spread", 0))
        return without_seed(plan, starts, spread)
    except (UnitError, AttributeError, KeyError, TypeError):
        return plan  # from elsewhere, and not as this program writes it


def _metadata(recording: Recording) -> Metadata:
    try:
        return Metadata.model_validate(recording.metadata)
    except ValidationError as error:
        problem = explain(error, Metadata)
        raise RecordingError(f"{recording.path}/metadata.json: {problem}") from None
