"""Extended fluid model: BBRv3 and BBRv2 against loss-based flows over a drop-tail bottleneck, as
derived in docs/background/models.md. The integration is compiled.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.models import native
from fullpipe.models.domain import FRAME_BYTES, PAYLOAD_BYTES, Caution, Contest

#: Congestion controls that the model knows.
KNOWN = ("bbr2", "bbr3", "cubic", "reno")
#: Steps in a base RTT; the tests compare with half the step.
STEPS_PER_RTT = 20
#: The measurements' horizon: of 1000 s the last 400 count.
DURATION_S = 1000.0
WINDOW_START_S = 600.0
#: A prediction is the mean of this many runs: probe intervals and losing flows are random.
SEEDS = (1, 2, 3)
#: Linux's BBR sends two segments at once from this pacing rate on (payload bits).
TWO_BURST_BPS = 1.2e6
FIRST_PROBE_RTT_S = 5.0
#: Flow-steps beyond which a run would take minutes.
MAX_FLOW_STEPS = 2e9


@dataclass(frozen=True)
class ExtendedRun:
    """One run; one entry a flow in `ccs`, `rtts_s` and `starts_s`."""

    rate_bps: float
    buffer_bytes: float
    ccs: tuple[str, ...]
    rtts_s: tuple[float, ...]
    starts_s: tuple[float, ...]
    duration_s: float = DURATION_S
    window_start_s: float = WINDOW_START_S
    steps_per_rtt: int = STEPS_PER_RTT
    seed: int = 1
    sample_interval_ms: float | None = None

    @property
    def capacity_seg_per_ms(self) -> float:
        """Capacity in full-sized frames."""
        return self.rate_bps / (FRAME_BYTES * 8 * 1000)

    @property
    def flow_steps(self) -> float:
        """Cost of the run."""
        return self.duration_s / min(self.rtts_s) * self.steps_per_rtt * len(self.ccs)

    def spec(self) -> native.Spec:
        """The run as the compiled core reads it. Raises UserError if it would take too long."""
        for cc in self.ccs:
            if cc not in KNOWN:
                raise UserError(
                    f"cc: the extended fluid model does not know {cc!r}; it knows "
                    f"{', '.join(KNOWN)}"
                )
        if self.flow_steps > MAX_FLOW_STEPS:
            raise UserError(
                f"rtt: {min(self.rtts_s) * 1000:g} ms is too short for {self.duration_s:g} s and "
                f"{len(self.ccs)} flows: the fluid model would take {self.flow_steps:.1e} steps; "
                "--model steady has no such limit"
            )
        return {
            "capacity_seg_per_ms": self.capacity_seg_per_ms,
            "buffer_seg": self.buffer_bytes / FRAME_BYTES,
            "two_burst_seg_per_ms": TWO_BURST_BPS / (PAYLOAD_BYTES * 8 * 1000),
            "flows": [
                {"cc": cc, "base_rtt_ms": rtt * 1000, "start_ms": start * 1000}
                for cc, rtt, start in zip(self.ccs, self.rtts_s, self.starts_s, strict=True)
            ],
            "duration_ms": self.duration_s * 1000,
            "window_start_ms": self.window_start_s * 1000,
            "step_ms": min(self.rtts_s) * 1000 / self.steps_per_rtt,
            "seed": self.seed,
            "sample_interval_ms": self.sample_interval_ms,
        }

    def cautions(self) -> tuple[Caution, ...]:
        """Assumptions of the model that this run violates."""
        cautions = []
        if any(cc.startswith("bbr") for cc in self.ccs) and self.duration_s <= FIRST_PROBE_RTT_S:
            cautions.append(
                Caution(
                    "horizon_includes_probe_rtt",
                    f"{self.duration_s:g} s are too short for ProbeRTT, "
                    f"the first of which is at {FIRST_PROBE_RTT_S:g} s",
                )
            )
        if self.buffer_bytes < 10 * FRAME_BYTES:
            cautions.append(
                Caution(
                    "volumes_are_fluid",
                    f"the buffer holds {self.buffer_bytes / FRAME_BYTES:.1f} "
                    "segments; bursts of whole segments, which the model does not have, matter "
                    "below about ten",
                )
            )
        return tuple(cautions)


@dataclass(frozen=True)
class ExtendedResult:
    """Means over the runs of all seeds; one entry a flow. Shares are of capacity: `goodput_share`
    counts payload, `wire_share` whole frames. `spread` is the standard deviation over the seeds
    of the share of all BBR flows (None for one seed)."""

    run: ExtendedRun
    seeds: tuple[int, ...]
    goodput_share: tuple[float, ...]
    wire_share: tuple[float, ...]
    loss: tuple[float, ...]
    queue_segments: float
    utilisation: float
    jain_index: float
    spread: float | None
    trace: dict[str, Any] | None = field(repr=False)

    def share_of(self, cc: str) -> float:
        """Goodput share of all flows of a congestion control."""
        pairs = zip(self.goodput_share, self.run.ccs, strict=True)
        return sum(share for share, name in pairs if name == cc)


def contest_run(contest: Contest) -> ExtendedRun:
    """The contest as a run over the measurements' horizon."""
    count = contest.flows + contest.against_flows
    return ExtendedRun(
        rate_bps=contest.rate_bps,
        buffer_bytes=contest.buffer_bdp * contest.bdp_bytes,
        ccs=(contest.cc,) * contest.flows + (contest.against,) * contest.against_flows,
        rtts_s=(contest.rtt_s,) * count,
        starts_s=(0.0,) * count,
    )


def run_extended(
    runs: Sequence[ExtendedRun],
    seeds: Sequence[int] = SEEDS,
    threads: int | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> list[ExtendedResult]:
    """Integrates all runs with all seeds, in parallel.

    Raises UserError for a run out of range."""
    specs = [replace(run, seed=seed).spec() for run in runs for seed in seeds]
    outcomes = native.run_many("fluid_extended", specs, threads, on_progress)
    each = len(seeds)
    return [
        _result(run, tuple(seeds), outcomes[index * each : (index + 1) * each])
        for index, run in enumerate(runs)
    ]


def _result(
    run: ExtendedRun, seeds: tuple[int, ...], outcomes: list[native.Outcome]
) -> ExtendedResult:
    def mean(key: str) -> float:
        return statistics.fmean(outcome[key] for outcome in outcomes)

    def means(key: str) -> list[float]:
        return [
            statistics.fmean(values)
            for values in zip(*(outcome[key] for outcome in outcomes), strict=True)
        ]

    wire = [rate / run.capacity_seg_per_ms for rate in means("delivery_rate_seg_per_ms")]
    totals = [
        sum(
            rate / run.capacity_seg_per_ms
            for rate, cc in zip(outcome["delivery_rate_seg_per_ms"], run.ccs, strict=True)
            if cc.startswith("bbr")
        )
        for outcome in outcomes
    ]
    return ExtendedResult(
        run=run,
        seeds=seeds,
        goodput_share=tuple(share * PAYLOAD_BYTES / FRAME_BYTES for share in wire),
        wire_share=tuple(wire),
        loss=tuple(means("loss")),
        queue_segments=mean("queue_seg"),
        utilisation=mean("utilisation"),
        jain_index=mean("jain_index"),
        spread=statistics.stdev(totals) if len(totals) > 1 else None,
        trace=outcomes[0]["trace"],
    )
