"""Hosts that no kernel can be: plans with them are refused by the engines that run one, before
anything starts. The agent checks the plans that it gets for the same (check.rs in
crates/fullpipe-agent).
"""

from __future__ import annotations

from fullpipe.base.errors import UserError
from fullpipe.plan.plan import Plan

#: `sk_pacing_shift` of every socket; only network drivers change it (sk_pacing_shift_update()).
_KERNEL_PACING_SHIFT = 10


def refuse_host(plan: Plan, name: str) -> None:
    """Raises UserError for settings of hosts that a kernel does not have."""
    host = plan["host"]
    work = "host.packet_cost, host.ack_cost, host.send_cost, host.handshake_cost"
    refused = {
        "host.tsq": (
            host["pacing_shift"] != _KERNEL_PACING_SHIFT,
            "a kernel's TCP small queues allow 1 ms, which only a network driver can change",
        ),
        "host.ack_policy": (
            host["ack_policy"] == "every_second",
            "a kernel acknowledges as linux or every_packet",
        ),
        "host.rate_restart": (
            "rate_restart" in host,
            "a kernel begins intervals as unacknowledged",
        ),
        "host.tcp": ("tcp" in host, "a kernel has its own TCP (--kernel chooses one)"),
        "flow.tcp": (
            any(flow.get("stack") for flow in plan["flows"]),
            "both ends have the kernel's TCP",
        ),
        work: ("work" in host, "a kernel's work costs what it costs"),
        "host.reader_pause": (
            "reader_pauses" in host,
            "--background-processes keeps a kernel busy",
        ),
        "host.receive_aggregation": (
            host["receive_aggregation_ns"] > 0,
            "the receivers' ports have no GRO",
        ),
    }
    for key, (is_set, why) in refused.items():
        if is_set:
            raise UserError(f"{key}: for --engine sim, not {name}: {why}")
