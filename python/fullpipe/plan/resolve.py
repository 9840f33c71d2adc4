"""A scenario resolved for engines: integers in base units, defaults filled in.

The result is the JSON of crates/fullpipe-plan/src/plan.rs.
"""

from __future__ import annotations

from typing import Any, cast

from fullpipe._native import DEFAULT_KERNEL
from fullpipe.plan.network import network
from fullpipe.plan.plan import Plan
from fullpipe.plan.seeds import longer, rtt_offset_ns
from fullpipe.plan.senders import senders
from fullpipe.scenario.host import Host
from fullpipe.scenario.model import Scenario

_PACING_SHIFTS = {"1ms": 10, "2ms": 9, "4ms": 8, "8ms": 7}


def resolve(scenario: Scenario, seed: int | None = None) -> Plan:
    """The plan of one run; `seed` replaces the scenario's.

    Raises UserError where two keys contradict each other."""
    seed = scenario.seed if seed is None else seed
    sending = senders(scenario, seed)
    plan = {
        "name": scenario.name,
        "seed": seed,
        "duration_ns": scenario.duration,
        "sample_interval_ns": scenario.sample_interval,
        **network(scenario),
        "flows": sending.pop("flows"),
        "probes": sending.pop("probes"),
        "host": _host(scenario.host),
        **sending,
    }
    return cast(Plan, longer(plan, rtt_offset_ns(scenario.rtt_spread_ns, seed)))


def _host(host: Host) -> dict[str, Any]:
    resolved: dict[str, Any] = {
        "pacing": host.pacing,
        "pacing_shift": _PACING_SHIFTS[host.tsq],
        "gso_max_segments": host.largest_burst(host.tcp),
        "receive_aggregation_ns": host.receive_aggregation,
        "ack_policy": host.ack_policy,
        "receive_low_water_bytes": host.receive_low_water,
        "rmem_max_bytes": host.rmem_max,
        "wmem_max_bytes": host.wmem_max,
        "initial_cwnd_packets": host.initial_cwnd,
        "access_rate_bps": host.access_rate or 0,
        "arp": host.arp,
    }
    if host.tcp != DEFAULT_KERNEL:
        resolved["tcp"] = host.tcp
    if host.program_timer != 10**6:
        resolved["program_timer_ns"] = host.program_timer
    if sysctl := host.sysctl.model_dump(exclude_none=True):
        resolved["sysctl"] = sysctl
    if host.cc_facts != "google":
        resolved["cc_facts"] = host.cc_facts
    if host.rate_restart != "unacknowledged":
        resolved["rate_restart"] = host.rate_restart
    rare = {"send_ns": host.send_cost, "handshake_ns": host.handshake_cost}
    costs = {"packet_ns": host.packet_cost, "ack_ns": host.ack_cost}
    costs |= {name: cost_ns for name, cost_ns in rare.items() if cost_ns}
    if any(costs.values()):
        resolved["work"] = costs
    if host.reader_pause:
        resolved["reader_pauses"] = {
            "every_ns": host.reader_pause_every,
            "for_ns": host.reader_pause,
            **({"spread_ns": host.reader_pause_spread} if host.reader_pause_spread else {}),
        }
    return resolved
