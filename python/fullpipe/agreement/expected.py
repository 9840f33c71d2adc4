"""How far the simulator may be from a kernel for a scenario: its region of the map, or why it is in
none. Must know no run and no engine.
"""

from __future__ import annotations

from collections.abc import Mapping

from fullpipe.agreement.regions import Facts, Metric, Region, the_map
from fullpipe.base.packets import wire_bytes
from fullpipe.congestion.registry import base_of
from fullpipe.scenario.impairments import resolve_impairments
from fullpipe.scenario.model import Scenario
from fullpipe.scenario.qdiscs.registry import DISCIPLINES

#: How a difference is printed: factor, digits, unit, metric.
_TOLD: dict[Metric, tuple[float, int, str, str]] = {
    "share": (1, 3, "", "share"),
    "queue_rttmin": (1, 2, " RTTmin", "median queue"),
    "utilisation": (100, 1, " %", "utilisation"),
    "loss": (100, 1, " %", "loss"),
    "retransmissions": (100, 1, " %", "packets sent again"),
}


#: What the brief sentence tells, where the rest is, and its greatest length.
_BRIEFLY = ("share", "queue_rttmin")
_PAGE = "docs/evidence/map.md"
_BRIEF = 100


def region_of(scenario: Scenario) -> Region | None:
    """The region of the map in which a scenario is; None if it is in none."""
    if _unlike(scenario):
        return None
    facts = _facts(scenario)
    return next((region for region in the_map().regions if not region.limits.lacks(facts)), None)


def beyond(scenario: Scenario) -> str:
    """Why a scenario is in no region, by the region that it misses by least; empty if it is in
    one."""
    unlike = _unlike(scenario)
    if unlike:
        return unlike
    facts = _facts(scenario)
    lacks = [
        region.limits.lacks(facts)
        for region in the_map().regions
        if facts.qdisc in region.limits.qdiscs
    ]
    if not lacks:
        return f"qdisc {facts.qdisc}"
    fewest = min(reversed(lacks), key=len)  # wider regions come later
    return " and ".join(fewest)


def sentence(scenario: Scenario) -> str:
    """What a reader of the simulator's figures is to know of them."""
    region = region_of(scenario)
    if region is None:
        return f"Not held against a kernel: {beyond(scenario)}."
    differences = dict(region.differences)
    if sum(flow.count for flow in scenario.flow) == 1:
        differences.pop("share", None)
    means = {metric: difference.mean for metric, difference in differences.items()}
    text = (
        f"In this region ({region.name}; {region.cells} cells) the means of simulator and kernel "
        f"differ by {_listed(means)} on average, chance included"
    )
    bounds = {
        metric: difference.nine_in_ten
        for metric, difference in differences.items()
        if difference.nine_in_ten is not None
    }
    if bounds:
        text += f", and in nine of ten cells by at most {_listed(bounds)}"
    return f"{text}."


def brief(scenario: Scenario) -> str:
    """The same in one line of at most 100 characters; the page has all of it."""
    region = region_of(scenario)
    if region is None:
        text = f"not held against a kernel: {beyond(scenario).partition(' and ')[0]}; {_PAGE}"
        return text if len(text) <= _BRIEF else f"not held against a kernel; {_PAGE}"
    bounds = {
        metric: difference.nine_in_ten
        for metric, difference in region.differences.items()
        if difference.nine_in_ten is not None and metric in _BRIEFLY
    }
    if sum(flow.count for flow in scenario.flow) == 1:
        bounds.pop("share", None)
    return f"kernels within {_listed(bounds)}, 9 of 10 cells: {_PAGE}"


def _listed(values: Mapping[Metric, float]) -> str:
    words = []
    for metric, value in values.items():
        factor, digits, unit, name = _TOLD[metric]
        words.append(f"{factor * value:.{digits}f}{unit} in {name}")
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _facts(scenario: Scenario) -> Facts:
    path = scenario.path
    rtts_ns = [path.rtt if flow.rtt is None else flow.rtt for flow in scenario.flow]
    jitters_ns = [path.jitter, *(flow.jitter or 0 for flow in scenario.flow)]
    buffer_bdp = None
    if path.qdisc == "fifo":
        buffer = path.buffer or DISCIPLINES[path.qdisc].buffer
        assert buffer is not None, "a FIFO has a default"
        bytes_ = buffer.limit_bytes(path.rate, path.rtt)
        bytes_ = round(buffer.value * wire_bytes(path.mtu)) if bytes_ is None else bytes_
        buffer_bdp = bytes_ * 8e9 / (path.rate * path.rtt)
    return Facts(
        qdisc=path.qdisc,
        buffer_bdp=buffer_bdp,
        rate_mbps=path.rate / 1e6,
        rtts_ms=tuple(rtt_ns / 1e6 for rtt_ns in rtts_ns),
        loss=max([path.loss, *(link.loss for link in scenario.link)]),
        jitter_ms=max(jitters_ns) / 1e6,
        flows=sum(flow.count for flow in scenario.flow),
        algorithms=frozenset(_algorithm(scenario, flow.cc) for flow in scenario.flow),
    )


def _algorithm(scenario: Scenario, cc: str) -> str:
    """The algorithm whose code a name runs, else the name."""
    base = base_of(cc, scenario.cc_tables)
    return cc if base is None else base.algorithm


def _unlike(scenario: Scenario) -> str:
    """What a scenario has that no cell of the map has; empty if nothing."""
    path = scenario.path
    if len(scenario.link) > 1 or scenario.channels:
        return "Wi-Fi" if scenario.channels else "a row of links"
    for link in scenario.link:
        directions = (link, link.reverse)
        changes = ("rate_steps", "delay_steps", "outage", "rate_trace", "delay_trace")
        if any(getattr(direction, key) for direction in directions for key in changes):
            return "a link that changes"
        if any(resolve_impairments(direction) for direction in directions):
            return "impairments"
        if any(direction.loss_marks for direction in directions):
            return "ECN"
        if link.reverse.rate is not None:
            return "traffic both ways"
    if path.ecn or path.loss_marks or any(flow.ecn for flow in scenario.flow):
        return "ECN"
    if path.reverse_rate is not None or any(flow.direction != "up" for flow in scenario.flow):
        return "traffic both ways"
    if path.jitter_shape != "per_packet" or any(
        flow.jitter_shape not in (None, "per_packet") for flow in scenario.flow
    ):
        return "slotted jitter"
    if path.loss_correlation or path.loss_per != "packet" or path.reverse_loss:
        return "loss that is not of single data packets"
    discipline = DISCIPLINES[path.qdisc]
    if path.qdisc_options != discipline.options():
        return f"options of {path.qdisc}"
    if path.qdisc != "fifo" and path.buffer not in (None, discipline.buffer):
        return f"a limit of {path.qdisc} of its own"
    if scenario.page or scenario.udp or scenario.traffic or not scenario.flow:
        return "other traffic than bulk flows"
    return ""
