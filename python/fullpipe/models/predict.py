"""Predictions of the models for a scenario, which reports and experiments draw with the
measurements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fullpipe.base.errors import UserError
from fullpipe.models.domain import FRAME_BYTES, PAYLOAD_BYTES, Caution, Contest
from fullpipe.models.extended import run_extended
from fullpipe.models.fluid import run_fluid
from fullpipe.models.plans import Plan, Reading, extended_run, fluid_run, read_plan
from fullpipe.models.steady import PROBE_RTT_INTERVAL_S as PROBE_RTT_INTERVAL_V1_S
from fullpipe.models.steady import bbr1_share
from fullpipe.models.steady3 import PROBE_RTT_INTERVAL_S as PROBE_RTT_INTERVAL_V3_S
from fullpipe.models.steady3 import bbr3_share

#: Fluid predictions beyond this many flow-steps would make a report wait.
MAX_FLOW_STEPS = 3e7
#: The published model's own horizon is 9 s; longer runs only cost time.
FLUID_DURATION_S = 9.0
FLUID_WINDOW_START_S = 4.0
#: ProbeRTTs over which a share has come near its long-term mean.
STEADY_PROBE_RTTS = 10


@dataclass(frozen=True)
class Prediction:
    """What one model predicts for a scenario.

    `shares`: congestion control as the scenario names it -> share of capacity of its flows
    together, as goodput. `queue_bytes`, `loss`, `jain_index`: means over the window, None if
    the model does not say."""

    model: str
    shares: dict[str, float]
    queue_bytes: float | None
    loss: float | None
    jain_index: float | None
    cautions: tuple[Caution, ...]


def predict(plan: Plan, warmup_s: float = 0.0) -> list[Prediction]:
    """What each model in whose domain the plan lies predicts; empty outside every domain."""
    try:
        reading = read_plan(plan)
    except UserError:
        return []
    predictions = []
    for model in (_steady, _extended, _fluid):
        try:
            prediction = model(reading, warmup_s)
        except UserError:
            continue
        if prediction is not None:
            predictions.append(prediction)
    return predictions


def _steady(reading: Reading, warmup_s: float) -> Prediction | None:
    groups = sorted(set(reading.ccs))
    loss_based = [cc for cc in groups if not cc.startswith("bbr")]
    bbr = [cc for cc in groups if cc in ("bbr1", "bbr3")]
    equal = len(set(reading.rtts_s)) == 1 and len(set(reading.starts_s)) == 1
    if len(groups) != 2 or len(loss_based) != 1 or not bbr or not equal:
        return None
    if reading.aqm != "drop_tail":
        return None
    rtt_s = reading.rtts_s[0]
    contest = Contest(
        cc=bbr[0],
        flows=reading.ccs.count(bbr[0]),
        against=loss_based[0],
        rate_bps=reading.rate_bps,
        rtt_s=rtt_s,
        buffer_bdp=reading.buffer_bytes * 8 / (reading.rate_bps * rtt_s),
        against_flows=reading.ccs.count(loss_based[0]),
    )
    name = reading.names[reading.ccs.index(bbr[0])]
    if bbr[0] == "bbr1":
        ware = bbr1_share(contest)
        cautions = (*ware.cautions, *_horizon(reading, PROBE_RTT_INTERVAL_V1_S))
        return Prediction("steady state of BBRv1", {name: ware.share}, None, None, None, cautions)
    steady = bbr3_share(contest)
    cautions = (*steady.cautions, *_horizon(reading, PROBE_RTT_INTERVAL_V3_S))
    return Prediction("steady state of BBRv3", {name: steady.share}, None, None, None, cautions)


def _horizon(reading: Reading, interval_s: float) -> tuple[Caution, ...]:
    """What a steady state takes for granted of a scenario's length."""
    if reading.duration_s <= interval_s:
        return (
            Caution(
                "horizon_includes_probe_rtt",
                f"{reading.duration_s:g} s are too short for ProbeRTT, "
                f"the first of which is at {interval_s:g} s",
            ),
        )
    if reading.duration_s < STEADY_PROBE_RTTS * interval_s:
        return (
            Caution(
                "long_horizon",
                "the share is a mean over many ProbeRTTs, one in "
                f"{interval_s:g} s; {reading.duration_s:g} s have fewer than {STEADY_PROBE_RTTS}",
            ),
        )
    return ()


def _extended(reading: Reading, warmup_s: float) -> Prediction | None:
    run, cautions = extended_run(reading, warmup_s)
    if run.flow_steps > MAX_FLOW_STEPS:
        return None
    result = run_extended([run], seeds=(reading.seed,))[0]
    losses = zip(result.loss, result.wire_share, strict=True)
    return Prediction(
        "extended fluid model",
        _by_name(reading.names, lambda i: result.goodput_share[i]),
        result.queue_segments * FRAME_BYTES,
        sum(loss * share for loss, share in losses) / max(sum(result.wire_share), 1e-12),
        result.jain_index,
        tuple(cautions),
    )


def _fluid(reading: Reading, warmup_s: float) -> Prediction | None:
    horizon_s = min(reading.duration_s, FLUID_DURATION_S)
    start_s = min(warmup_s, FLUID_WINDOW_START_S * horizon_s / FLUID_DURATION_S)
    run, order, cautions = fluid_run(replace(reading, duration_s=horizon_s), start_s)
    if run.duration_ms / run.step_ms * len(run.ccs) > MAX_FLOW_STEPS:
        return None
    result = run_fluid([run])[0]
    payload = PAYLOAD_BYTES / FRAME_BYTES
    return Prediction(
        "fluid model",
        _by_name([reading.names[i] for i in order], lambda i: payload * result.delivery_share[i]),
        result.queue_segments * FRAME_BYTES,
        result.loss_discrete,
        result.jain_index,
        tuple(cautions),
    )


def _by_name(names: list[str] | tuple[str, ...], share: Callable[[int], float]) -> dict[str, float]:
    shares: dict[str, float] = {}
    for index, name in enumerate(names):
        shares[name] = shares.get(name, 0.0) + share(index)
    return shares
