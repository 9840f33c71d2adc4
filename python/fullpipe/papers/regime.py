"""The regime in which the simulator was compared with real kernels (docs/evidence/fidelity.md).

A claim that fails only in cells beyond it "differs" instead of being contradicted. This module must
not know entries.
"""

from __future__ import annotations

from fullpipe.scenario.impairments import resolve_impairments
from fullpipe.scenario.model import Scenario
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

_MBIT, _MS = 10**6, 10**6


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
        if any(resolve_impairments(one) for one in directions):
            return "impairments"
        if any(one.loss_marks for one in directions):
            return "ECN"
        if link.reverse.rate is not None:
            return "traffic both ways"
    compared = DISCIPLINES[path.qdisc].compared
    if compared is None:
        return f"qdisc {path.qdisc}"
    low, high = compared.rates_mbps
    if not low * _MBIT <= path.rate <= high * _MBIT:
        return f"{path.qdisc} at a rate outside {low:g} to {high:g} Mbit/s"
    rtts = [path.rtt if flow.rtt is None else flow.rtt for flow in scenario.flow]
    low, high = compared.rtts_ms
    if not all(low * _MS <= rtt <= high * _MS for rtt in rtts):
        return f"{path.qdisc} at an RTT outside {low:g} to {high:g} ms"
    if path.jitter or any(flow.jitter for flow in scenario.flow):
        return "jitter"
    if path.ecn or path.loss_marks or any(flow.ecn for flow in scenario.flow):
        return "ECN"
    if path.reverse_rate is not None or any(flow.direction != "up" for flow in scenario.flow):
        return "traffic both ways"
    return ""
