"""Queue disciplines resolved for engines: what a scenario leaves out is what Linux and tc take.

The result is `Qdisc` of crates/fullpipe-plan/src/qdisc.rs. This module must never know an
engine.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fullpipe.base import units

if TYPE_CHECKING:
    from fullpipe.scenario.model import QdiscOptions

#: Ethernet header, which htb and bfifo count with every packet.
LINK_HEADER_BYTES = 14
#: Linux's default limits in packets (sch_fq.c, sch_codel.c, sch_fq_codel.c, include/net/pie.h,
#: sch_fq_pie.c, sch_sfq.c, sch_dualpi2.c).
_DEFAULT_PACKETS = {
    "fq": 10000, "codel": 1000, "fq_codel": 10240, "pie": 1000, "fq_pie": 10240, "sfq": 127,
    "dualpi2": 10000,
}  # fmt: skip
_MS = 10**6
#: Acceptable delay (RFC 8289, RFC 8033, RFC 9332); CAKE's is a twentieth of its RTT (tc-cake(8)).
_TARGET_NS = {
    "codel": 5 * _MS, "fq_codel": 5 * _MS, "pie": 15 * _MS, "fq_pie": 15 * _MS, "dualpi2": 15 * _MS,
}  # fmt: skip
#: Queues that flows are hashed to; packets that one may hold.
_FLOWS = {"fq_codel": 1024, "fq_pie": 1024, "sfq": 128}
_FLOW_LIMIT = {"fq": 100, "sfq": 127}
#: Between updates of the probability, and its gains in Hz.
_UPDATE_NS = {"pie": 15 * _MS, "fq_pie": 15 * _MS, "dualpi2": 16 * _MS}
_GAINS_HZ = {"pie": (0.125, 1.25), "fq_pie": (0.125, 1.25), "dualpi2": (41 / 256, 819 / 256)}
#: In what part of a Hz the kernel counts a gain.
_GAIN_UNITS = {"pie": 16, "fq_pie": 16, "dualpi2": 256}
#: A kernel's timer tick, in which tbf must be able to send (tc-tbf(8)).
_TICKS_PER_S = 250


def wire_bytes(mtu_bytes: int) -> int:
    """A full packet on the wire, as htb and bfifo count it."""
    return mtu_bytes + LINK_HEADER_BYTES


def resolve_qdisc(
    name: str,
    options: QdiscOptions,
    buffer: units.Buffer | None,
    rate_bps: int,
    rtt_ns: int,
    mtu_bytes: int,
    ecn: bool,
) -> dict[str, Any]:
    """The queue of a way with this rate; a buffer in BDP is one of `rtt_ns`."""
    wire = wire_bytes(mtu_bytes)
    limit_bytes, limit_packets = _limits(name, buffer, rate_bps, rtt_ns, wire)
    aqm: dict[str, Any] = {"kind": name}
    if name == "red":
        limit = limit_bytes or (limit_packets or 1) * wire
        red = _red(options, limit, wire)
        limit_bytes, limit_packets = max(limit, red["max_bytes"]), None
        aqm |= {**red, "ecn": ecn}
    elif name == "cake":
        aqm |= _cake(options)
    elif name == "tbf":
        aqm["burst_bytes"] = options.burst or max(2 * wire, rate_bps // 8 // _TICKS_PER_S)
    elif name == "prio":
        aqm |= {
            "bands": options.bands,
            "default_band": options.default_band,
            "filters": sorted(
                (units.parse_dscp(dscp), band) for dscp, band in options.dscp.items()
            ),
        }
    else:
        aqm |= _fair_or_aqm(name, options, wire, ecn)
    return {"limit_bytes": limit_bytes, "limit_packets": limit_packets, "aqm": aqm}


def _limits(
    name: str, buffer: units.Buffer | None, rate_bps: int, rtt_ns: int, wire: int
) -> tuple[int | None, int | None]:
    if buffer is None and name == "cake":
        return None, None
    if buffer is None and name in _DEFAULT_PACKETS:
        return None, _DEFAULT_PACKETS[name]
    if buffer is not None and buffer.kind == "packets":
        packets = int(buffer.value)
        return (packets * wire, None) if name in ("cake", "tbf") else (None, packets)
    limit = (buffer or units.Buffer("bdp", 1.0)).limit_bytes(rate_bps, rtt_ns)
    assert limit is not None
    return (None, math.ceil(limit / wire)) if name in _DEFAULT_PACKETS else (limit, None)


def _fair_or_aqm(name: str, options: QdiscOptions, wire: int, ecn: bool) -> dict[str, Any]:
    """Those that share parameters: fq, codel, fq_codel, pie, fq_pie, sfq, dualpi2."""
    aqm: dict[str, Any] = {}
    if name in _TARGET_NS:
        aqm["target_ns"] = options.target or _TARGET_NS[name]
    if name in ("codel", "fq_codel"):
        aqm["interval_ns"] = options.interval
    if name in _UPDATE_NS:
        aqm["update_ns"] = options.update or _UPDATE_NS[name]
        unit = _GAIN_UNITS[name]
        for key, given, usual in zip(
            ("alpha", "beta"), (options.alpha, options.beta), _GAINS_HZ[name], strict=True
        ):
            aqm[key] = round((usual if given is None else given) * unit)
    if name in ("codel", "fq_codel", "pie", "fq_pie"):
        aqm["ecn"] = ecn
    if name in ("fq", "fq_codel", "fq_pie", "sfq"):
        aqm["quantum_bytes"] = options.quantum or (2 * wire if name == "fq" else wire)
    if name in _FLOWS:
        aqm["flows"] = options.flows or _FLOWS[name]
    if name == "fq":
        aqm["flow_limit_packets"] = options.flow_limit or _FLOW_LIMIT[name]
    elif name == "fq_codel":
        aqm["memory_limit_bytes"] = options.memory_limit
    elif name == "sfq":
        aqm["depth_packets"] = options.flow_limit or _FLOW_LIMIT[name]
        aqm |= {"buckets": options.buckets, "head_drop": options.head_drop}
    elif name in ("pie", "fq_pie"):
        aqm |= {"byte_mode": options.byte_mode, "rate_estimator": options.departure_rate}
        if name == "fq_pie":
            aqm["ecn_percent"] = round(options.ecn_up_to * 100)
    elif name == "dualpi2":
        aqm |= {
            "step_ns": options.step,
            "coupling": options.coupling,
            "classic_percent": round(options.classic_share * 100),
            "drop_overload": options.drop_on_overload,
        }
    return aqm


def _red(options: QdiscOptions, limit: int, wire: int) -> dict[str, Any]:
    # tc-red(8): min about max/3, burst (2 min + max) / (3 avpkt).
    largest = options.max or max(limit // 2, 3 * wire)
    least = options.min or max(largest // 3, wire)
    return {
        "min_bytes": least,
        "max_bytes": largest,
        "max_probability_ppm": round(options.max_probability * 1e6),
        "avpkt_bytes": 1000,
        "burst_packets": max(1, (2 * least + largest) // 3000),
    }


def _cake(options: QdiscOptions) -> dict[str, Any]:
    return {
        "rtt_ns": options.rtt,
        "target_ns": options.target or max(options.rtt // 20, 1000),
        "shapes": options.bandwidth == "path",
        "tins": options.tins,
        "isolation": options.isolation,
        "ack_filter": options.ack_filter,
        "overhead_bytes": options.overhead,
        "mpu_bytes": options.mpu,
        "framing": options.framing,
        "ingress": options.ingress,
        "autorate_ingress": options.autorate_ingress,
        "wash": options.wash,
        "split_gso": options.split_gso,
    }
