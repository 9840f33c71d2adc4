"""Where the simulator has been held against real kernels: the regime of docs/fidelity.md.

A contradiction that rests on cells outside of it is called a difference. Must know no entry.
"""

from __future__ import annotations

from fullpipe.damage import resolve_damage
from fullpipe.scenario import Scenario

#: docs/fidelity.md, "The regime that these checks cover", and docs/agreement.md.
RATES_BPS = (10 * 10**6, 100 * 10**6)
RTTS_NS = (10 * 10**6, 100 * 10**6)
QDISCS = ("fifo", "fq_codel")


def beyond(scenario: Scenario) -> str:
    """Why the checks against kernels say nothing of a scenario; empty where they cover it."""
    path = scenario.path
    if len(scenario.link) > 1 or scenario.channels:
        return "Wi-Fi" if scenario.channels else "a row of links"
    for link in scenario.link:
        ways = (link, link.reverse)
        changes = ("rate_steps", "delay_steps", "outage", "rate_trace", "delay_trace")
        if any(getattr(way, key) for way in ways for key in changes):
            return "a link that changes"
        if any(resolve_damage(way) for way in ways):
            return "damage"
        if any(way.loss_marks for way in ways):
            return "ECN"
        if link.reverse.rate is not None:
            return "traffic both ways"
    rtts = [path.rtt if flow.rtt is None else flow.rtt for flow in scenario.flow]
    if not RATES_BPS[0] <= path.rate <= RATES_BPS[1]:
        return "a rate outside 10 to 100 Mbit/s"
    if not all(RTTS_NS[0] <= rtt <= RTTS_NS[1] for rtt in rtts):
        return "an RTT outside 10 to 100 ms"
    if path.qdisc not in QDISCS:
        return f"qdisc {path.qdisc}"
    if path.jitter or any(flow.jitter for flow in scenario.flow):
        return "jitter"
    if path.ecn or path.loss_marks or any(flow.ecn for flow in scenario.flow):
        return "ECN"
    if path.reverse_rate is not None or any(flow.direction != "up" for flow in scenario.flow):
        return "traffic both ways"
    return ""
