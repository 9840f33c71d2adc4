"""Fluid model of Reno, CUBIC, BBRv1 and BBRv2: Scherrer, Legner, Perrig, Schmid, "Model-Based
Insights on the Performance, Fairness, and Stability of BBR", IMC 2022, as the authors' program
computes it (simonschdev/imc22-bbr-fluid-model, 9ad01fa). The integration is compiled.

Two buffer units exist and are never mixed here: `link` BDP is capacity x one-way latency of the
bottleneck link, as in that program; `rtt` BDP is capacity x base RTT, the common definition.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.models import native
from fullpipe.models.domain import FRAME_BYTES, MAX_FLOWS, MAX_RATE_BPS, Caution, within

#: Our name -> the program's, whose alphabetical order decides the order of flows.
PROGRAM_NAMES = {"bbr1": "BBR", "bbr2": "BBR2", "cubic": "CUBIC", "reno": "RENO"}
#: The IFIP 2025 study's factor from segments/ms to what it takes for Mbit/s (a slip: it is 12.112).
IFIP_RATE_FACTOR = 10.0

STEP_MS = 0.01
#: First ProbeRTT of each version, ms.
FIRST_PROBE_RTT_MS = {"bbr1": 10_000.0, "bbr2": 5_000.0}
#: Up to here the model was validated (link BDP; IMC 2022 and the IFIP 2025 study).
VALIDATED_LINK_BDP = 7.0


@dataclass(frozen=True)
class FluidRun:
    """One run. `ccs` and `access_delays_ms` have one entry a flow; the order matters, because
    BBR's probing phases go with the index."""

    rate_bps: float
    buffer_segments: float
    buffer_link_bdp: float
    link_delay_ms: float
    ccs: tuple[str, ...]
    access_delays_ms: tuple[float, ...]
    period_ages_s: tuple[float, ...]
    aqm: str = "drop_tail"
    duration_ms: float = 9_000.0
    window_start_ms: float = 4_000.0
    window_cut_ms: float = 0.0
    step_ms: float = STEP_MS
    sample_interval_ms: float | None = None

    @property
    def capacity_seg_per_ms(self) -> float:
        """Capacity in full-sized frames."""
        return self.rate_bps / (FRAME_BYTES * 8 * 1000)

    def spec(self) -> native.Spec:
        """The run as the compiled core reads it."""
        return {
            "capacity_seg_per_ms": self.capacity_seg_per_ms,
            "buffer_seg": self.buffer_segments,
            "buffer_link_bdp": self.buffer_link_bdp,
            "link_delay_ms": self.link_delay_ms,
            "aqm": self.aqm,
            "flows": [
                {"cc": cc, "access_delay_ms": delay, "period_age_s": age}
                for cc, delay, age in zip(
                    self.ccs, self.access_delays_ms, self.period_ages_s, strict=True
                )
            ],
            "duration_ms": self.duration_ms,
            "window_start_ms": self.window_start_ms,
            "window_cut_ms": self.window_cut_ms,
            "step_ms": self.step_ms,
            "sample_interval_ms": self.sample_interval_ms,
        }

    def cautions(self) -> tuple[Caution, ...]:
        """Assumptions of the model that this run violates."""
        cautions = []
        for cc, first_ms in FIRST_PROBE_RTT_MS.items():
            if cc in self.ccs and self.duration_ms <= first_ms:
                cautions.append(
                    Caution(
                        "horizon_includes_probe_rtt",
                        f"{self.duration_ms / 1000:g} s are too short "
                        f"for ProbeRTT of {cc}, the first of which is at {first_ms / 1000:g} s",
                    )
                )
        if self.buffer_link_bdp > VALIDATED_LINK_BDP:
            cautions.append(
                Caution(
                    "moderate_buffer",
                    f"{self.buffer_link_bdp:.3g} link BDP (capacity x one-way link "
                    f"latency); the model was validated up to {VALIDATED_LINK_BDP:g} and found "
                    "wanting beyond",
                )
            )
        return tuple(cautions)


