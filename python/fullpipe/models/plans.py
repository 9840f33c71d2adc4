"""Converts a resolved scenario (plan) to a run of the fluid models. They ignore some features with
a caution, and refuse those outside their domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.models.domain import FRAME_BYTES, LOSS_BASED, MTU_BYTES, Caution
from fullpipe.models.extended import KNOWN as EXTENDED_KNOWN
from fullpipe.models.extended import ExtendedRun
from fullpipe.models.fluid import PROGRAM_NAMES, FluidRun
from fullpipe.models.share import VERSIONS, split_run

#: A plan, made here or recorded.
Plan = Mapping[str, Any]

NS_PER_S = 1e9
#: A plan's senders beside its flows -> their section in a scenario.
_OTHER_SENDERS = {"traffic": "traffic", "pages": "page", "datagrams": "udp"}
#: Keys of a wire that the models accept; `loss` has an error message of its own.
_OF_A_STEADY_WIRE = {"rate_bps", "delay_ns", "qdisc", "loss"}


@dataclass(frozen=True)
class Reading:
    """What a plan means to the fluid models. `ccs` are the models' names, one a flow of the plan,
    in its order; `names` are the plan's."""

    rate_bps: float
    buffer_bytes: float
    aqm: str
    ccs: tuple[str, ...]
    names: tuple[str, ...]
    rtts_s: tuple[float, ...]
    starts_s: tuple[float, ...]
    duration_s: float
    seed: int
    cautions: tuple[Caution, ...]


def read_plan(plan: Plan) -> Reading:
    """The plan as the fluid models see it.

    Raises UserError, naming the key, where no model can represent it."""
    for key, sender in _OTHER_SENDERS.items():
        if plan.get(key):
            raise UserError(f"{sender}: the models know no senders but flows")
    _check_one_steady_wire(plan["links"])
    path = plan["path"]
    kind = path["qdisc"]["aqm"]["kind"]
    if kind not in ("fifo", "red"):
        raise UserError(f"path.qdisc: the models know fifo and red, not {kind}")
    for key in ("loss", "reverse_loss", "jitter"):
        if path[key]:
            raise UserError(f"path.{key}: the models know no random {key.replace('_', ' ')}")
    flows = plan["flows"]
    for flow in flows:
        if flow["direction"] != "up":
            raise UserError(f"flow {flow['name']}: the models know one direction, up")
        if flow["jitter"] and flow["jitter"]["max_ns"]:
            raise UserError(f"flow {flow['name']}: the models know no jitter")
    return Reading(
        rate_bps=path["rate_bps"],
        buffer_bytes=_buffer_bytes(path),
        aqm="red" if kind == "red" else "drop_tail",
        ccs=tuple(_model_name(flow["cc"]["name"]) for flow in flows),
        names=tuple(flow["cc"]["name"] for flow in flows),
        rtts_s=tuple(_rtt_s(path, flow) for flow in flows),
        starts_s=tuple(flow["start_ns"] / NS_PER_S for flow in flows),
        duration_s=plan["duration_ns"] / NS_PER_S,
        seed=plan["seed"],
        cautions=tuple(_cautions(plan, kind)),
    )


def _check_one_steady_wire(links: list[dict[str, Any]]) -> None:
    if len(links) > 1:
        raise UserError(f"link: the models know one bottleneck, not a row of {len(links)} links")
    medium = links[0]["medium"]
    if medium["kind"] != "wire":
        raise UserError(
            f"link.{links[0]['name']}.kind: the models know wires, not {medium['kind']}"
        )
    for way in ("forward", "reverse"):
        for key in sorted(medium[way].keys() - _OF_A_STEADY_WIRE):
            if medium[way][key]:
                raise UserError(
                    f"link.{links[0]['name']}: the models know no {key.replace('_', ' ')}"
                )


def _model_name(cc: str) -> str:
    name = cc.removeprefix("kernel:") if cc.removeprefix("kernel:") in LOSS_BASED else cc
    version = VERSIONS.get(name) or (name if name in LOSS_BASED else None)
    if version is None:
        names = ", ".join([*VERSIONS, *LOSS_BASED])
        raise UserError(f"flow.cc: no fluid model knows {cc!r}; known are {names}")
    return version


