"""Predicts the share of capacity of BBR flows against loss-based ones, by several models."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.models.domain import FRAME_BYTES, Caution, Contest
from fullpipe.models.extended import contest_run, run_extended
from fullpipe.models.fluid import FluidRun, run_fluid
from fullpipe.models.steady import bbr1_share
from fullpipe.models.steady3 import bbr3_share

#: Names of our parameter sets and of kernels' algorithms -> what the models call them.
VERSIONS = {
    "bbr": "bbr1",
    "bbr1": "bbr1",
    "kernel:bbr": "bbr1",
    "bbr2": "bbr2",
    "bbr3": "bbr3",
    "bbr3-linux": "bbr3",
}
#: Model -> versions that it knows; the first that knows a version answers unless told otherwise.
MODELS = {
    "steady": ("bbr1", "bbr3"),
    "extended": ("bbr2", "bbr3"),
    "fluid": ("bbr1", "bbr2"),
}
BEST = {"bbr1": "steady", "bbr2": "extended", "bbr3": "extended"}


@dataclass(frozen=True)
class Share:
    """The BBR aggregate's share of capacity by one model, with the intermediate values that the
    model has."""

    model: str
    share: float
    details: dict[str, Any]
    cautions: tuple[Caution, ...]


def version_of(cc: str) -> str:
    """What the models call a congestion control. Raises UserError for one that none knows."""
    version = VERSIONS.get(cc.lower())
    if version is None:
        names = ", ".join(VERSIONS)
        raise UserError(f"cc: no model knows {cc!r}; known are {names}")
    return version


def predict_share(
    contest: Contest,
    model: str = "best",
    on_progress: Callable[[float], None] | None = None,
) -> Share:
    """The share of capacity of the contest's BBR flows.

    `model`: steady, fluid, extended, or best (the one that fits measurements best). Raises
    UserError if the model does not know the congestion control or the numbers are too large
    for it."""
    version = version_of(contest.cc)
    chosen = BEST[version] if model == "best" else model
    if chosen not in MODELS:
        raise UserError(f"model: {model!r} is unknown; known are best, {', '.join(MODELS)}")
    if version not in MODELS[chosen]:
        others = ", ".join(name for name, versions in MODELS.items() if version in versions)
        raise UserError(f"model: {chosen} does not know {version}; these do: {others}")
    contest = Contest(**{**vars(contest), "cc": version})
    if chosen == "steady":
        return _steady(contest)
    if chosen == "extended":
        return _extended(contest, on_progress)
    return _fluid(contest)


def _steady(contest: Contest) -> Share:
    if contest.cc == "bbr1":
        ware = bbr1_share(contest)
        details: dict[str, Any] = {
            "loss_based_raw": ware.loss_based_raw,
            "loss_based": ware.loss_based,
            "probe_time": ware.probe_time,
        }
        return Share("steady state of BBRv1", ware.share, details, ware.cautions)
    steady = bbr3_share(contest)
    details = {
        "wire_share": steady.wire_share,
        "loss_based": steady.loss_based,
        "by_window": steady.by_window,
        "by_clock": steady.by_clock,
        "period_s": steady.period_s,
    }
    return Share("steady state of BBRv3", steady.share, details, steady.cautions)


def _extended(contest: Contest, on_progress: Callable[[float], None] | None) -> Share:
    run = contest_run(contest)
    result = run_extended([run], on_progress=on_progress)[0]
    details = {
        "wire_share": sum(
            share for share, cc in zip(result.wire_share, run.ccs, strict=True) if cc == contest.cc
        ),
        "spread": result.spread,
        "seeds": list(result.seeds),
        "queue_bytes": result.queue_segments * FRAME_BYTES,
        "utilisation": result.utilisation,
    }
    share = result.share_of(contest.cc)
    return Share("extended fluid model", share, details, run.cautions())


def _fluid(contest: Contest) -> Share:
    run = contest_fluid_run(contest)
    result = run_fluid([run])[0]
    details = {
        "sending_share": result.share_of(contest.cc, delivered=False),
        "loss": result.loss_discrete,
        "queue_bytes": result.queue_segments * FRAME_BYTES,
        "utilisation": result.utilisation,
        "buffer_link_bdp": run.buffer_link_bdp,
    }
    return Share("fluid model", result.share_of(contest.cc), details, run.cautions())


def contest_fluid_run(contest: Contest) -> FluidRun:
    """The contest for the published fluid model: a quarter of the base RTT before the bottleneck
    and a quarter on it, each way, as the IFIP 2025 study splits it; buffer in RTT BDP."""
    quarter_ms = contest.rtt_s * 1000 / 4
    ccs = (contest.cc,) * contest.flows + (contest.against,) * contest.against_flows
    return split_run(
        contest.rate_bps,
        contest.buffer_bdp * contest.bdp_bytes,
        ccs,
        quarter_ms,
        (quarter_ms,) * len(ccs),
        duration_ms=9_000.0,
        window_start_ms=4_000.0,
    )


def split_run(
    rate_bps: float,
    buffer_bytes: float,
    ccs: Sequence[str],
    link_delay_ms: float,
    access_delays_ms: Sequence[float],
    duration_ms: float,
    window_start_ms: float,
    seed: int = 1,
    aqm: str = "drop_tail",
) -> FluidRun:
    """A run of the published fluid model over a path given in physical units."""
    generator = random.Random(seed)
    ages = tuple(generator.random() if "bbr2" in ccs else 0.0 for _ in ccs)
    segments = buffer_bytes / FRAME_BYTES
    per_ms = rate_bps / (FRAME_BYTES * 8 * 1000)
    return FluidRun(
        rate_bps=rate_bps,
        buffer_segments=max(1.0, float(int(segments))),
        buffer_link_bdp=segments / (per_ms * link_delay_ms),
        link_delay_ms=link_delay_ms,
        ccs=tuple(ccs),
        access_delays_ms=tuple(access_delays_ms),
        period_ages_s=ages,
        aqm=aqm,
        duration_ms=duration_ms,
        window_start_ms=window_start_ms,
    )
