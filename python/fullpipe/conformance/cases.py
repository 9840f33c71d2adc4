"""What documents ask of a congestion control, case by case, as files: the example test cases of
draft-ietf-ccwg-bbr (`scorecard/draft/*.toml`), RFC 9438 on CUBIC, RFC 5681 and 6582 on Reno.

A file holds a scenario, the paths that it is repeated over, the measure that reads BBR's variables
(draft_measures.py) or the window (window_measures.py), and what is held against it. A case is a
sweep with axes `path` and `cc`. Must never run anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fullpipe.base.errors import UserError
from fullpipe.base.installed import shipped
from fullpipe.base.model_files import read_model
from fullpipe.conformance import measured_conditions
from fullpipe.conformance.draft_measures import MEASURES
from fullpipe.conformance.window_measures import WINDOW_MEASURES
from fullpipe.expr.language import ExpressionError
from fullpipe.sweep.file import Sweep, read_sweep

#: The documents by the folders that hold their cases.
DRAFT, CUBIC, RENO = "draft", "rfc9438", "rfc5681"
DOCUMENTS = {
    DRAFT: "draft-ietf-ccwg-bbr",
    CUBIC: "RFC 9438 (CUBIC)",
    RENO: "RFC 5681 and 6582 (Reno)",
}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Hold(_Part):
    """One requirement: a text, and a condition on the measured values."""

    text: str
    check: str


class Trigger(_Part):
    """When a change happens: `rounds` base RTTs after the connection enters or leaves a phase for
    the `visit`-th time. A separate run without the change finds that time. Where it is within the
    first `after_rtts` base RTTs, the case does not apply."""

    phase: str
    visit: Annotated[int, Field(ge=1)] = 1
    when: Literal["entry", "exit"] = "entry"
    rounds: float = 0.0
    after_rtts: float = 0.0


class Change(_Part):
    """The change at the trigger: keys of the first link and of the flow, with `{path.at_ms}`."""

    link: dict[str, Any] = {}
    flow: dict[str, Any] = {}


class Case(_Part):
    """One case."""

    id: str
    title: str
    case: int
    note: str = ""
    measure: str
    needs: str = Field("", description="what is missing to run it")
    paths: list[str] = []
    constants: dict[str, float] = {}
    scenario: dict[str, Any] = {}
    trigger: Trigger | None = None
    change: Change = Change()
    hold: list[Hold] = []

    @property
    def reads_bbr(self) -> bool:
        """Whether it measures BBR's own variables; else the window."""
        return self.measure in MEASURES

    def sweep(
        self, cc: str, paths: Sequence[Mapping[str, Any]], changed: bool, engine: str
    ) -> Sweep:
        """Its runs on these paths (fields of `path_fields`), with what happens or without.

        Raises UserError if they are no scenarios."""
        scenario = {
            "name": f"{self.id} {{path}}",
            "start_spread": "0ms",
            "sample_interval": "{path.sample_ms}ms",
            "flow": [{}],
            **self.scenario,
        }
        flow = {**scenario["flow"][0], "cc": "{cc}"}
        if changed:
            link = {**scenario["link"][0], **self.change.link}
            scenario["link"] = [link, *scenario["link"][1:]]
            flow |= self.change.flow
        scenario["flow"] = [flow, *scenario["flow"][1:]]
        document = {
            "scenario": scenario,
            "axis": {"path": [dict(path) for path in paths], "cc": [cc]},
            "sweep": {"name": self.id, "seeds": 1, "keep": "recordings", "engine": engine},
        }
        return read_sweep(document, self.id)


def cases_of(document: str, folder: Path | None = None) -> list[Case]:
    """All cases of a document (a key of DOCUMENTS), in its order; `folder` holds them, by default
    the shipped one. Raises UserError naming file and key."""
    source_folder = folder or shipped("scorecard") / document
    cases = [_read(path) for path in sorted(source_folder.glob("*.toml"))]
    return sorted(cases, key=lambda case: case.case)


def _read(path: Path) -> Case:
    case = read_model(Case, path)
    if case.measure not in (measures := {**MEASURES, **WINDOW_MEASURES}):
        names = ", ".join(measures)
        raise UserError(f"{path}: measure: {case.measure!r} is unknown; known are {names}")
    for hold in case.hold:
        try:
            measured_conditions.check(hold.check)
        except ExpressionError as error:
            raise UserError(f"{path}: hold: {error}") from None
    return case