def _buffer_bytes(path: dict[str, Any]) -> float:
    qdisc = path["qdisc"]
    limits = []
    if qdisc["limit_bytes"] is not None:
        limits.append(float(qdisc["limit_bytes"]))
    if qdisc["limit_packets"] is not None:
        limits.append(float(qdisc["limit_packets"]) * FRAME_BYTES)
    if not limits:
        raise UserError("path.buffer: the models need a buffer that ends")
    return min(limits)


def _rtt_s(path: dict[str, Any], flow: dict[str, Any]) -> float:
    forward, reverse = flow["forward_delay_ns"], flow["reverse_delay_ns"]
    forward = path["forward_delay_ns"] if forward is None else forward
    reverse = path["reverse_delay_ns"] if reverse is None else reverse
    return float(forward + reverse) / NS_PER_S


def _cautions(plan: Plan, kind: str) -> list[Caution]:
    path, flows, cautions = plan["path"], plan["flows"], []
    greedy = ("stop_ns", "amount_bytes", "app_rate_bps", "receive_window_bytes")
    if any(flow.get(key) is not None for flow in flows for key in (*greedy, "pattern")):
        cautions.append(
            Caution(
                "greedy_flows",
                "the models let every flow send as much as its congestion control "
                "allows; amounts, application rates, ends and receive windows are ignored",
            )
        )
    if kind == "red":
        cautions.append(
            Caution(
                "idealised_red",
                "the model drops with probability queue/buffer, at once; the qdisc's "
                "thresholds and averaging are ignored",
            )
        )
    if path["reverse_rate_bps"] is not None:
        cautions.append(Caution("one_bottleneck", "the limit of the way back is ignored"))
    if path["mtu_bytes"] != MTU_BYTES:
        cautions.append(
            Caution(
                "full_sized_frames",
                f"the models count frames of {FRAME_BYTES} bytes; the MTU is ignored",
            )
        )
    if any(flow["ecn"] for flow in flows):
        cautions.append(Caution("no_ecn", "the models drop where the qdisc would mark"))
    return cautions


def fluid_run(reading: Reading, window_start_s: float) -> tuple[FluidRun, list[int], list[Caution]]:
    """The run of the published model; for each of its flows the plan's index (the model sorts
    flows by the published program's names); what it ignores.

    A quarter of the least base RTT is the one-way latency of the bottleneck link, as the IFIP 2025
    study splits it. Raises UserError for a control that the model does not know."""
    for cc, name in zip(reading.ccs, reading.names, strict=True):
        if cc not in PROGRAM_NAMES:
            raise UserError(f"flow.cc: the published fluid model does not know {name!r}")
    order = sorted(range(len(reading.ccs)), key=lambda i: PROGRAM_NAMES[reading.ccs[i]])
    link_delay_ms = min(reading.rtts_s) * 1000 / 4
    delays = [reading.rtts_s[i] * 1000 / 2 - link_delay_ms for i in order]
    run = split_run(
        reading.rate_bps,
        reading.buffer_bytes,
        [reading.ccs[i] for i in order],
        link_delay_ms,
        delays,
        duration_ms=reading.duration_s * 1000,
        window_start_ms=window_start_s * 1000,
        seed=reading.seed,
        aqm=reading.aqm,
    )
    cautions = list(reading.cautions)
    if any(reading.starts_s):
        cautions.append(
            Caution("common_start", "all flows start at once with equal shares; starts are ignored")
        )
    return run, order, [*cautions, *run.cautions()]


def extended_run(reading: Reading, window_start_s: float) -> tuple[ExtendedRun, list[Caution]]:
    """The run of the extended model and what it ignores.

    Raises UserError for a control or a qdisc that the model does not know."""
    for cc, name in zip(reading.ccs, reading.names, strict=True):
        if cc not in EXTENDED_KNOWN:
            raise UserError(f"flow.cc: the extended fluid model does not know {name!r}")
    if reading.aqm != "drop_tail":
        raise UserError("path.qdisc: the extended fluid model knows fifo only")
    run = ExtendedRun(
        rate_bps=reading.rate_bps,
        buffer_bytes=reading.buffer_bytes,
        ccs=reading.ccs,
        rtts_s=reading.rtts_s,
        starts_s=reading.starts_s,
        duration_s=reading.duration_s,
        window_start_s=window_start_s,
        seed=reading.seed,
    )
    return run, [*reading.cautions, *run.cautions()]
