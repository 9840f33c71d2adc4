"""The bench: a short scenario from a few sliders, run in the simulator and drawn over time.

Input from the page is checked here; it can name no file and no program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from fullpipe.base.errors import UserError
from fullpipe.base.refusals import explain
from fullpipe.base.scratch import scratch
from fullpipe.congestion.registry import cc_sets
from fullpipe.congestion.trust import from_outside
from fullpipe.engines.run import runs_of
from fullpipe.engines.runner import execute
from fullpipe.metrics import summarise
from fullpipe.plan.plan import Plan
from fullpipe.plots.plotly_renderer import figure_of
from fullpipe.report.runs import read_run
from fullpipe.report.timeline import time_plots
from fullpipe.scenario.model import make_scenario

MAX_FLOWS = 8
QDISCS = ("fifo", "codel", "fq_codel", "fq", "red", "pie", "cake")
#: Packets of a run at most: about a second of one core.
_MAX_PACKETS = 3_000_000
_SHOWN = ("throughput", "queue", "cwnd", "rtt")


class Bench(BaseModel):
    """The values of the sliders."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rate_mbps: float = Field(50, ge=0.1, le=1000)
    rtt_ms: float = Field(40, ge=0.1, le=1000)
    buffer_bdp: float = Field(1, ge=0.01, le=100)
    loss_percent: float = Field(0, ge=0, le=20)
    qdisc: str = "fifo"
    flows: list[str] = Field(["bbr3", "cubic"], min_length=1, max_length=MAX_FLOWS)
    duration_s: float = Field(30, ge=1, le=120)

    @field_validator("qdisc")
    @classmethod
    def _check_qdisc(cls, value: str) -> str:
        if value not in QDISCS:
            raise ValueError(f"must be one of {', '.join(QDISCS)}")
        return value

    @field_validator("flows")
    @classmethod
    def _built_in(cls, value: list[str]) -> list[str]:
        for name in value:
            if name not in cc_sets():
                raise ValueError(f"{name[:60]!r} is not one of {', '.join(cc_sets())}")
        return value

    @property
    def document(self) -> dict[str, Any]:
        """The scenario of these values."""
        path: dict[str, Any] = {
            "rate": f"{self.rate_mbps * 1000:.0f}kbit",
            "rtt": f"{self.rtt_ms * 1000:.0f}us",
            "qdisc": self.qdisc,
        }
        if self.qdisc in ("fifo", "red"):
            path["buffer"] = f"{self.buffer_bdp:.4g}bdp"
        if self.loss_percent:
            path["loss"] = f"{self.loss_percent:.4g}%"
        return {
            "name": "bench",
            "duration": f"{self.duration_s:.4g}s",
            "sample_interval": "100ms",
            "path": path,
            "flow": [{"cc": name} for name in self.flows],
            "probe": [{"kind": "ping"}],
        }


@dataclass(frozen=True)
class Drawn:
    """A run as the page shows it. `sliders`: their values for this scenario; empty if it has what
    sliders cannot express."""

    toml: str
    sliders: dict[str, Any]
    figures: list[dict[str, Any]]
    summary: dict[str, Any]


def read_bench(document: Any) -> Bench:
    """The bench that a page sent. Raises UserError naming key and what is allowed."""
    try:
        bench = Bench.model_validate(document)
    except ValidationError as error:
        raise UserError(explain(error, Bench)) from None
    packets = bench.rate_mbps * 1e6 / 12000 * bench.duration_s
    if packets > _MAX_PACKETS:
        most = math.floor(_MAX_PACKETS * 12000 / bench.rate_mbps / 1e6)
        raise UserError(f"duration_s: at this rate at most {most} s; `fullpipe run` has no limit")
    return bench


def draw(document: dict[str, Any], trusted: Sequence[Path] = ()) -> Drawn:
    """Runs a scenario in the simulator and draws it. Raises UserError if it is none, or names code
    in a file that is not `trusted`."""
    with from_outside(trusted), scratch("fullpipe-bench-") as folder:
        scenario = make_scenario(document, "bench")
        toml = tomli_w.dumps(document)
        planned = runs_of(scenario, toml, [scenario.seed])
        outcome = execute(planned, [folder / "run"])
        run = read_run(outcome.recordings[0])
        figures = [
            {"key": plot.key, "title": plot.title, **figure_of(plot)}
            for plot in time_plots(run)
            if plot.key in _SHOWN
        ]
        summary = summarise(outcome.recordings[0])
        sliders = sliders_of(planned[0].plan)
    return Drawn(toml, sliders, figures, summary)


def sliders_of(plan: Plan) -> dict[str, Any]:
    """The values of the sliders that are nearest to a plan; empty if it has more than one link,
    more flows, or congestion controls and queues that the bench does not offer."""
    path, ccs = plan["path"], [flow["cc"]["name"] for flow in plan["flows"]]
    if len(plan["links"]) != 1 or not 1 <= len(ccs) <= MAX_FLOWS or not set(ccs) <= set(cc_sets()):
        return {}
    rtt_ns = path["forward_delay_ns"] + path["reverse_delay_ns"]
    qdisc, limit = path["qdisc"]["aqm"]["kind"], path["qdisc"]["limit_bytes"]
    if qdisc not in QDISCS or not rtt_ns or not path["rate_bps"]:
        return {}
    loss = path["loss"]
    values = {
        "rate_mbps": path["rate_bps"] / 1e6,
        "rtt_ms": rtt_ns / 1e6,
        "qdisc": qdisc,
        "flows": ccs,
        "loss_percent": loss["probability_ppm"] / 1e4 if loss else 0.0,
    }
    if limit is not None:
        values["buffer_bdp"] = limit * 8e9 / (path["rate_bps"] * rtt_ns)
    return values
