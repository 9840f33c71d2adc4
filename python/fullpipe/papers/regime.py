"""The regime in which the simulator was compared with real kernels (docs/fidelity.md).

A claim that fails only in cells beyond it "differs" instead of being contradicted. This module must
not know entries.
"""

from __future__ import annotations

from fullpipe.scenario.impairments import resolve_damage
from fullpipe.scenario.model import Scenario

_MBIT, _MS = 10**6, 10**6
#: Discipline -> least and greatest compared rate (bit/s) and base RTT (ns). Sources:
#: docs/fidelity.md, docs/agreement.md and, for all but the first two, docs/queues.md.
HELD = {
    "fifo": ((10 * _MBIT, 340 * _MBIT), (3 * _MS // 2, 100 * _MS)),
    "fq_codel": ((10 * _MBIT, 100 * _MBIT), (10 * _MS, 100 * _MS)),
    **dict.fromkeys(
        ("cake", "pie", "fq_pie", "sfq", "tbf", "prio"),
        ((10 * _MBIT, 20 * _MBIT), (10 * _MS, 40 * _MS)),
    ),
}


def beyond(scenario: Scenario) -> str:
    """Why the comparisons with kernels do not cover a scenario; empty if they do."""
    path = scenario.path
    if len(scenario.link) > 1 or scenario.channels:
        return "Wi-Fi" if scenario.channels else "a row of links"
    for link in scenario.link:
        directions = (link, link.reverse)
        changes = ("rate_steps", "delay_steps", "outage", "rate_trace", "delay_trace")
        if any(getattr(one, key) for one in directions for key in changes):
            return "a link that changes"
        if any(resolve_damage(one) for one in directions):
            return "impairments"
        if any(one.loss_marks for one in directions):
            return "ECN"
        if link.reverse.rate is not None:
            return "traffic both ways"
    if path.qdisc not in HELD:
        return f"qdisc {path.qdisc}"
    (low_bps, high_bps), (low_ns, high_ns) = HELD[path.qdisc]
    if not low_bps <= path.rate <= high_bps:
        return f"{path.qdisc} at a rate outside {low_bps // _MBIT} to {high_bps // _MBIT} Mbit/s"
    rtts = [path.rtt if flow.rtt is None else flow.rtt for flow in scenario.flow]
    if not all(low_ns <= rtt <= high_ns for rtt in rtts):
        return f"{path.qdisc} at an RTT outside {low_ns / _MS:g} to {high_ns / _MS:g} ms"
    if path.jitter or any(flow.jitter for flow in scenario.flow):
        return "jitter"
    if path.ecn or path.loss_marks or any(flow.ecn for flow in scenario.flow):
        return "ECN"
    if path.reverse_rate is not None or any(flow.direction != "up" for flow in scenario.flow):
        return "traffic both ways"
    return ""