@dataclass(frozen=True)
class FluidResult:
    """What a run predicts; one entry a flow, in the order of the run.

    `sending_share` and `delivery_share` are of capacity: what is sent, and what of it the link
    serves. `loss_smooth` is the program's metric, `loss_discrete` what acts on the queue."""

    run: FluidRun
    sending_share: tuple[float, ...]
    delivery_share: tuple[float, ...]
    jain_index: float
    loss_smooth: float
    loss_discrete: float
    queue_segments: float
    utilisation: float
    jitter_ms: float
    trace: dict[str, Any] | None = field(repr=False)

    @property
    def sending_rate_seg_per_ms(self) -> tuple[float, ...]:
        """The program's `x`, mean over the window."""
        return tuple(share * self.run.capacity_seg_per_ms for share in self.sending_share)

    @property
    def occupancy(self) -> float:
        """Mean queue over buffer."""
        return self.queue_segments / self.run.buffer_segments

    def share_of(self, cc: str, delivered: bool = True) -> float:
        """Share of capacity of all flows of a congestion control."""
        shares = self.delivery_share if delivered else self.sending_share
        return sum(share for share, name in zip(shares, self.run.ccs, strict=True) if name == cc)

    def ifip_mbps(self) -> tuple[float, ...]:
        """Rates as the IFIP 2025 study converts them, its slip of units included."""
        return tuple(rate * IFIP_RATE_FACTOR for rate in self.sending_rate_seg_per_ms)


def link_bdp_segments(rate_bps: float, link_delay_ms: float) -> int:
    """Capacity x one-way latency of the bottleneck link in segments, rounded up: the program's
    buffer unit."""
    return math.ceil((rate_bps / 1e6 / 8 * 1e6 * link_delay_ms / 1000) / FRAME_BYTES)


def published_run(
    senders: int,
    capacity_mbps: float,
    buffer_link_bdp: float,
    ccs: Sequence[str],
    link_delay_ms: float,
    access_delay_range_ms: tuple[float, float],
    aqm: str = "drop_tail",
    duration_s: float = 9.0,
    truncate_front_s: float = 4.0,
    truncate_back_s: float = 0.0,
    step_ms: float = STEP_MS,
) -> FluidRun:
    """A run as the published program sets it up from its configuration: flows sorted by the
    program's names, equally many of each, access delays drawn from Python's generator seeded with
    1 and rounded to 0.1 ms, buffer in link BDP cut to whole segments.

    Raises UserError for a control that the model does not know or numbers out of range."""
    for cc in ccs:
        if cc not in PROGRAM_NAMES:
            names = ", ".join(PROGRAM_NAMES)
            raise UserError(f"cc: the fluid model does not know {cc!r}; it knows {names}")
    if not ccs or not 1 <= senders <= MAX_FLOWS or senders % len(ccs):
        raise UserError(
            f"senders: {senders} is not a multiple of the {len(ccs)} congestion controls, "
            f"1 to {MAX_FLOWS}"
        )
    within("capacity", capacity_mbps * 1e6, MAX_RATE_BPS, "bit/s")
    within("link_delay_ms", link_delay_ms, 10_000, "ms")
    within("buffer_link_bdp", buffer_link_bdp, 1e6, "link BDP")
    generator = random.Random(1)
    order = sorted(ccs, key=lambda cc: PROGRAM_NAMES[cc])
    flows = [cc for cc in order for _ in range(senders // len(ccs))]
    low, high = access_delay_range_ms
    delays = [float(f"{generator.uniform(low, high):.1f}") for _ in flows]
    any_v2 = "bbr2" in flows
    ages = [generator.random() if any_v2 else 0.0 for _ in flows]
    segments = int(buffer_link_bdp * link_bdp_segments(capacity_mbps * 1e6, link_delay_ms))
    return FluidRun(
        rate_bps=capacity_mbps * 1e6,
        buffer_segments=segments,
        buffer_link_bdp=buffer_link_bdp,
        link_delay_ms=link_delay_ms,
        ccs=tuple(flows),
        access_delays_ms=tuple(delays),
        period_ages_s=tuple(ages),
        aqm=aqm,
        duration_ms=duration_s * 1000,
        window_start_ms=truncate_front_s * 1000,
        window_cut_ms=truncate_back_s * 1000,
        step_ms=step_ms,
    )


def run_fluid(
    runs: Sequence[FluidRun],
    threads: int | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> list[FluidResult]:
    """Integrates all runs, in parallel.

    Raises UserError for a run out of range."""
    outcomes = native.run_many("fluid", [run.spec() for run in runs], threads, on_progress)
    return [_result(run, outcome) for run, outcome in zip(runs, outcomes, strict=True)]


def _result(run: FluidRun, outcome: native.Outcome) -> FluidResult:
    capacity = run.capacity_seg_per_ms
    return FluidResult(
        run=run,
        sending_share=tuple(x / capacity for x in outcome["sending_rate_seg_per_ms"]),
        delivery_share=tuple(x / capacity for x in outcome["delivery_rate_seg_per_ms"]),
        jain_index=outcome["jain_index"],
        loss_smooth=outcome["loss_smooth"],
        loss_discrete=outcome["loss_discrete"],
        queue_segments=outcome["queue_seg"],
        utilisation=outcome["utilisation"],
        jitter_ms=outcome["jitter_ms"],
        trace=outcome["trace"],
    )
